// inherits NUMBER PROGRAM ARGUMENTS...: becomes the program, with the library $PRELOAD if that is set, under a seccomp filter that kills for
// this system call.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "../check.h"

int main(int count, char **arguments)
{
    CHECK(count > 2);
    unsigned number = (unsigned)atoi(arguments[1]);
    const char *library = getenv("PRELOAD");
    if (library != NULL)
        CHECK(setenv("LD_PRELOAD", library, 1) == 0);
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = 4, .filter = instructions};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
    execv(arguments[2], arguments + 2);
    CHECK(0);
}
