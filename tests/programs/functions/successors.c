// Opens libraries that come to be at each other's addresses, and calls them: `successors one-by-one|threads LIBRARY...`. Library N has
// the function `call_N`. Prints how often each was called. At most four libraries.
//
// one-by-one  each is opened, called ten times and closed, also in a forked child; then the first once more
// threads     four threads open, call and close libraries at the same time

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../check.h"

typedef void call(void);

static char **libraries;
static int count;
static int calls[4];
static call *last;

static void call_library(int number, int times) {
    char name[16];
    snprintf(name, sizeof name, "call_%d", number);
    void *handle = dlopen(libraries[number], RTLD_NOW);
    CHECK(handle);
    call *function = (call *)dlsym(handle, name);
    CHECK(function);
    for (int i = 0; i < times; i++)
        function();
    __atomic_fetch_add(&calls[number], times, __ATOMIC_RELAXED);
    __atomic_store_n(&last, function, __ATOMIC_RELAXED);
    CHECK(!dlclose(handle));
}

static void call_one_by_one(void) {
    call *first = NULL;
    for (int i = 0; i <= count; i++) {
        call_library(i % count, 10);
        // At another address there would be nothing to mix up.
        CHECK(!first || last == first);
        first = last;
    }
}

static void *call_at_random(void *argument) {
    unsigned random = (unsigned)(long)argument * 7919 + 1;
    for (int i = 0; i < 300; i++)
        call_library(rand_r(&random) % count, 1 + rand_r(&random) % 3);
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc > 3);
    libraries = argv + 2;
    count = argc - 2;
    if (strcmp(argv[1], "threads")) {
        call_one_by_one();
        pid_t child = fork();
        CHECK(child >= 0);
        call_one_by_one();
        if (child == 0)
            return 0;
        CHECK(waitpid(child, NULL, 0) == child);
        for (int i = 0; i < count; i++)
            calls[i] = calls[i] / 2 * 3;
    } else {
        pthread_t threads[4];
        for (long i = 0; i < 4; i++)
            CHECK(!pthread_create(&threads[i], NULL, call_at_random, (void *)i));
        for (int i = 0; i < 4; i++)
            CHECK(!pthread_join(threads[i], NULL));
    }
    for (int i = 0; i < count; i++)
        printf("%d\n", calls[i]);
    return 0;
}
