/*
 * Sends signal 0 to a thread that has ended, by each way of naming pthread_kill, and prints what that returned: an old
 * version says ESRCH, the one of glibc 2.34 says 0.
 *
 *     versions LIBRARY
 *
 * The library is this file built with -shared -nostdlib -DLIBRARY: its reference has no version.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>

#ifdef LIBRARY

int unversioned_kill(pthread_t thread, int signal) { return pthread_kill(thread, signal); }

#else

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int kill_function(pthread_t, int);

kill_function old_kill;
__asm__(".symver old_kill,pthread_kill@GLIBC_2.2.5");

static volatile pid_t lwp;

static void *returns(void *argument) {
    lwp = gettid();
    return argument;
}

static void try(const char *way, kill_function *function, pthread_t thread) {
    if (!function) exit(3);
    printf("%s: %s\n", way, strerror(function(thread, 0)));
}

int main(int count, char **arguments) {
    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, returns, NULL)) return 1;
    char path[64];
    while (!lwp) usleep(1000);
    snprintf(path, sizeof path, "/proc/self/task/%d", lwp);
    while (access(path, F_OK) == 0) usleep(1000);

    try("by the old version", old_kill, thread);
    try("by the default version", pthread_kill, thread);
    try("without a version", (kill_function *)dlsym(library, "unversioned_kill"), thread);
    try("by dlsym", (kill_function *)dlsym(RTLD_DEFAULT, "pthread_kill"), thread);
    try("by dlvsym, the old version", (kill_function *)dlvsym(RTLD_DEFAULT, "pthread_kill", "GLIBC_2.2.5"), thread);
    return 0;
}

#endif
