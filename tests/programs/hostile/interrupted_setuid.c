// A signal handler interrupts the change to another user: `interrupted_setuid WAY STEP`.
//
// The signal comes when the process has made STEP system calls in setuid(65534): the program stops it there as a debugger does. The
// handler makes a thread that posts twice, or forks a child that posts twice and ends, as WAY says (`thread`, `fork`). The process itself posts 3
// times before and 4 times after. Prints 1 if the signal has come in time, else 0; ends with 7, with 77 where no process may be stopped.

#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "interrupt.h"

static sem_t semaphore;
static const char *way;
static volatile sig_atomic_t is_late;
static atomic_int *was_interrupted;

static void post(int count) {
    for (int i = 0; i < count; i++)
        CHECK(sem_post(&semaphore) == 0);
}

static void *run(void *unused) {
    post(2);
    return unused;
}

static void handle(int number) {
    pthread_t thread;
    (void)number;
    if (is_late)
        return;
    atomic_store(was_interrupted, 1);
    if (strcmp(way, "thread") == 0) {
        CHECK(pthread_create(&thread, NULL, run, NULL) == 0 && pthread_join(thread, NULL) == 0);
        return;
    }
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        post(2);
        exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child);
}

static void change_user(void) {
    CHECK(sem_init(&semaphore, 0, 0) == 0 && signal(SIGALRM, handle) != SIG_ERR);
    post(3);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    CHECK(syscall(SYS_kill, getpid(), SIGSTOP) == 0 && setuid(65534) == 0);
    is_late = 1;
    post(4);
    exit(7);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    way = argv[1];
    was_interrupted = mmap(NULL, sizeof *was_interrupted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(was_interrupted != MAP_FAILED);
    pid_t process = fork();
    CHECK(process >= 0);
    if (process == 0)
        change_user();
    int status = interrupt(process, atoi(argv[2]), 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    printf("%d\n", *was_interrupted);
    return 7;
}
