// Two threads lock and unlock a mutex 100 times each; a forked child does it five times. Prints the mutex's address.

#include "../check.h"
#include <pthread.h>
#include <sys/wait.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *argument)
{
    for (int round = 0; round < 100; round++) {
        errno = 77;
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        CHECK(errno == 77);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    for (int index = 0; index < 2; index++)
        CHECK(!pthread_create(&threads[index], NULL, work, NULL));
    for (int index = 0; index < 2; index++)
        CHECK(!pthread_join(threads[index], NULL));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        for (int round = 0; round < 5; round++) {
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
        }
        return 0;
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    printf("%p\n", (void *)&lock);
    return 0;
}
