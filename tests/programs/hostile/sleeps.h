// How often the calling thread has slept.

#pragma once
#include <sys/resource.h>

#include "../check.h"

static inline long sleeps(void) {
    struct rusage usage;
    CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
    return usage.ru_nvcsw;
}
