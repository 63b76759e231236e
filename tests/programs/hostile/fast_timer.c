// Posts to a semaphore, and leaves the posts by siglongjmp out of the handler of a timer: `fast_timer MICROSECONDS JUMPS`.
//
// The timer sends its signals to this thread. Prints how many posts were begun and how many have returned, and ends with 7.

#define _GNU_SOURCE
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include "../check.h"

static sigjmp_buf before;
static volatile sig_atomic_t is_posting;
static volatile long begun, returned, jumps;

static void leave(int signal) {
    (void)signal;
    if (is_posting) {
        is_posting = 0;
        jumps++;
        siglongjmp(before, 1);
    }
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    long period = atol(arguments[1]) * 1000, most = atol(arguments[2]);
    sem_t semaphore;
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    struct sigaction action = {.sa_handler = leave};
    CHECK(sigaction(SIGRTMIN, &action, NULL) == 0);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    event._sigev_un._tid = (int)syscall(SYS_gettid);
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    CHECK(timer_settime(timer, 0, &(struct itimerspec){{0, period}, {0, period}}, NULL) == 0);
    while (jumps < most) {
        if (sigsetjmp(before, 1) == 0) {
            for (is_posting = 1;;) {
                begun++;
                CHECK(sem_post(&semaphore) == 0);
                returned++;
                if (returned % 1000 == 0)
                    CHECK(sem_init(&semaphore, 0, 0) == 0);
            }
        }
    }
    CHECK(timer_delete(timer) == 0);
    printf("%ld %ld\n", begun, returned);
    return 7;
}
