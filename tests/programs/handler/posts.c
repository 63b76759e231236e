// A handler that counts the records of sema_post, and prints at the end of its process "handled PID COUNT". It makes no system call
// before. Its parameters are what init returns.

#include "../../../threadt/include/threadt.h"

#include <stdio.h>
#include <stdlib.h>

THREADT_HANDLER

static _Atomic unsigned process, posts;

int threadt_handler_init(const char *parameters)
{
    process = posts = 0;
    return atoi(parameters);
}

void threadt_handler_event(const struct threadt_record *record)
{
    process = record->pid;
    posts += record->event1 == 4 && record->event2 == 4;
}

void threadt_handler_fini(void)
{
    dprintf(1, "handled %u %u\n", process, posts);
}
