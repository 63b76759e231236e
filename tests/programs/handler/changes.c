// A handler that prints which changes each thread follows: "change PAUSED". Its parameters begin with what init returns.

#include "../../../threadt/include/threadt.h"

#include <stdio.h>
#include <stdlib.h>

THREADT_HANDLER

int threadt_handler_init(const char *parameters)
{
    return atoi(parameters);
}

void threadt_handler_event(const struct threadt_record *record)
{
    if (record->event1 == 0 && record->event2 == 2)
        dprintf(1, "change %d\n", (int)record->a[2]);
}
