// The main thread ends before the others: `cancelled_main HOW`, by being cancelled (`cancel`, `async`) or by pthread_exit (`exit`).
//
// Prints how many frames are on the stack of main, whether its clean-up handler ran, and whether the join found it cancelled.

#define _GNU_SOURCE
#include <execinfo.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_t main_thread;
static int frames, handled;

static void handler(void *argument) {
    handled += (int)(long)argument;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static void *outlive(void *how) {
    void *status = NULL;
    if (strcmp(how, "exit") && pthread_cancel(main_thread))
        abort();
    if (pthread_join(main_thread, &status))
        abort();
    printf("%d frames, handled %d, cancelled %d\n", frames, handled, status == PTHREAD_CANCELED);
    exit(0);
}

int main(int argc, char **argv) {
    void *addresses[64];
    pthread_t thread;
    if (argc != 2)
        return 2;
    frames = backtrace(addresses, 64);
    // glibc forgets the handlers of the frames that a jump leaves.
    jmp_buf place;
    if (setjmp(place) == 0)
        longjmp(place, 1);
    main_thread = pthread_self();
    pthread_cleanup_push(handler, (void *)1);
    if (strcmp(argv[1], "async") == 0)
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    if (pthread_create(&thread, NULL, outlive, argv[1]))
        return 2;
    if (strcmp(argv[1], "exit") == 0)
        pthread_exit(NULL);
    if (strcmp(argv[1], "async") == 0)
        for (;;)
            ;
    for (;;)
        pause();
    pthread_cleanup_pop(0);
}
