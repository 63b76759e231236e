// The main thread holds a mutex, for which a thread waits, until the file `go` appears in the working directory.

#include <pthread.h>
#include <unistd.h>

#include "../check.h"

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_the_queue(void *unused) {
    (void)unused;
    CHECK(pthread_mutex_lock(&queue_lock) == 0);
    CHECK(pthread_mutex_unlock(&queue_lock) == 0);
    return NULL;
}

int main(void) {
    pthread_t thread;
    CHECK(pthread_mutex_lock(&queue_lock) == 0);
    CHECK(pthread_create(&thread, NULL, wait_for_the_queue, NULL) == 0);
    CHECK(write(1, "ready\n", 6) == 6);
    while (access("go", F_OK) != 0)
        usleep(1000);
    CHECK(pthread_mutex_unlock(&queue_lock) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return 7;
}
