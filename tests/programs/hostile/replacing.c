// Gives its file numbers that it has never opened, again and again, while other threads record: `replacing FILE ROUNDS`.
//
// Prints how many calls failed, how often a number led to another file afterwards, and the size of its file, to which it has
// written 5 bytes; ends with 7.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "../check.h"
#include "busy.h"

enum { FIRST = 4, END = 72 };

static int replace(int way, int file, int number) {
    switch (way % 4) {
    case 0:
        return dup2(file, number);
    case 1:
        return dup3(file, number, O_CLOEXEC);
    case 2:
        return (int)syscall(SYS_dup2, file, number);
    default:
        return (int)syscall(SYS_dup3, file, number, 0);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && file < FIRST && write(file, "mine\n", 5) == 5);
    struct stat own, found;
    CHECK(fstat(file, &own) == 0);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    long failed = 0, foreign = 0;
    for (int round = 0, rounds = atoi(argv[2]); round < rounds; round++) {
        for (int number = FIRST; number < END; number++)
            if (replace(round + number, file, number) != number)
                failed++;
        for (int number = FIRST; number < END; number++) {
            if (fstat(number, &found) || found.st_ino != own.st_ino || found.st_dev != own.st_dev)
                foreign++;
            if (close(number))
                failed++;
        }
    }
    ended = 1;
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(fstat(file, &own) == 0);
    printf("%ld %ld %ld\n", failed, foreign, (long)own.st_size);
    return 7;
}
