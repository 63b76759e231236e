// Closes all descriptors and opens files of its own at full speed, while other threads record:
// `closing ROUNDS FILE THREADS HOW`. HOW: by which function it closes them. With `child` a child does, which uses its memory and
// its table of descriptors while it waits.
//
// Prints how often a descriptor of its own was bad, and how often its file held anything but what it wrote.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../instruction.h"
#include "../lifecycle/calls.h"
#include "busy.h"

static int close_in_child(void *unused) {
    (void)unused;
    _exit(close_range(3, ~0U, 0) != 0);
}

static int close_all(const char *how) {
    if (strcmp(how, "close_range") == 0)
        return close_range(3, ~0U, 0);
    if (strcmp(how, "closefrom") == 0)
        closefrom(3);
    else if (strcmp(how, "syscall") == 0)
        return syscall(SYS_close_range, 3, ~0U, 0);
    else if (strcmp(how, "close") == 0)
        for (int fd = 3; fd < 80; fd++)
            close(fd);
    else if (strcmp(how, "child") == 0) {
        static _Alignas(16) char stack[65536];
        int status;
        pid_t child = clone(close_in_child, stack + sizeof stack, CLONE_VM | CLONE_FILES | CLONE_VFORK | SIGCHLD, NULL);
        return child < 0 || waitpid(child, &status, 0) != child || status != 0;
    } else {
        // Without a function of libc's.
        return by_instruction(SYS_close_range, 3, ~0U, 0);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    pthread_t thread;
    for (int i = 0, threads = atoi(argv[3]); i < threads; i++)
        if (pthread_create(&thread, NULL, work, NULL))
            return 2;
    long bad = 0, foreign = 0;
    long rounds = atol(argv[1]), calls = 0;
    // On a busy machine the threads may begin late, or record gigabytes before the last round.
    for (long round = 0; (round < rounds && calls < 2000000) || calls < 1000; round++) {
        calls = __atomic_load_n(&busy_pairs, __ATOMIC_RELAXED);
        if (close_all(argv[4]))
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
