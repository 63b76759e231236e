// Threads that share files make them at the same time: `crowd EACH PAIRS`.
//
// Starts EACH threads, then short ones until the kernel's numbers have come around to the same last three digits, then EACH
// more. When all are there each locks and unlocks a mutex of its own PAIRS times and ends. Prints `lwp NUMBER` for each.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EACH_MAX = 1000, SHARED = 4096 };

static pthread_barrier_t all_here;
static int pairs, each;
static pid_t numbers[2 * EACH_MAX];

static void *live(void *argument) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    *(pid_t *)argument = syscall(SYS_gettid);
    pthread_barrier_wait(&all_here);
    for (int i = 0; i < pairs; i++) {
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
    }
    return NULL;
}

static void *print_lwp(void *argument) {
    *(pid_t *)argument = syscall(SYS_gettid);
    return NULL;
}

static void start(pthread_t *thread, void *(*routine)(void *), pid_t *number) {
    pthread_attr_t attribute;
    pthread_attr_init(&attribute);
    pthread_attr_setstacksize(&attribute, 64 * 1024);
    if (pthread_create(thread, &attribute, routine, number))
        exit(3);
}

int main(int argc, char **argv) {
    if (argc != 3 || (each = atoi(argv[1])) < 1 || each > EACH_MAX)
        return 2;
    pairs = atoi(argv[2]);
    pthread_barrier_init(&all_here, NULL, 2 * each);
    static pthread_t threads[2 * EACH_MAX];
    pthread_t passing;
    pid_t first, now;
    start(&passing, print_lwp, &first);
    pthread_join(passing, NULL);
    for (int i = 0; i < each; i++)
        start(&threads[i], live, &numbers[i]);
    // Other processes take numbers too, so a few may be missed.
    do {
        start(&passing, print_lwp, &now);
        pthread_join(passing, NULL);
    } while ((unsigned)(now - first) % SHARED > 32);
    for (int i = each; i < 2 * each; i++)
        start(&threads[i], live, &numbers[i]);
    for (int i = 0; i < 2 * each; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2 * each; i++)
        printf("lwp %d\n", numbers[i]);
    return 0;
}
