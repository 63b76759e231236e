// A child that ends is stopped, as by a debugger, when it has left its trbuf to the next one; that has it and records in it, when a signal
// comes for the first. Prints the IDs of both. Ends with 77 where no process may be stopped.
#include "../hostile/interrupt.h"
#include "calls.h"
#include <sys/syscall.h>
#include <sys/user.h>

static void record_in_handler(int signal) {
    static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    (void)signal;
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
}

static void end_in_order(pid_t child) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void advance_behind(pid_t process, unsigned long system_call) {
    int status;
    // Where it begins and where it ends.
    for (int stops = 0; stops < 2;) {
        struct user_regs_struct registers;
        CHECK(advance(process, PTRACE_SYSCALL, &status));
        CHECK(ptrace(PTRACE_GETREGS, process, NULL, &registers) == 0);
        stops += registers.orig_rax == system_call;
    }
}

int main(void) {
    int recorded[2], go_on[2];
    char byte = 0;
    CHECK(pipe(recorded) == 0 && pipe(go_on) == 0);
    CHECK(signal(SIGALRM, record_in_handler) != SIG_ERR);
    pairs(1);
    pid_t ended = fork();
    if (ended == 0) {
        pairs(20);
        pid_t self = getpid();
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        CHECK(syscall(SYS_tgkill, self, self, SIGSTOP) == 0);
        _exit(0);
    }
    begin_to_interrupt(ended);
    advance_behind(ended, SYS_renameat2);
    pid_t next = fork();
    if (next == 0) {
        pairs(30);
        CHECK(write(recorded[1], &byte, 1) == 1 && read(go_on[0], &byte, 1) == 1);
        _exit(0);
    }
    CHECK(read(recorded[0], &byte, 1) == 1);
    CHECK(ptrace(PTRACE_DETACH, ended, NULL, (void *)SIGALRM) == 0);
    end_in_order(ended);
    CHECK(write(go_on[1], &byte, 1) == 1);
    end_in_order(next);
    printf("%d %d\n", ended, next);
    return 0;
}
