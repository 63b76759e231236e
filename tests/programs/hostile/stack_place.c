// Prints where the stack is, modulo 128, in functions that libc calls: routines of threads, of pthread_once and call_once, handlers of
// pthread_atfork, atexit and at_quick_exit, destructors of a thread's values, cleanup handlers.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "../check.h"

/// The frame of the function that has this in it.
#define PLACE ((unsigned)(uintptr_t)__builtin_frame_address(0))

/// In the first thread, whose stack begins anywhere: below main.
static unsigned base;

static void print(const char *name, unsigned place)
{
    printf("%s %u\n", name, place & 127);
    fflush(stdout);
}

#define FUNCTION(name, ...)            \
    static void name(__VA_ARGS__)      \
    {                                  \
        print(#name, PLACE - base);    \
    }

FUNCTION(once, void)
FUNCTION(call_once_c11, void)
FUNCTION(before_fork, void)
FUNCTION(in_parent, void)
FUNCTION(in_child, void)
FUNCTION(at_end, void)
FUNCTION(at_quick_end, void)

static pthread_key_t key;

static void destructor(void *value)
{
    (void)value;
    print("destructor", PLACE);
}

static void clean_up(void *argument)
{
    (void)argument;
    print("clean_up", PLACE);
}

static void *returns(void *argument)
{
    print("returns", PLACE);
    CHECK(pthread_setspecific(key, argument) == 0);
    return argument;
}

static void *exits(void *argument)
{
    print("exits", PLACE);
    CHECK(pthread_setspecific(key, argument) == 0);
    pthread_cleanup_push(clean_up, argument);
    pthread_exit(argument);
    pthread_cleanup_pop(0);
}

static int returns_c11(void *argument)
{
    (void)argument;
    print("returns_c11", PLACE);
    return 5;
}

static void thread(void *(*routine)(void *))
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, routine, &base) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == &base);
}

int main(void)
{
    base = PLACE;
    CHECK(pthread_key_create(&key, destructor) == 0);
    thread(returns);
    thread(exits);
    thrd_t c11;
    int result;
    CHECK(thrd_create(&c11, returns_c11, NULL) == thrd_success);
    CHECK(thrd_join(c11, &result) == thrd_success && result == 5);
    static pthread_once_t control = PTHREAD_ONCE_INIT;
    CHECK(pthread_once(&control, once) == 0);
    static once_flag flag = ONCE_FLAG_INIT;
    call_once(&flag, call_once_c11);
    CHECK(pthread_atfork(before_fork, in_parent, in_child) == 0);
    CHECK(atexit(at_end) == 0 && at_quick_exit(at_quick_end) == 0);
    // One after the other, whoever of the two runs first.
    int turn[2];
    CHECK(pipe(turn) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(turn[1]);
        CHECK(read(turn[0], &result, 1) == 0);
        quick_exit(3);
    }
    close(turn[1]);
    CHECK(waitpid(child, &result, 0) == child && WEXITSTATUS(result) == 3);
    exit(0);
}
