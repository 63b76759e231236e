// Has a blocked signal that is pending, forbids itself by a filter to change the mask of signals in one way, and makes N pairs of lock and
// unlock: `refused_mask HOW ERRNO N`, with the number of SIG_BLOCK or SIG_SETMASK, and the errno of the filter's answer, which may be 0.
// Ends with 7 if the signal is still pending, and no other one is blocked.

#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void handle(int signal) {
    (void)signal;
    _exit(3);
}

static void forbid(int how, int errno_value) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, how, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | errno_value),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    sigset_t set, pending;
    unsigned long blocked;
    CHECK(signal(SIGUSR1, handle) != SIG_ERR && sigemptyset(&set) == 0 && sigaddset(&set, SIGUSR1) == 0);
    CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0 && raise(SIGUSR1) == 0);
    forbid(atoi(argv[1]), atoi(argv[2]));
    for (int i = 0; i < atoi(argv[3]); i++)
        CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1);
    CHECK(syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, NULL, &blocked, sizeof blocked) == 0);
    CHECK(blocked == 1ul << (SIGUSR1 - 1));
    _exit(7);
}
