/* A handler that counts the calls on each object in memory, and prints the counts when the process ends.
 *
 *     gcc -shared -fPIC $(pkg-config --cflags threadt) -o count_objects.so count_objects.c
 *     trace-cat run --handler count_objects.so -e mutex:rwlock PROGRAM
 *
 * A forked child counts anew. */

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <threadt.h>
#include <unistd.h>

THREADT_HANDLER

#define OBJECTS 4096

static struct {
    _Atomic uint64_t address;
    _Atomic uint64_t calls;
} objects[OBJECTS];
static _Atomic uint64_t left_out;

int threadt_handler_init(const char *parameters)
{
    (void)parameters;
    for (int place = 0; place < OBJECTS; place++) {
        objects[place].address = 0;
        objects[place].calls = 0;
    }
    left_out = 0;
    return THREADT_INSTEAD;
}

void threadt_handler_event(const struct threadt_record *record)
{
    /* The categories of locks, whose first record has the object in a1. */
    if (record->which == 2 || (record->event1 != 2 && record->event1 != 5 && record->event1 != 6 && record->event1 != 9))
        return;
    uint64_t address = record->a[0];
    for (unsigned step = 0; step < 64; step++) {
        unsigned place = (unsigned)(address / 8 + step) % OBJECTS;
        uint64_t known = 0;
        if (atomic_compare_exchange_strong(&objects[place].address, &known, address) || known == address) {
            objects[place].calls++;
            return;
        }
    }
    left_out++;
}

void threadt_handler_fini(void)
{
    for (int place = 0; place < OBJECTS; place++)
        if (objects[place].calls)
            dprintf(STDERR_FILENO, "%d: %#" PRIx64 " %" PRIu64 "\n", getpid(), objects[place].address, objects[place].calls);
    if (left_out)
        dprintf(STDERR_FILENO, "%d: others %" PRIu64 "\n", getpid(), left_out);
}
