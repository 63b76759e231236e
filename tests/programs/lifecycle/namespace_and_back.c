// Locks and unlocks a mutex PAIRS times in a time namespace whose clock is a day ahead, and as often when it is back. With a second
// argument once before, when it has made the namespace, where only its children would be.
// Returns 7; 77 where the kernel or the user's rights have no time namespaces.

#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "calls.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static void must(int is_true) {
    if (!is_true)
        _exit(3);
}

int main(int argc, char **argv) {
    must(argc == 2 || argc == 3);
    int back = open("/proc/self/ns/time", O_RDONLY | O_CLOEXEC);
    if (back < 0 || unshare(CLONE_NEWTIME))
        _exit(77);
    int file = open("/proc/self/timens_offsets", O_WRONLY);
    must(file >= 0 && dprintf(file, "monotonic 86400 0\n") > 0 && close(file) == 0);
    int ahead = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
    if (argc == 3)
        pairs(1);
    must(ahead >= 0 && setns(ahead, CLONE_NEWTIME) == 0);
    pairs(atoi(argv[1]));
    must(setns(back, CLONE_NEWTIME) == 0);
    pairs(atoi(argv[1]));
    return 7;
}
