// Uses mutexes that a report has names for, each at lines that the test finds by their comments, in functions of which some are inlined.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../check.h"

struct queue {
    long length;
    pthread_mutex_t lock;
};

struct table {
    int count;
    struct {
        char label[3];
        pthread_mutex_t lock;
    } rows[2][4];
};

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static struct table table;

static __attribute__((noinline)) struct queue *new_queue(void) {
    struct queue *queue = malloc(sizeof *queue);
    CHECK(queue && !pthread_mutex_init(&queue->lock, NULL)); // new_queue
    return queue;
}

static inline __attribute__((always_inline)) void take(pthread_mutex_t *mutex) {
    pthread_mutex_lock(mutex); // take
    __asm__ volatile("" ::: "memory");
}

static void *worker(void *argument) {
    take(&queue_lock); // worker
    pthread_mutex_unlock(&queue_lock);
    take(&table.rows[1][2].lock);
    pthread_mutex_unlock(&table.rows[1][2].lock);
    return argument;
}

static void *named(void *argument) {
    pthread_setname_np(pthread_self(), "given");
    return argument;
}

// Calls pthread_mutex_lock from code that is in no file.
static void lock_from_memory(pthread_mutex_t *mutex) {
    // sub $8, %rsp; movabs $pthread_mutex_lock, %rax; call *%rax; add $8, %rsp; ret
    unsigned char code[] = "\x48\x83\xec\x08\x48\xb8........\xff\xd0\x48\x83\xc4\x08\xc3";
    int (*lock)(pthread_mutex_t *) = pthread_mutex_lock;
    memcpy(code + 6, &lock, sizeof lock);
    void *memory = mmap(NULL, sizeof code, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    memcpy(memory, code, sizeof code);
    int (*copy)(pthread_mutex_t *);
    memcpy(&copy, &memory, sizeof copy);
    CHECK(!copy(mutex));
    pthread_mutex_unlock(mutex);
}

int main(void) {
    pthread_t threads[2];
    pthread_mutex_t *zeroed = calloc(1, sizeof *zeroed);
    struct queue *queues[2] = {new_queue(), new_queue()};
    CHECK(zeroed);
    take(zeroed);
    pthread_mutex_unlock(zeroed);
    lock_from_memory(&queues[0]->lock);
    CHECK(!pthread_create(&threads[0], NULL, worker, NULL));
    CHECK(!pthread_create(&threads[1], NULL, named, NULL));
    for (int index = 0; index < 2; index++) {
        pthread_join(threads[index], NULL);
        pthread_mutex_lock(&queues[index]->lock);
        pthread_mutex_unlock(&queues[index]->lock);
        free(queues[index]);
    }
    free(zeroed);
    return 0;
}
