// A thread that does not go on within a recorded call, while another records, or tries to execute programs: `held_writer HOW ROUNDS`.
//
// HOW is `stay` if a signal handler keeps the thread until the end of a round, or `leave` if it leaves the call by a jump, after which
// the thread sleeps; a capital letter (`Stay`, `Leave`) if the other thread tries ten times to execute a program that does not exist
// instead of locking a mutex twice. Prints how often that one has slept for this.

#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include "../check.h"
#include "sleeps.h"

static sigjmp_buf start;
static atomic_int armed, held, resume;
static int leaves;

static void pause_until_resumed(void) {
    atomic_store(&held, 1);
    while (!atomic_load(&resume))
        usleep(1000);
}

static void interrupt(int signal) {
    (void)signal;
    if (!atomic_exchange(&armed, 0))
        return;
    if (leaves)
        siglongjmp(start, 1);
    pause_until_resumed();
}

static void *record(void *nanoseconds) {
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM };
    struct itimerspec after = { .it_value = { 0, (long)nanoseconds } };
    timer_t timer;
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    event._sigev_un._tid = syscall(SYS_gettid);
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    if (sigsetjmp(start, 1) == 0) {
        atomic_store(&armed, 1);
        CHECK(timer_settime(timer, 0, &after, NULL) == 0);
        while (!atomic_load(&resume)) {
            sem_post(&semaphore);
            sem_trywait(&semaphore);
        }
    } else {
        pause_until_resumed();
    }
    timer_delete(timer);
    return NULL;
}

static void lock_twice(void) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    for (int pair = 0; pair < 2; pair++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static void fail_to_execute(void) {
    char *arguments[] = { "none", NULL };
    for (int i = 0; i < 10; i++)
        CHECK(execv("/nonexistent", arguments) == -1 && errno == ENOENT);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    struct sigaction action = { .sa_handler = interrupt };
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    leaves = argv[1][0] == 'l' || argv[1][0] == 'L';
    int executes = argv[1][0] == 'L' || argv[1][0] == 'S';
    long slept = 0;
    for (long round = 0; round < atol(argv[2]); round++) {
        pthread_t thread;
        atomic_store(&held, 0);
        atomic_store(&resume, 0);
        CHECK(pthread_create(&thread, NULL, record, (void *)(150000 + 1000 * (round % 97))) == 0);
        while (!atomic_load(&held))
            usleep(100);
        long before = sleeps();
        executes ? fail_to_execute() : lock_twice();
        slept += sleeps() - before;
        atomic_store(&resume, 1);
        pthread_join(thread, NULL);
    }
    printf("%ld\n", slept);
    return 0;
}
