// Closes all descriptors and opens files of its own at full speed, while other threads record: `closing ROUNDS FILE`.
//
// Prints how often a descriptor of its own was bad, and how often its file held anything but what it wrote.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lifecycle/calls.h"
#include "busy.h"

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    pthread_t thread;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread, NULL, work, NULL))
            return 2;
    long bad = 0, foreign = 0;
    for (long round = 0, rounds = atol(argv[1]); round < rounds; round++) {
        if (close_range(3, ~0U, 0))
            return 2;
        int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
            return 3;
        if (write(fd, "mine", 4) != 4)
            bad++;
        for (volatile int pause = 0; pause < 3000; pause++)
            ;
        struct stat stat;
        if (fstat(fd, &stat))
            bad++;
        else if (stat.st_size != 4)
            foreign++;
        if (close(fd))
            bad++;
    }
    printf("%ld %ld\n", bad, foreign);
    fflush(stdout);
    _exit(0);
}
