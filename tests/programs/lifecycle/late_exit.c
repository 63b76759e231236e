// A library that is preloaded behind libthreadt: its `_exit` locks a mutex a thousand times before it ends the process.

#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"

void _exit(int status) {
    pairs(1000);
    for (;;)
        syscall(SYS_exit_group, status);
}
