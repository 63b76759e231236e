// For programs that interrupt a child at a system call; where they may not trace it, they end with status 77.

#pragma once
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"

// Lets the process go on to its next stop of this kind; whether it has ended before that.
static inline int advance(pid_t process, int request, int *status) {
    CHECK(ptrace(request, process, NULL, NULL) == 0);
    CHECK(waitpid(process, status, 0) == process);
    if (WIFEXITED(*status))
        return 0;
    CHECK(WIFSTOPPED(*status) && WSTOPSIG(*status) == (request == PTRACE_SINGLESTEP ? SIGTRAP : SIGTRAP | 0x80));
    return 1;
}

// Lets the process make so many system calls; 0 if it has ended before that.
static inline int make_system_calls(pid_t process, int count, int *status) {
    for (int stops = 0; stops < 2 * count; stops++)
        if (!advance(process, PTRACE_SYSCALL, status))
            return 0;
    return 1;
}

// Takes a process that has asked to be traced and stopped itself.
static inline void begin_to_interrupt(pid_t process) {
    int status;
    CHECK(waitpid(process, &status, 0) == process);
    if (WIFEXITED(status))
        _exit(77);
    CHECK(ptrace(PTRACE_SETOPTIONS, process, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) == 0);
}

// Sends another signal first, after so many system calls. The process goes on to its next one, which its handler makes.
static inline void interrupt_first(pid_t process, int system_calls, int number) {
    int status;
    CHECK(make_system_calls(process, system_calls, &status));
    // The kernel sends it, and asks whether the process is to get it.
    for (int sent = 0; sent < 2; sent++) {
        CHECK(ptrace(PTRACE_SYSCALL, process, NULL, (void *)(long)number) == 0);
        CHECK(waitpid(process, &status, 0) == process && WIFSTOPPED(status));
        CHECK((WSTOPSIG(status) == number) == (sent == 0));
    }
}

// Stops the process at its system calls, and sends the signal after so many system calls and then so many instructions; or lets it end
// before. Returns its status then.
static inline int go_on_and_interrupt(pid_t process, int system_calls, int instructions) {
    int status;
    if (!make_system_calls(process, system_calls, &status))
        return status;
    for (int steps = 0; steps < instructions; steps++)
        if (!advance(process, PTRACE_SINGLESTEP, &status))
            return status;
    CHECK(ptrace(PTRACE_DETACH, process, NULL, (void *)SIGALRM) == 0);
    CHECK(waitpid(process, &status, 0) == process);
    return status;
}

static inline int interrupt(pid_t process, int system_calls, int instructions) {
    begin_to_interrupt(process);
    return go_on_and_interrupt(process, system_calls, instructions);
}
