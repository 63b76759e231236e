// Root is another user for a while: `other_user UID PAIRS`. A thread makes its first PAIRS pairs meanwhile, and as many when the
// program is root again and another thread has made PAIRS. The main thread makes 10 first. Ends with 7.

#define _GNU_SOURCE
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#include "../check.h"
#include "../lifecycle/calls.h"

static sem_t half, again;

static void *work(void *count) {
    pairs((int)(long)count);
    return NULL;
}

static void *work_twice(void *count) {
    work(count);
    sem_post(&half);
    sem_wait(&again);
    return work(count);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    void *count = (void *)atol(argv[2]);
    pthread_t threads[2];
    sem_init(&half, 0, 0);
    sem_init(&again, 0, 0);
    pairs(10);
    CHECK(seteuid((uid_t)atoi(argv[1])) == 0);
    CHECK(pthread_create(&threads[0], NULL, work_twice, count) == 0);
    sem_wait(&half);
    CHECK(seteuid(0) == 0);
    CHECK(pthread_create(&threads[1], NULL, work, count) == 0 && pthread_join(threads[1], NULL) == 0);
    sem_post(&again);
    CHECK(pthread_join(threads[0], NULL) == 0);
    return 7;
}
