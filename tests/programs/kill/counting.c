// Counts its finished calls in a shared file until it ends: `counting FILE steady|churn [ENDING [CALLS]]`.
//
// With `steady` the first workers go on for ever; with `churn` each does a few turns and ends, and others come, until all
// have had their life, and the process waits. With an ENDING the main thread ends the process in that way when each worker has finished CALLS
// (2000) calls. Until then none makes a hundred thousand more than twice as many.

#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "work.h"

enum { CHURN_TURNS = 60 };

static uint64_t enough = 2000;

// Until each of the first workers has finished that many calls.
static void wait_for(uint64_t calls) {
    for (int i = 0; i < AT_ONCE; i++)
        while (finished[i] < calls)
            usleep(100);
}

// Ends the process; `return` is for main itself.
static int end(const char *ending, char **argv) {
    if (strcmp(ending, "exit") == 0)
        exit(40);
    if (strcmp(ending, "_exit") == 0)
        _exit(41);
    if (strcmp(ending, "_Exit") == 0)
        _Exit(42);
    if (strcmp(ending, "quick_exit") == 0)
        quick_exit(43);
    if (strcmp(ending, "abort") == 0)
        abort();
    if (strcmp(ending, "segv") == 0)
        raise(SIGSEGV);
    if (strcmp(ending, "exec") == 0) {
        execl("/bin/sh", "sh", "-c", "exit 45", (char *)NULL);
        return 2;
    }
    if (strcmp(ending, "forks") == 0) {
        for (int i = 0; i < 50; i++) {
            int value;
            pid_t child = fork();
            if (child == 0) {
                sem_getvalue(&semaphores[WORKERS - 1], &value);
                _exit(0);
            }
            if (child < 0 || waitpid(child, NULL, 0) != child)
                return 2;
        }
        return 47;
    }
    if (strcmp(ending, "exec_fails") == 0) {
        execv("/nonexistent/program", argv);
        wait_for(2 * enough);
        return 46;
    }
    return 44;
}

int main(int argc, char **argv) {
    if (argc < 3 || argc > 5)
        return 2;
    if (argc == 5)
        enough = strtoull(argv[4], NULL, 10);
    if (argc >= 4)
        most = 2 * enough + 100000;
    int churn = strcmp(argv[2], "churn") == 0;
    turns = churn ? CHURN_TURNS : INT32_MAX;

    if (announce(argv[1]))
        return 2;

    pthread_t threads[AT_ONCE];
    for (intptr_t worker = 0; worker < WORKERS; worker++) {
        if (worker >= AT_ONCE && pthread_join(threads[worker % AT_ONCE], NULL))
            return 2;
        if (pthread_create(&threads[worker % AT_ONCE], NULL, work, (void *)worker))
            return 2;
        if (argc >= 4 && worker == AT_ONCE - 1) {
            wait_for(enough);
            return end(argv[3], argv);
        }
    }
    for (int i = 0; i < AT_ONCE; i++)
        if (pthread_join(threads[i], NULL))
            return 2;
    // Whoever kills it may be late.
    for (;;)
        pause();
}
