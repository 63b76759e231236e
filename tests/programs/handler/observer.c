// A handler that calls recorded functions itself, overwrites errno, and prints what it got: "init PARAMETERS", and at the end
// how many records of each kind there were. Its parameters begin with what init returns.

#include "../../../threadt/include/threadt.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef OTHER_VERSION
const unsigned threadt_handler_version = THREADT_HANDLER_VERSION + 1;
#elif !defined(NO_HANDLER)
THREADT_HANDLER
#endif

static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned locks, unlocks, begins, wrong, others;

int threadt_handler_init(const char *parameters)
{
    dprintf(1, "%d init %s\n", getpid(), parameters);
    locks = unlocks = begins = wrong = others = 0;
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
    return atoi(parameters);
}

void threadt_handler_event(const struct threadt_record *record)
{
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
    errno = 5;
    if (record->a[0] == (uint64_t)&own || record->pid != (uint32_t)getpid() || record->lwpid != (uint32_t)syscall(SYS_gettid) ||
        record->tid != (uint64_t)pthread_self() || record->time < UINT64_C(1000000000000000000))
        wrong++;
    if (record->event1 == 2 && record->event2 == 2 && record->which == 1)
        locks++;
    else if (record->event1 == 2 && record->event2 == 4)
        unlocks++;
    else if (record->event1 == 11 && record->event2 == 2)
        begins++;
    else
        others++;
}

void threadt_handler_fini(void)
{
    dprintf(1, "%d locks %u unlocks %u begins %u wrong %u\n", getpid(), locks, unlocks, begins, wrong);
}
