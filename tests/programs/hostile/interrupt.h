// For programs that interrupt a child at a system call; where they may not trace it, they end with status 77.

#pragma once
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"

// Stops the process at its system calls, and sends the signal after so many, or after -STEP instructions; or lets it end before. Returns
// its status then.
static int interrupt(pid_t process, int step) {
    int status;
    CHECK(waitpid(process, &status, 0) == process);
    if (WIFEXITED(status))
        _exit(77);
    CHECK(ptrace(PTRACE_SETOPTIONS, process, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) == 0);
    for (int stops = 0; stops < (step < 0 ? -step : 2 * step); stops++) {
        CHECK(ptrace(step < 0 ? PTRACE_SINGLESTEP : PTRACE_SYSCALL, process, NULL, NULL) == 0);
        CHECK(waitpid(process, &status, 0) == process);
        if (WIFEXITED(status))
            return status;
        CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == (step < 0 ? SIGTRAP : SIGTRAP | 0x80));
    }
    CHECK(ptrace(PTRACE_DETACH, process, NULL, (void *)SIGALRM) == 0);
    CHECK(waitpid(process, &status, 0) == process);
    return status;
}
