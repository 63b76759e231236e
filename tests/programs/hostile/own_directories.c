// A program that holds directories by O_PATH, as safe walks along paths do, and has closed standard descriptors.
//
// `own_directories threads`: its standard input is closed, so that the first of two such directories gets number 0; four threads lock
// and unlock PAIRS times meanwhile. `own_directories daemon`: it closes its standard descriptors, locks a mutex, opens /dev/null in their
// place and a directory, and forks a child that uses it. `own_directories forks`: its standard input is closed, and it opens files while a
// thread posts, so that the library does not always get the number; then directories, and forks a child, time after time. Prints how many of
// the directories were lost.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"

#define PAIRS 20000

static volatile int holds_directories;
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
    int first = directory("/"), second = directory("/");
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
    int own = directory("/");
    pid_t child = fork();
    if (child == 0)
        _exit(is_lost(own));
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status) + is_lost(own);
}

static void *post(void *unused) {
    sem_t semaphore;
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    for (;;) {
        CHECK(sem_post(&semaphore) == 0);
        if (holds_directories)
            usleep(50);
    }
    return unused;
}

static int lost_by_forks(void) {
    enum { ROUNDS = 30, OPENINGS = 400, DIRECTORIES = 8 };
    int numbers[1 + DIRECTORIES], status, lost = 0;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, post, NULL) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < OPENINGS; i++) {
            numbers[0] = open("/dev/null", O_RDONLY);
            numbers[1] = open("/dev/null", O_RDONLY);
            close(numbers[0]);
            close(numbers[1]);
        }
        numbers[0] = open("/dev/null", O_RDONLY);
        for (int i = 1; i <= DIRECTORIES; i++)
            numbers[i] = directory("/");
        holds_directories = 1;
        pid_t child = fork();
        if (child == 0) {
            int lost_here = 0;
            for (int i = 1; i <= DIRECTORIES; i++)
                lost_here += is_lost(numbers[i]);
            _exit(lost_here);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
        lost += WEXITSTATUS(status);
        holds_directories = 0;
        for (int i = 0; i <= DIRECTORIES; i++)
            close(numbers[i]);
    }
    return lost;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    int output = fcntl(1, F_DUPFD_CLOEXEC, 20);
    CHECK(output >= 20);
    int lost = strcmp(argv[1], "daemon") == 0 ? lost_by_daemon()
               : strcmp(argv[1], "forks") == 0 ? lost_by_forks()
                                               : lost_by_threads();
    dprintf(output, "%d\n", lost);
    return 0;
}
