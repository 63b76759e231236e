// A thread that is cancelled while it waits, with a clean-up handler: `cancel WHERE`. Prints what the handler and the
// join found.

#define _GNU_SOURCE
#include <errno.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t ready, never;
static const char *where;
static int handled;

static void handler(void *argument) {
    handled += (int)(long)argument;
    // A wait on a condition variable that is cancelled has its mutex back.
    if (strncmp(where, "cond", 4) == 0 && pthread_mutex_unlock(&mutex))
        abort();
}

static void *sleeper(void *argument) {
    (void)argument;
    pause();
    return NULL;
}

static void *work(void *argument) {
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 3600;
    pthread_cleanup_push(handler, (void *)1);
    if (strncmp(where, "cond", 4) == 0)
        pthread_mutex_lock(&mutex);
    if (strcmp(where, "async") == 0)
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    sem_post(&ready);
    if (strcmp(where, "cond") == 0)
        for (;;)
            pthread_cond_wait(&cond, &mutex);
    else if (strcmp(where, "cond_timed") == 0)
        for (;;)
            pthread_cond_timedwait(&cond, &mutex, &limit);
    else if (strcmp(where, "sem") == 0)
        sem_wait(&never);
    else if (strcmp(where, "sem_timed") == 0)
        sem_timedwait(&never, &limit);
    else if (strcmp(where, "join") == 0)
        pthread_join(*(pthread_t *)argument, NULL);
    else if (strcmp(where, "sleep") == 0)
        sleep(3600);
    else if (strcmp(where, "async") == 0)
        for (volatile long i = 0;; i++)
            continue;
    else if (strcmp(where, "testcancel") == 0)
        for (;;)
            pthread_testcancel();
    pthread_cleanup_pop(0);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    where = argv[1];
    sem_init(&ready, 0, 0);
    sem_init(&never, 0, 0);
    pthread_t other, thread;
    if (strcmp(where, "join") == 0 && pthread_create(&other, NULL, sleeper, NULL))
        return 2;
    if (pthread_create(&thread, NULL, work, &other))
        return 2;
    sem_wait(&ready);
    // Time to fall asleep, for most runs; the outcome is the same when it has not.
    usleep(20000);
    void *result;
    if (pthread_cancel(thread) || pthread_join(thread, &result))
        return 2;
    printf("handled %d, cancelled %d\n", handled, result == PTHREAD_CANCELED);
    return pthread_mutex_trylock(&mutex);
}
