// A process whose children leave their trbufs to the next ones, and what becomes of it: `keeper WAY`.
//   last    it ends while the children do
//   daemon  it calls daemon, and goes on as that
//   setuid  it becomes the user 65534 for good, if it may
//   exec    it runs a program that is not recorded, which prints "executed"
//   filter  the same, after a filter that no hook sees: from then on it is fatal to remove a file
// Prints "done" when its children record. Who reads that to the end waits for all of them.

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../filter.h"
#include "calls.h"

enum { CHILDREN = 8 };

// They record, and end together.
static void make_children(void) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            char byte;
            CHECK(close(ends[1]) == 0);
            pairs(1);
            CHECK(read(ends[0], &byte, 1) == 0);
            exit(0);
        }
    }
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void forbid_removal(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unlink, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    filter_unseen(filter, sizeof filter / sizeof *filter);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    pairs(1);
    make_children();
    CHECK(write(STDOUT_FILENO, "done\n", 5) == 5);
    if (strcmp(argv[1], "last") == 0)
        return 0;
    while (wait(NULL) > 0)
        ;
    if (strcmp(argv[1], "daemon") == 0)
        CHECK(daemon(1, 1) == 0);
    else if (strcmp(argv[1], "setuid") == 0)
        CHECK(setuid(65534) == 0 || geteuid() != 0);
    else {
        if (strcmp(argv[1], "filter") == 0)
            forbid_removal();
        execle("/bin/echo", "echo", "executed", (char *)NULL, (char *[]){NULL});
    }
    pairs(1);
    return 0;
}
