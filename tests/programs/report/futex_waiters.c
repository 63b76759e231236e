// A lock and a queue of work by futex(2), whose waits are certain: who has the lock, or has work, waits until others sleep. Prints the
// addresses of both words.

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../check.h"

enum { TURNS = 120, WORKERS = 3, TASKS = 240 };

// A thread that is about to sleep, if it is.
static atomic_long about[WORKERS];

static long futex(atomic_uint *word, int operation, unsigned value) {
    return syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static int sleeps(long lwp) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", lwp);
    int file = open(path, O_RDONLY);
    ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[size > 0 ? size : 0] = 0;
    char *end = strrchr(text, ')');
    return end && end[2] == 'S';
}

static void wait_at(atomic_uint *word, unsigned value, int thread) {
    about[thread] = syscall(SYS_gettid);
    futex(word, FUTEX_WAIT_PRIVATE, value);
    about[thread] = 0;
}

// 0: free; 1: taken; 2: the other one waits.
static atomic_uint lock;
static atomic_int owner = -1, turns[2];

// Takes the lock by turns; gives it back when the other one sleeps, and goes on when that has it.
static void *contend(void *argument) {
    int thread = argument != NULL, other = !thread;
    while (turns[thread] < TURNS) {
        unsigned none = 0;
        if (!atomic_compare_exchange_strong(&lock, &none, 1))
            while (atomic_exchange(&lock, 2)) wait_at(&lock, 2, thread);
        owner = thread;
        turns[thread]++;
        while (turns[other] < TURNS && !(about[other] && sleeps(about[other]))) sched_yield();
        if (atomic_exchange(&lock, 0) == 2) futex(&lock, FUTEX_WAKE_PRIVATE, 1);
        while (owner == thread && turns[other] < TURNS) sched_yield();
    }
    return NULL;
}

static atomic_uint tasks;
static atomic_int done, stops;

static void *work(void *argument) {
    int thread = (int)(long)argument;
    for (;;) {
        unsigned left = tasks;
        if (left && atomic_compare_exchange_strong(&tasks, &left, left - 1)) {
            done++;
        } else if (stops) {
            return NULL;
        } else if (!left) {
            wait_at(&tasks, 0, thread);
        }
    }
}

static int sleeping(void) {
    int count = 0;
    for (int thread = 0; thread < WORKERS; thread++) count += about[thread] && sleeps(about[thread]);
    return count;
}

int main(void) {
    pthread_t threads[WORKERS];
    for (long thread = 0; thread < 2; thread++) CHECK(!pthread_create(&threads[thread], NULL, contend, (void *)thread));
    for (int thread = 0; thread < 2; thread++) CHECK(!pthread_join(threads[thread], NULL));
    for (long thread = 0; thread < WORKERS; thread++) CHECK(!pthread_create(&threads[thread], NULL, work, (void *)thread));
    for (int task = 0; task < TASKS; task++) {
        while (!sleeping()) sched_yield();
        tasks++;
        CHECK(futex(&tasks, FUTEX_WAKE_PRIVATE, 1) == 1);
        while (done <= task) sched_yield();
    }
    while (sleeping() < WORKERS) sched_yield();
    stops = 1;
    futex(&tasks, FUTEX_WAKE_PRIVATE, WORKERS);
    for (int thread = 0; thread < WORKERS; thread++) CHECK(!pthread_join(threads[thread], NULL));
    printf("%p %p\n", (void *)&lock, (void *)&tasks);
}
