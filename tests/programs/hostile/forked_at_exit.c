// A signal handler forks while its process ends, and the child goes on from there: `forked_at_exit SYSTEM_CALLS`.
//
// The handler comes after so many system calls of exit(3), with which the program stops the process as a debugger does. Prints 1 if it
// came before the end. Ends with 7, with 77 where no process may be stopped.

#define _GNU_SOURCE
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "interrupt.h"

static int *was_interrupted;

static void handle(int number) {
    int status;
    (void)number;
    *was_interrupted = 1;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0)
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void run(void) {
    sem_t semaphore;
    CHECK(sem_init(&semaphore, 0, 0) == 0 && signal(SIGALRM, handle) != SIG_ERR);
    for (int i = 0; i < 10; i++)
        CHECK(sem_post(&semaphore) == 0);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    CHECK(kill(getpid(), SIGSTOP) == 0);
    exit(7);
}

int main(int argc, char **argv) {
    was_interrupted = mmap(NULL, sizeof *was_interrupted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(argc == 2 && was_interrupted != MAP_FAILED);
    pid_t process = fork();
    CHECK(process >= 0);
    if (process == 0)
        run();
    int status = interrupt(process, atoi(argv[1]), 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    printf("%d\n", *was_interrupted);
    return 7;
}
