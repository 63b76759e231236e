// Signals of the process are handled in the first thread, which records all the time, as in each program that lets it: `process_signals HOW
// ALARMS`.
//
// With HOW `jump` the handler of an alarm leaves whatever it has interrupted, and the thread begins again; with `return` it returns. A
// second thread waits for signals. Prints how many alarms that one has handled.

#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#include "../check.h"

static sigjmp_buf start;
static volatile sig_atomic_t jumps, is_recording, handled, handled_elsewhere;
static __thread int is_first;

static void handle(int signal) {
    (void)signal;
    handled++;
    if (!is_first)
        handled_elsewhere++;
    else if (jumps && is_recording)
        siglongjmp(start, 1);
}

static void *wait_for_signals(void *unused) {
    for (;;)
        pause();
    return unused;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    struct itimerval after = {.it_value = {0, 2000}};
    pthread_t other;
    sem_t semaphore;
    is_first = 1;
    jumps = strcmp(argv[1], "jump") == 0;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && sem_init(&semaphore, 0, 0) == 0);
    CHECK(pthread_create(&other, NULL, wait_for_signals, NULL) == 0);
    // The process's first record has been made when signals come.
    sem_post(&semaphore);
    while (handled < atoi(argv[2])) {
        int before = handled;
        if (sigsetjmp(start, 1) == 0) {
            is_recording = 1;
            CHECK(setitimer(ITIMER_REAL, &after, NULL) == 0);
            while (handled == before) {
                sem_post(&semaphore);
                sem_trywait(&semaphore);
            }
        }
        is_recording = 0;
    }
    printf("%d\n", (int)handled_elsewhere);
    return 0;
}
