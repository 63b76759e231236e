// Counts its finished calls in a shared file until it ends: `counting FILE steady|churn [ENDING]`.
//
// Every worker has a semaphore and a mutex of its own and repeats: sem_post (whose s_count is thus the turn's number),
// lock, unlock. FILE is an array of 64-bit numbers: how many calls each worker has come back from. With `steady` four
// workers go on for ever; with `churn` each does a few turns and ends, and others come, until all have had their life.
// With an ENDING the main thread ends the process in that way when each worker has finished ENOUGH calls, and runs on.
// Prints the address of the first semaphore and the size of one before the first worker starts.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 16384, AT_ONCE = 4, CHURN_TURNS = 60, ENOUGH = 2000 };

static sem_t semaphores[WORKERS];
static pthread_mutex_t mutexes[WORKERS];
static _Atomic uint64_t *finished;
static long turns;

static void *work(void *argument) {
    intptr_t self = (intptr_t)argument;
    uint64_t calls = 0;
    for (long turn = 0; turn < turns; turn++) {
        sem_post(&semaphores[self]);
        finished[self] = ++calls;
        pthread_mutex_lock(&mutexes[self]);
        finished[self] = ++calls;
        pthread_mutex_unlock(&mutexes[self]);
        finished[self] = ++calls;
    }
    return NULL;
}

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
        wait_for(2 * ENOUGH);
        return 46;
    }
    return 44;
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 4)
        return 2;
    int churn = strcmp(argv[2], "churn") == 0;
    turns = churn ? CHURN_TURNS : INT32_MAX;

    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, WORKERS * sizeof *finished))
        return 2;
    finished = mmap(NULL, WORKERS * sizeof *finished, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (finished == MAP_FAILED)
        return 2;
    printf("semaphores %p %zu\n", (void *)semaphores, sizeof *semaphores);
    fflush(stdout);

    pthread_t threads[AT_ONCE];
    for (intptr_t worker = 0; worker < WORKERS; worker++) {
        if (worker >= AT_ONCE && pthread_join(threads[worker % AT_ONCE], NULL))
            return 2;
        if (pthread_create(&threads[worker % AT_ONCE], NULL, work, (void *)worker))
            return 2;
        if (argc == 4 && worker == AT_ONCE - 1) {
            wait_for(ENOUGH);
            return end(argv[3], argv);
        }
    }
    for (int i = 0; i < AT_ONCE; i++)
        if (pthread_join(threads[i], NULL))
            return 2;
    return 0;
}
