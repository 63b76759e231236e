// Threads that hand locks to each other as fast as they can, until the process ends: `cut_off exit|_exit|quick_exit|exec`.

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, ENOUGH = 3000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static volatile long turns;

static void *work(void *argument) {
    (void)argument;
    for (;;) {
        pthread_mutex_lock(&mutex);
        turns++;
        pthread_mutex_unlock(&mutex);
        pthread_rwlock_wrlock(&rwlock);
        turns++;
        pthread_rwlock_unlock(&rwlock);
        sem_wait(&semaphore);
        turns++;
        sem_post(&semaphore);
        // On a busy machine main may get no turn for long; the trace stays small.
        if (turns > 10 * ENOUGH)
            usleep(100);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    sem_init(&semaphore, 0, 1);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL))
            return 2;
    }
    while (turns < ENOUGH)
        usleep(100);
    if (strcmp(argv[1], "exit") == 0)
        exit(0);
    if (strcmp(argv[1], "_exit") == 0)
        _exit(0);
    if (strcmp(argv[1], "quick_exit") == 0)
        quick_exit(0);
    execlp("true", "true", NULL);
    return 2;
}
