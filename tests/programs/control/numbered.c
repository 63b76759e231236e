// Threads make numbered calls (pthread_setspecific), and lock a mutex that all of them share, until the file `stop` appears in the
// working directory, and once after that. `numbered THREADS NANOSECONDS [fork]`: so long is the time between two calls; with `fork` a child does the
// same with one thread. Prints "ready" when all threads have begun.

#include <pthread.h>
#include <sys/wait.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../check.h"

static pthread_key_t key;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int begun, ends;
static long pause_ns;

static void *call(void *unused) {
    (void)unused;
    atomic_fetch_add(&begun, 1);
    int is_last = 0;
    for (uintptr_t number = 1; !is_last; number++) {
        is_last = ends;
        CHECK(pthread_setspecific(key, (void *)number) == 0);
        CHECK(pthread_mutex_lock(&mutex) == 0);
        CHECK(pthread_mutex_unlock(&mutex) == 0);
        struct timespec pause = {0, pause_ns};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int threads = atoi(argv[1]);
    pause_ns = atol(argv[2]);
    CHECK(pthread_key_create(&key, NULL) == 0);
    pid_t child = argc > 3 ? fork() : 1;
    CHECK(child >= 0);
    if (child == 0)
        threads = 1;
    pthread_t ids[threads];
    for (int index = 0; index < threads; index++)
        CHECK(pthread_create(&ids[index], NULL, call, NULL) == 0);
    while (begun < threads)
        usleep(1000);
    printf("%s %d\n", child == 0 ? "child" : "ready", (int)getpid());
    fflush(stdout);
    while (access("stop", F_OK) != 0)
        usleep(1000);
    ends = 1;
    for (int index = 0; index < threads; index++)
        CHECK(pthread_join(ids[index], NULL) == 0);
    if (child > 1)
        CHECK(waitpid(child, NULL, 0) == child);
    return 0;
}
