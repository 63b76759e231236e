// For programs that look whether descriptors are left open.

#pragma once
#include <fcntl.h>

// How many of the descriptors below 1024 are open.
static inline int open_descriptors(void) {
    int count = 0;
    for (int number = 0; number < 1024; number++)
        count += fcntl(number, F_GETFD) >= 0;
    return count;
}
