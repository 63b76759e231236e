// A program that has closed its standard descriptors and goes on using them: `closed_standard HOW PAIRS RESULT`.
//
// HOW is `before` if they are closed already, or else what closes them while threads record: `close`, `syscall`,
// `close_range`, or `close-own-table`: then one of the threads that record has left the table of descriptors before, where the
// three stay open. Two threads write to each of the three numbers, and read the first one, all the time; two others lock and
// unlock a mutex PAIRS times each. Writes to the file RESULT how often a number was one that can be read or written after
// they were closed, and how many of the numbers are open in the end.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "../check.h"

static atomic_int closed, done, left;
static atomic_long used;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *use(void *argument) {
    char byte;
    while (!atomic_load(&closed) && !atomic_load(&done))
        ;
    while (!atomic_load(&done)) {
        for (int fd = 0; fd < 3; fd++)
            if (write(fd, "the program's own line\n", 23) >= 0 || errno != EBADF)
                atomic_fetch_add(&used, 1);
        if (read(0, &byte, 1) >= 0 || errno != EBADF)
            atomic_fetch_add(&used, 1);
    }
    return argument;
}

static void *lock(void *pairs) {
    for (long pair = 0; pair < (long)pairs; pair++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *leave_and_lock(void *pairs) {
    CHECK(unshare(CLONE_FILES) == 0);
    atomic_store(&left, 1);
    return lock(pairs);
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    int result = open(argv[3], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(result >= 0 && (result = fcntl(result, F_DUPFD_CLOEXEC, 10)) >= 10);
    if (strcmp(argv[1], "before") == 0) {
        close(0);
        atomic_store(&closed, 1);
    }
    int leaves = strcmp(argv[1], "close-own-table") == 0;
    pthread_t users[2], lockers[2];
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&users[i], NULL, use, NULL) == 0);
        CHECK(pthread_create(&lockers[i], NULL, leaves && i ? leave_and_lock : lock, (void *)strtol(argv[2], NULL, 10)) == 0);
    }
    if (strcmp(argv[1], "before") != 0)
        usleep(2000);
    while (leaves && !atomic_load(&left))
        sched_yield();
    for (int fd = 0; fd < 3; fd++)
        if (strncmp(argv[1], "close", 5) == 0 && strcmp(argv[1], "close_range") != 0)
            CHECK(close(fd) == 0);
        else if (strcmp(argv[1], "syscall") == 0)
            CHECK(syscall(SYS_close, fd) == 0);
    if (strcmp(argv[1], "close_range") == 0)
        CHECK(syscall(SYS_close_range, 0, 2, 0) == 0);
    atomic_store(&closed, 1);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(lockers[i], NULL) == 0);
    atomic_store(&done, 1);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(users[i], NULL) == 0);
    int open_ones = 0;
    for (int fd = 0; fd < 3; fd++)
        open_ones += fcntl(fd, F_GETFD) >= 0;
    CHECK(dprintf(result, "%ld %d\n", atomic_load(&used), open_ones) > 0);
    return 0;
}
