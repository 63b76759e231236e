// A signal handler forks when its process has made so many system calls in its first record: `fork_before_creation STEP`.
//
// The program stops both as a debugger does. The child returns into the record first. If it opens a new file by its parent's number, it
// keeps that open until its parent has asked whether somebody has it; in either case both go on then. The child posts 3 times, its
// parent 10 times. Prints the parent's ID and 1 if its child has opened a file so, else 0; ends with 7, with 77 where no process may be
// stopped.

#define _GNU_SOURCE
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"

static sem_t semaphore;
static volatile int child = -1;

static void handle(int number) {
    (void)number;
    child = fork();
    CHECK(child >= 0);
}

static void run(void) {
    CHECK(sem_init(&semaphore, 0, 0) == 0 && signal(SIGALRM, handle) != SIG_ERR);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    CHECK(syscall(SYS_kill, getpid(), SIGSTOP) == 0);
    for (int i = 0; i < (child == 0 ? 3 : 10); i++)
        CHECK(sem_post(&semaphore) == 0);
    if (child > 0)
        CHECK(waitpid(child, NULL, 0) == child);
    exit(7);
}

// Runs a process to its next system call, or from that to its end; `false` if it ends before.
static int step(pid_t process, int *status) {
    CHECK(ptrace(PTRACE_SYSCALL, process, NULL, NULL) == 0 && waitpid(process, status, 0) == process);
    return WIFSTOPPED(*status);
}

static int is_at_call(int status) {
    return WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80);
}

static struct user_regs_struct registers_of(pid_t process) {
    struct user_regs_struct registers;
    CHECK(ptrace(PTRACE_GETREGS, process, NULL, &registers) == 0);
    return registers;
}

// Whether a process has just opened a new file whose name ends with `end`.
static int has_made(pid_t process, const char *end) {
    struct user_regs_struct registers = registers_of(process);
    char name[512] = "";
    if (registers.orig_rax != SYS_openat || (registers.rdx & O_CREAT) == 0 || (long long)registers.rax < 0)
        return 0;
    struct iovec to = {name, sizeof name - 1}, from = {(void *)registers.rsi, sizeof name - 1};
    CHECK(process_vm_readv(process, &to, 1, &from, 1, 0) > 0);
    return strlen(name) >= strlen(end) && strcmp(name + strlen(name) - strlen(end), end) == 0;
}

int main(int argc, char **argv) {
    int status, child_status, is_held = 0;
    unsigned long made;
    char end[16];
    // After the first call, so that the process is stopped at a call when it gets the signal.
    CHECK(argc == 2 && atoi(argv[1]) > 0);
    pid_t process = fork();
    CHECK(process >= 0);
    if (process == 0)
        run();
    CHECK(waitpid(process, &status, 0) == process);
    if (WIFEXITED(status))
        return 77;
    CHECK(ptrace(PTRACE_SETOPTIONS, process, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL)) == 0);
    for (int stops = 0; stops < 2 * atoi(argv[1]); stops++)
        CHECK(step(process, &status));
    // The signal stops the process once more before it is delivered.
    for (int i = 0; i < 2; i++)
        CHECK(ptrace(PTRACE_CONT, process, NULL, (void *)SIGALRM) == 0 && waitpid(process, &status, 0) == process);
    CHECK(status >> 8 == (SIGTRAP | PTRACE_EVENT_FORK << 8));
    CHECK(ptrace(PTRACE_GETEVENTMSG, process, NULL, &made) == 0);
    CHECK(waitpid((pid_t)made, &child_status, 0) == (pid_t)made && WIFSTOPPED(child_status));
    snprintf(end, sizeof end, "trbuf.%07x", process);
    while (!is_held && step((pid_t)made, &child_status))
        is_held = is_at_call(child_status) && has_made((pid_t)made, end);
    while (is_held && step(process, &status)) {
        struct user_regs_struct registers = registers_of(process);
        if (is_at_call(status) && registers.orig_rax == SYS_fcntl && registers.rsi == F_SETLEASE && (long long)registers.rax == -EAGAIN)
            break;
    }
    if (is_held)
        CHECK(ptrace(PTRACE_DETACH, (pid_t)made, NULL, NULL) == 0);
    if (WIFSTOPPED(status))
        CHECK(ptrace(PTRACE_DETACH, process, NULL, NULL) == 0 && waitpid(process, &status, 0) == process);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    printf("%d %d\n", process, is_held);
    return 7;
}
