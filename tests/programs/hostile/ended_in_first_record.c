// A thread ends within the first record of a process: `ended_in_first_record HOW MICROSECONDS`.
//
// HOW is `cancel`, asynchronously, or `exit`, by pthread_exit in a signal handler. For each time of up to so many microseconds, in steps of
// 10, a child does this, and then posts five times itself. Prints how many descriptors the children had open in the end beyond those
// they had in the beginning, and how many threads had ended within the call.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "../check.h"
#include "open_descriptors.h"

static sem_t semaphore;
static volatile int is_posting, has_posted;

static void end(int signal) {
    (void)signal;
    if (is_posting && !has_posted)
        pthread_exit(NULL);
}

static void *post(void *unused) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    is_posting = 1;
    sem_post(&semaphore);
    has_posted = 1;
    pause();
    return unused;
}

static long microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void end_thread(int cancels, long after, int *counts) {
    struct sigaction action = { .sa_handler = end };
    pthread_t thread;
    int before = open_descriptors();
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && pthread_create(&thread, NULL, post, NULL) == 0);
    while (!is_posting)
        ;
    for (long begin = microseconds(); microseconds() < begin + after;)
        ;
    if (cancels || has_posted)
        pthread_cancel(thread);
    else
        pthread_kill(thread, SIGUSR1);
    // A signal that comes too late ends nothing.
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        if (has_posted)
            pthread_cancel(thread);
        usleep(100);
    }
    counts[1] += !has_posted;
    for (int i = 0; i < 5; i++)
        sem_post(&semaphore);
    counts[0] += open_descriptors() - before;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    int *counts = mmap(NULL, 2 * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(counts != MAP_FAILED);
    for (long after = 0; after < atol(argv[2]); after += 10) {
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            end_thread(strcmp(argv[1], "cancel") == 0, after, counts);
            exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    printf("%d %d\n", counts[0], counts[1]);
    return 0;
}
