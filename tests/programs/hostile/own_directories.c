// A program that holds directories by O_PATH, as safe walks along paths do, and has closed standard descriptors.
//
// `own_directories threads`: its standard input is closed, so that the first of two such directories gets number 0; four threads lock
// and unlock PAIRS times meanwhile. `own_directories daemon`: it closes its standard descriptors, locks a mutex, opens /dev/null in their
// place and a directory, and forks a child that uses it. Prints how many of the directories were lost.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../check.h"

#define PAIRS 20000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *lock(void *pairs) {
    for (long pair = 0; pair < (long)pairs; pair++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static int directory(const char *path) {
    int number = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    CHECK(number >= 0);
    return number;
}

static int is_lost(int number) {
    struct stat status;
    return fstat(number, &status) != 0;
}

static int lost_by_threads(void) {
    int first = directory("/etc"), second = directory("/etc");
    pthread_t threads[4];
    CHECK(first == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, lock, (void *)PAIRS) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return is_lost(first) + is_lost(second);
}

static int lost_by_daemon(void) {
    int status;
    for (int number = 0; number < 3; number++)
        close(number);
    lock((void *)1);
    CHECK(open("/dev/null", O_RDWR) == 0 && dup(0) == 1 && dup(0) == 2);
    int own = directory("/etc");
    pid_t child = fork();
    if (child == 0)
        _exit(is_lost(own));
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status) + is_lost(own);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    int output = fcntl(1, F_DUPFD_CLOEXEC, 20);
    CHECK(output >= 20);
    dprintf(output, "%d\n", strcmp(argv[1], "daemon") == 0 ? lost_by_daemon() : lost_by_threads());
    return 0;
}
