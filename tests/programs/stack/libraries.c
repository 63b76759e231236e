// Opens and closes libraries, which come to be at each other's addresses, and calls them: `libraries MODE LIBRARY...`. Library N has
// the function `call_N`, which gets mutex N. The addresses of the mutexes are printed. At most four libraries.
//
// threads  four threads call libraries at the same time, whose mutexes are taken already
// COUNT    the first library is opened and closed so often; then each is called once, one after the other, and waits for its mutex

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../check.h"

typedef int call(pthread_mutex_t *, int);

static pthread_mutex_t mutexes[4];
static char **libraries;
static int count;
static int closings;
static call *last;

static void *open_library(int number, call **function) {
    char name[16];
    snprintf(name, sizeof name, "call_%d", number);
    void *handle = dlopen(libraries[number], RTLD_NOW);
    CHECK(handle);
    *function = (call *)dlsym(handle, name);
    CHECK(*function);
    return handle;
}

static void *wait_in_library(void *argument) {
    int number = (int)(long)argument;
    call *function;
    for (int i = 0; number == 0 && i < closings; i++)
        CHECK(!dlclose(open_library(0, &function)));
    void *handle = open_library(number, &function);
    // At another address there would be nothing to mix up.
    CHECK(!last || last == function);
    last = function;
    CHECK(!function(&mutexes[number], 0));
    CHECK(!dlclose(handle));
    return NULL;
}

static void *try_in_libraries(void *argument) {
    unsigned random = (unsigned)(long)argument * 7919 + 1;
    for (int i = 0; i < 100; i++) {
        call *function;
        int number = rand_r(&random) % count;
        void *handle = open_library(number, &function);
        for (int calls = rand_r(&random) % 3; calls >= 0; calls--)
            CHECK(function(&mutexes[number], 1) == EBUSY);
        CHECK(!dlclose(handle));
    }
    return NULL;
}

int main(int argc, char **argv) {
    libraries = argv + 2;
    count = argc - 2;
    for (int i = 0; i < count; i++) {
        printf("%p\n", (void *)&mutexes[i]);
        CHECK(!pthread_mutex_lock(&mutexes[i]));
    }
    fflush(stdout);
    pthread_t threads[4];
    if (!strcmp(argv[1], "threads")) {
        for (long i = 0; i < 4; i++)
            CHECK(!pthread_create(&threads[i], NULL, try_in_libraries, (void *)i));
        for (int i = 0; i < 4; i++)
            CHECK(!pthread_join(threads[i], NULL));
        return 0;
    }
    closings = atoi(argv[1]);
    for (long i = 0; i < count; i++) {
        CHECK(!pthread_create(&threads[i], NULL, wait_in_library, (void *)i));
        // Until the thread waits.
        while (__atomic_load_n(&mutexes[i].__data.__lock, __ATOMIC_RELAXED) != 2)
            usleep(1000);
        CHECK(!pthread_mutex_unlock(&mutexes[i]));
        CHECK(!pthread_join(threads[i], NULL));
    }
    return 0;
}
