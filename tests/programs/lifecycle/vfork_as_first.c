// Makes pairs of lock and unlock before and after a vfork child that is the first process of a PID namespace, and so has this one's ID
// where this is the first of another. Returns 7; 77 where the user's rights have no namespaces.

#define _GNU_SOURCE
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

int main(void) {
    pairs(10);
    if (unshare(CLONE_NEWPID))
        return 77;
    pid_t child = vfork();
    if (child == 0)
        _exit(0);
    if (child < 0 || waitpid(child, NULL, 0) != child)
        return 3;
    pairs(10);
    return 7;
}
