// A signal handler interrupts what a forked child does first, in fork: `interrupted_child WAY STEP`.
//
// The signal comes when the child has made STEP system calls, or executed -STEP instructions, since a handler of pthread_atfork: its
// parent stops it there as a debugger does. The handler posts twice, does what WAY names, and posts once more:
//   none     nothing
//   many     posts 300 times
//   vfork    two children by vfork, of which one runs a program and one ends at once, and one by posix_spawn
//   fork     a child by fork, which posts 3 times and ends
//   return   a child by fork, which posts 3 times and returns into what was interrupted
//   raw      a child by the system call, which no hook notices, and which posts 3 times and ends
//   thread   a thread, which posts 3 times and ends
//   exit     ends the child
//   exec     runs a program in the child that posts 3 times
//   failing  tries to run a program that is not there
// Then the child posts 20 times and ends. Prints for each process its ID and how often it has posted; at last 1 if the child was
// still in fork when the signal came, else 0. Ends with 7, with 77 where no process may be stopped.

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "../instruction.h"
#include "interrupt.h"

static struct {
    atomic_int processes, was_interrupted;
    struct {
        int pid, posts;
    } calls[8];
} *shared;

static const char *way, *program;
static volatile sig_atomic_t is_late;
static sem_t semaphore;
static int own;

static void begin_process(void) {
    own = atomic_fetch_add(&shared->processes, 1);
    CHECK(own < 8);
    shared->calls[own].pid = (int)syscall(SYS_getpid);
}

static void post(int count) {
    for (int i = 0; i < count; i++) {
        shared->calls[own].posts++;
        CHECK(sem_post(&semaphore) == 0);
    }
}

static void *post_in_thread(void *unused) {
    post(3);
    return unused;
}

static void run_true(void) {
    char *arguments[] = {"true", NULL};
    execv("/bin/true", arguments);
    _exit(99);
}

static void make_guests(void) {
    char *arguments[] = {"true", NULL};
    int status;
    pid_t child = vfork();
    if (child == 0)
        run_true();
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    child = vfork();
    if (child == 0)
        _exit(3);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
    CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, (char *[]){NULL}) == 0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static pid_t fork_unnoticed(void) {
    return (pid_t)by_instruction(SYS_fork, 0, 0, 0);
}

static void handle(int number) {
    (void)number;
    if (is_late)
        return;
    shared->was_interrupted = 1;
    begin_process();
    post(2);
    if (strcmp(way, "many") == 0)
        post(300);
    if (strcmp(way, "vfork") == 0)
        make_guests();
    int is_raw = strcmp(way, "raw") == 0;
    int returns = strcmp(way, "return") == 0;
    if (is_raw || returns || strcmp(way, "fork") == 0) {
        pid_t child = is_raw ? fork_unnoticed() : fork();
        CHECK(child >= 0);
        if (child == 0) {
            begin_process();
            post(3);
            if (returns)
                return;
            exit(0);
        }
        CHECK(waitpid(child, NULL, 0) == child);
    }
    if (strcmp(way, "thread") == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, post_in_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    }
    if (strcmp(way, "exit") == 0)
        _exit(0);
    if (strcmp(way, "exec") == 0) {
        char *arguments[] = {"interrupted_child", "posts", NULL};
        shared->calls[own].posts += 3;
        execv(program, arguments);
        _exit(99);
    }
    if (strcmp(way, "failing") == 0)
        CHECK(execv("/nonexistent", (char *[]){"nonexistent", NULL}) == -1 && errno == ENOENT);
    post(1);
}

static void begin_child(void) {
    if (atomic_load(&shared->processes) != 0)
        return;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        syscall(SYS_exit_group, 77);
    CHECK(syscall(SYS_kill, (pid_t)syscall(SYS_getpid), SIGSTOP) == 0);
}

int main(int argc, char **argv) {
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    if (argc == 2) {
        for (int i = 0; i < 3; i++)
            CHECK(sem_post(&semaphore) == 0);
        return 0;
    }
    CHECK(argc == 3);
    way = argv[1];
    program = argv[0];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED && signal(SIGALRM, handle) != SIG_ERR && pthread_atfork(NULL, NULL, begin_child) == 0);
    // The thread of the child has the parent's slot at first.
    CHECK(sem_post(&semaphore) == 0);
    pid_t child = fork();
    is_late = 1;
    CHECK(child >= 0);
    if (child == 0) {
        if (!shared->was_interrupted)
            begin_process();
        post(20);
        exit(0);
    }
    int status = interrupt(child, atoi(argv[2]), 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int i = 0; i < shared->processes; i++)
        printf("%d %d\n", shared->calls[i].pid, shared->calls[i].posts);
    printf("%d\n", shared->was_interrupted);
    fflush(stdout);
    return 7;
}
