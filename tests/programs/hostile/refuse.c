// Runs a program on a kernel that lacks something: `refuse WHAT PROGRAM ARGUMENT...`, where WHAT is a list of
//
//   membarrier     the call does not exist
//   wipeonfork     madvise knows no MADV_WIPEONFORK
//   renameat2, prctl               the call does not exist
//   fallocate                      the file system cannot do that
//   adjtimex       the call kills, as in a service that may not set clocks
//
// A seccomp filter answers as such a kernel does, also to the program's children.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void answer(int call, int advice, unsigned action) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, advice, 0, advice < 0 ? 0 : 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) {
        perror("seccomp");
        _exit(2);
    }
}

static void refuse(int call, int advice, int error) {
    answer(call, advice, SECCOMP_RET_ERRNO | error);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    if (strstr(argv[1], "membarrier"))
        refuse(SYS_membarrier, -1, ENOSYS);
    if (strstr(argv[1], "wipeonfork"))
        refuse(SYS_madvise, MADV_WIPEONFORK, EINVAL);
    if (strstr(argv[1], "renameat2"))
        refuse(SYS_renameat2, -1, ENOSYS);
    if (strstr(argv[1], "fallocate"))
        refuse(SYS_fallocate, -1, EOPNOTSUPP);
    if (strstr(argv[1], "prctl"))
        refuse(SYS_prctl, -1, ENOSYS);
    if (strstr(argv[1], "adjtimex"))
        answer(SYS_adjtimex, -1, SECCOMP_RET_KILL_PROCESS);
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 2;
}
