/*
 * Functions that the dynamic linker binds by calling a resolver (IFUNC), whose resolvers lock. A library's resolvers run while
 * the libraries ahead of it, preloaded ones too, are not relocated yet.
 *
 *     indirect            calls the library's indirect functions and its own
 *
 * The library is this file built with -DLIBRARY.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int initialised, resolved;

static void initialise(void) { initialised++; }

static int implementation(void) { return 100 * initialised + resolved; }

/* What a resolver decides may be decided once, under a lock. */
static int (*resolve(void))(void) {
    if (pthread_once(&once, initialise) || pthread_mutex_lock(&mutex))
        return NULL;
    resolved++;
    if (sem_post(&semaphore) || pthread_mutex_unlock(&mutex))
        return NULL;
    return implementation;
}

/* Not exported: such relocations come last, when those of the functions that the resolver calls are done. */
static int called(void) __attribute__((ifunc("resolve")));

static void call(const char *who) { printf("%s: %d\n", who, called()); }

#ifdef LIBRARY

void library(void) { call("library"); }

#else

void library(void);

int main(void) {
    call("program");
    library();
    return pthread_mutex_lock(&mutex) || pthread_mutex_unlock(&mutex);
}

#endif
