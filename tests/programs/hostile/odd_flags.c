// `odd_flags FILE`: opens a file of its own with flags that hardly any program gives for a file, but the library does, gets
// a number by it that the library has used, and forks. Prints what the child reads there.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "../check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void pairs(void) {
    for (int i = 0; i < 10; i++)
        CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    pairs();
    int fd = open(argv[1], O_RDWR | O_CREAT | O_ASYNC | O_NONBLOCK | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, "own", 3) == 3);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char text[4] = "";
        CHECK(pread(fd, text, 3, 0) == 3);
        pairs();
        CHECK(pread(fd, text, 3, 0) == 3);
        puts(text);
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return WEXITSTATUS(status);
}
