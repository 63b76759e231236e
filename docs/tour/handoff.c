// The main thread hands a number over to another thread, which waits for it.

#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static sem_t is_ready;
static int number;

static void *consume(void *unused) {
    pthread_mutex_lock(&lock);
    sem_post(&is_ready);
    while (number == 0)
        pthread_cond_wait(&arrived, &lock);
    printf("got %d\n", number);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t consumer;
    sem_init(&is_ready, 0, 0);
    pthread_create(&consumer, NULL, consume, NULL);
    pthread_setname_np(consumer, "consumer");
    // The consumer has the lock until it waits.
    sem_wait(&is_ready);
    pthread_mutex_lock(&lock);
    number = 7;
    pthread_cond_signal(&arrived);
    pthread_mutex_unlock(&lock);
    pthread_join(consumer, NULL);
    return 0;
}
