// Root becomes another user and root again, until a thread has made its pairs: `to_and_fro UID PAIRS`. Ends with 7.

#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "../check.h"
#include "../lifecycle/calls.h"

static atomic_int done;

static void *work(void *count) {
    for (long i = 0; i < (long)count; i++) {
        pairs(1);
        usleep(20);
    }
    done = 1;
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    pthread_t thread;
    pairs(10);
    CHECK(pthread_create(&thread, NULL, work, (void *)atol(argv[2])) == 0);
    while (!done)
        CHECK(seteuid((uid_t)atoi(argv[1])) == 0 && seteuid(0) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return 7;
}
