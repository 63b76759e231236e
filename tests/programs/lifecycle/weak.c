/*
 * Asks for functions as programs do that can do without them: before glibc 2.34 those of libpthread are not there.
 *
 *     weak NAME...        what weak references and dlsym find: in a library that comes before the program, and here; of NAME@VERSION
 *                         what dlvsym finds
 *     weak open PLUGIN    opens a plugin that is linked with libpthread, and has it create a thread
 *
 * The library is this file built with -DLIBRARY, the plugin with -DPLUGIN. The linker drops libpthread from the program and
 * the library, which have only weak references to it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>

#ifdef PLUGIN

static void *returns(void *argument) { return argument; }

int plugin(void) {
    pthread_mutexattr_t attr;
    pthread_mutex_t mutex;
    pthread_t thread;
    if (pthread_create(&thread, NULL, returns, NULL) || pthread_join(thread, NULL)) return 1;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &attr);
    for (int depth = 1; depth <= 2; depth++) {
        if (pthread_mutex_lock(&mutex)) return 2;
    }
    for (int depth = 1; depth <= 2; depth++) {
        if (pthread_mutex_unlock(&mutex)) return 3;
    }
    return 0;
}

#else

#pragma weak pthread_create
#pragma weak pthread_join
#pragma weak pthread_kill
#pragma weak pthread_once
#pragma weak pthread_rwlock_rdlock
#pragma weak sem_post

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int initialised;

static void initialise(void) { initialised++; }

/* Initialises as gnulib and libselinux do, and prints what is there. */
static void ask(const char *who) {
    if (pthread_once) {
        printf("%s: pthread_once returned %d, ", who, pthread_once(&once, initialise));
    } else {
        initialise();
        printf("%s: no pthread_once, ", who);
    }
    printf("initialised: %d\n", initialised);
    void *functions[] = {pthread_create, pthread_join, pthread_kill, pthread_rwlock_rdlock, sem_post};
    for (unsigned index = 0; index < sizeof functions / sizeof *functions; index++) {
        printf("%s: %u %s\n", who, index, functions[index] ? "there" : "null");
    }
}

#ifdef LIBRARY

__attribute__((constructor)) static void construct(void) { ask("constructor"); }

void library(void) { ask("library"); }

#else

#include <dlfcn.h>
#include <string.h>

void library(void);

int main(int count, char **arguments) {
    ask("program");
    library();
    if (count == 3 && strcmp(arguments[1], "open") == 0) {
        void *opened = dlopen(arguments[2], RTLD_NOW);
        int (*plugin)(void) = opened ? (int (*)(void))dlsym(opened, "plugin") : NULL;
        if (!plugin) {
            fprintf(stderr, "%s\n", dlerror());
            return 9;
        }
        ask("after dlopen");
        return plugin();
    }
    for (int index = 1; index < count; index++) {
        char *name = arguments[index], *version = strchr(name, '@');
        if (version)
            *version++ = '\0';
        void *found = version ? dlvsym(RTLD_DEFAULT, name, version) : dlsym(RTLD_DEFAULT, name);
        printf("%s: %s %s\n", version ? version : "dlsym", name, found ? "there" : "null");
    }
    return 0;
}

#endif
#endif
