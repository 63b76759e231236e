// Ends by a call that does not return: `ends_itself kill|sigqueue|cancel`. The first two send this thread a SIGTERM, the last one cancels
// a thread in which cancellation is asynchronous.

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "../check.h"

static void *cancel(void *unused) {
    CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
    pthread_cancel(pthread_self());
    return unused;
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    if (strcmp(arguments[1], "kill") == 0)
        pthread_kill(pthread_self(), SIGTERM);
    if (strcmp(arguments[1], "sigqueue") == 0)
        pthread_sigqueue(pthread_self(), SIGTERM, (union sigval){.sival_int = 0});
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, cancel, NULL) == 0 && pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
    return 7;
}
