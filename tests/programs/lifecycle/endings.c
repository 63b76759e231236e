// Ends in one way or another, with calls at every stage of its life: `endings MODE`.
//
// One pair of calls in a constructor, two in main, three in each of two workers, four in a handler of exit or
// quick_exit, five in a destructor. With main_pthread_exit the workers make theirs when main has gone; with executes the handler of
// quick_exit then executes this program with _exit.

#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "calls.h"

static int late;
static const char *executed;

__attribute__((constructor)) static void before_main(void) {
    pairs(1);
}

__attribute__((destructor)) static void after_main(void) {
    pairs(5);
}

static void handler(void) {
    pairs(4);
    if (executed)
        execl(executed, executed, "_exit", NULL);
}

static void *work(void *main_thread) {
    if (late && pthread_join(*(pthread_t *)main_thread, NULL))
        abort();
    pairs(3);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    const char *mode = argv[1];
    late = strcmp(mode, "main_pthread_exit") == 0;
    atexit(handler);
    at_quick_exit(handler);
    pairs(2);
    // Only one thread can join main: the other takes a detached start.
    static pthread_t self;
    self = pthread_self();
    pthread_t workers[2];
    for (int i = 0; i < 2; i++) {
        if (pthread_create(&workers[i], NULL, work, &self))
            return 2;
        if (late)
            break;
    }
    if (late) {
        pthread_detach(workers[0]);
        pthread_exit((void *)0x77);
    }
    for (int i = 0; i < 2; i++)
        if (pthread_join(workers[i], NULL))
            return 2;
    if (strcmp(mode, "exit") == 0)
        exit(31);
    if (strcmp(mode, "_exit") == 0)
        _exit(32);
    if (strcmp(mode, "_Exit") == 0)
        _Exit(33);
    if (strcmp(mode, "executes") == 0)
        executed = argv[0];
    if (strcmp(mode, "quick_exit") == 0 || executed)
        quick_exit(34);
    return 35;
}
