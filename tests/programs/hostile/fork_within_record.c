// A signal handler forks by syscall(2) when its process has executed so many instructions of a record: `fork_within_record STEP`.
//
// The program stops the process there as a debugger does. The child returns into the record when its parent has posted 30 times more, and
// ends. Prints the process's ID; ends with 7, with 77 where no process may be stopped.

#define _GNU_SOURCE
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "interrupt.h"

static sem_t semaphore;
static int pipe_ends[2], child;

static void handle(int number) {
    char byte;
    (void)number;
    child = (int)syscall(SYS_fork);
    CHECK(child >= 0);
    if (child == 0)
        CHECK(read(pipe_ends[0], &byte, 1) == 1);
}

static void post(int count) {
    for (int i = 0; i < count; i++)
        CHECK(sem_post(&semaphore) == 0);
}

static void run(void) {
    CHECK(sem_init(&semaphore, 0, 0) == 0 && signal(SIGALRM, handle) != SIG_ERR);
    post(10);
    child = -1;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    CHECK(kill(getpid(), SIGSTOP) == 0);
    post(1);
    if (child == 0)
        syscall(SYS_exit_group, 0);
    post(30);
    if (child > 0)
        CHECK(write(pipe_ends[1], "", 1) == 1 && waitpid(child, NULL, 0) == child);
    post(5);
    exit(child > 0 ? 7 : 8);
}

int main(int argc, char **argv) {
    CHECK(argc == 2 && pipe(pipe_ends) == 0);
    pid_t process = fork();
    CHECK(process >= 0);
    if (process == 0)
        run();
    int status = interrupt(process, 0, atoi(argv[1]));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    printf("%d\n", process);
    return 7;
}
