// Which descriptors a process has that the program did not open.

#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KNOWN = 1024 };
static char known[KNOWN];

// What is open now is the program's.
static inline void note_known(void) {
    for (int fd = 0; fd < KNOWN; fd++)
        known[fd] = fcntl(fd, F_GETFD) >= 0;
}

// How many descriptors are open that are not known, but for the directory's own; the last one's target.
static inline int foreign(char *target, size_t size) {
    int found = 0;
    DIR *directory = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(directory));) {
        int fd = atoi(entry->d_name);
        if (fd >= KNOWN || (!known[fd] && fd != dirfd(directory))) {
            char path[300];
            snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
            ssize_t length = readlink(path, target, size - 1);
            target[length < 0 ? 0 : length] = 0;
            found++;
        }
    }
    closedir(directory);
    return found;
}
