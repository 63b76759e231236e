// A timer's handler fails to take a semaphore, two hundred times, mostly while `probed` makes its frame of four megabytes: GCC's and Clang's
// -fstack-clash-protection touch each page of it in a loop.

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static sem_t semaphore;
static volatile sig_atomic_t handled;

static void handle(int number) {
    int before = errno;
    (void)number;
    if (handled < 200 && sem_trywait(&semaphore) == 0)
        abort();
    handled++;
    errno = before;
}

__attribute__((noinline)) static int probed(int place) {
    volatile char room[4000000];
    room[place] = 1;
    return room[place + 1];
}

__attribute__((noinline)) static int calls_probed(int place) {
    return probed(place) + 1;
}

int main(void) {
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    if (sem_init(&semaphore, 0, 0) || signal(SIGALRM, handle) == SIG_ERR || setitimer(ITIMER_REAL, &timer, NULL))
        return 3;
    int sum = 0;
    while (handled < 200)
        sum += calls_probed(sum & 1);
    return 0;
}
