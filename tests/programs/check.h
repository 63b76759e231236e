// Ends a program that does not get what it needs.

#pragma once
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                           \
    do                                                             \
        if (!(condition)) {                                        \
            printf("line %d: %s\n", __LINE__, strerror(errno));    \
            fflush(stdout);                                        \
            _exit(3);                                              \
        }                                                          \
    while (0)
