// Makes what is recorded: pairs of lock and unlock, a call that fails, a thread, a forked child, an exec of itself, which does the same with
// an argument.

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "../check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *lock(void *argument)
{
    for (int round = 0; round < 500; round++) {
        CHECK(pthread_mutex_lock(&mutex) == 0);
        CHECK(pthread_mutex_trylock(&mutex) != 0);
        CHECK(pthread_mutex_unlock(&mutex) == 0);
    }
    return argument;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    lock(NULL);
    CHECK(pthread_create(&thread, NULL, lock, NULL) == 0 && pthread_join(thread, NULL) == 0);
    int status;
    pid_t child = fork();
    if (child == 0) {
        lock(NULL);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    if (count == 1) {
        execl(arguments[0], arguments[0], "again", NULL);
        CHECK(0);
    }
    return 0;
}
