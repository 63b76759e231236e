/* threadt.h: what a program records itself while libthreadt records it. threadt(3) describes it.
 *
 * For C and C++ with GCC's extensions. There is nothing to link with: the references to libthreadt.so are weak, and without it
 * (and on any machine other than x86-64 Linux) a call is a test of a pointer. All calls are safe in signal handlers, and
 * leave errno as it is. */

#ifndef THREADT_H
#define THREADT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The functions of libthreadt.so. A reference in C would become 0 in a program that is not position-independent. */
typedef void threadt_put_event_(unsigned code, int64_t a1, int64_t a2, int64_t a3, int64_t a4, int64_t a5);
typedef void threadt_put_named_(const char *text, __SIZE_TYPE__ length, uint64_t *id, int64_t value);
typedef void threadt_put_barrier_spin_init_(const void *barrier, const void *attr, unsigned count, int result);
typedef void threadt_put_barrier_spin_wait_(const void *barrier, unsigned missing);
typedef void threadt_put_barrier_spin_return_(int result);
typedef void threadt_put_barrier_spin_destroy_(const void *barrier, int result);

#if defined(__linux__) && defined(__x86_64__) && defined(__LP64__)
#define THREADT_FIND_(function, symbol) \
    __asm__(".weak " #symbol "\n\t{movq " #symbol "@GOTPCREL(%%rip), %0|mov %0, qword ptr " #symbol "@GOTPCREL[rip]}"          \
            : "=r"(function))
#else
#define THREADT_FIND_(function, symbol) ((function) = 0)
#endif

/* threadt_event(number, a1, a2, a3, a4, a5): an event of the program's own, with a number from 0 to 89.
 * threadt_event_entry and threadt_event_return: the two records of a call, which readers pair. */
#define THREADT_EVENT_(name, which)                                                                                      \
    static __inline__ void name(unsigned number, int64_t a1, int64_t a2, int64_t a3, int64_t a4, int64_t a5)             \
    {                                                                                                                    \
        threadt_put_event_ *threadt_put_;                                                                                \
        THREADT_FIND_(threadt_put_, threadt_put_event);                                                                  \
        if (threadt_put_ && number < 90)                                                                                 \
            threadt_put_(number | (which) << 8, a1, a2, a3, a4, a5);                                                     \
    }
THREADT_EVENT_(threadt_event, 0U)
THREADT_EVENT_(threadt_event_entry, 1U)
THREADT_EVENT_(threadt_event_return, 2U)
#undef THREADT_EVENT_

/* Only a literal has the same ID at each call from one place. */
#define THREADT_IS_LITERAL_(text, shown)                                                                                 \
    (__builtin_constant_p(text) && sizeof(shown) > 2 && (shown)[0] == '"' && (shown)[sizeof(shown) - 2] == '"')

#define THREADT_PUT_NAMED_(symbol, text, value)                                                                          \
    do {                                                                                                                 \
        static uint64_t threadt_id_;                                                                                     \
        const char *const threadt_text_ = (text);                                                                        \
        const int64_t threadt_value_ = (value);                                                                          \
        threadt_put_named_ *threadt_put_;                                                                                \
        THREADT_FIND_(threadt_put_, symbol);                                                                             \
        if (threadt_put_)                                                                                                \
            threadt_put_(threadt_text_, __builtin_strlen(threadt_text_),                                                 \
                         THREADT_IS_LITERAL_(text, #text) ? &threadt_id_ : (uint64_t *)0, threadt_value_);               \
    } while (0)

/* threadt_begin(name) and threadt_end(name): this thread does something that has a name, and that takes time. */
#define threadt_begin(name) THREADT_PUT_NAMED_(threadt_put_begin, name, 0)
#define threadt_end(name) THREADT_PUT_NAMED_(threadt_put_end, name, 0)
/* threadt_mark(name, value): something happens. */
#define threadt_mark(name, value) THREADT_PUT_NAMED_(threadt_put_mark, name, value)
/* threadt_counter(name, value): what is counted under this name is `value` now. */
#define threadt_counter(name, value) THREADT_PUT_NAMED_(threadt_put_counter, name, value)
/* threadt_name(object, name): the lock (condition variable, semaphore ...) at this address has this name. */
#define threadt_name(object, name) THREADT_PUT_NAMED_(threadt_put_object, name, (int64_t)(intptr_t)(object))

/* Spinning barriers, which a program makes itself. threadt_barrier_spin_wait comes before the wait (`missing`: how many
 * threads are still to come, this one included), threadt_barrier_spin_return after it. */
static __inline__ void threadt_barrier_spin_init(const void *barrier, const void *attr, unsigned count, int result)
{
    threadt_put_barrier_spin_init_ *threadt_put_;
    THREADT_FIND_(threadt_put_, threadt_put_barrier_spin_init);
    if (threadt_put_)
        threadt_put_(barrier, attr, count, result);
}

static __inline__ void threadt_barrier_spin_wait(const void *barrier, unsigned missing)
{
    threadt_put_barrier_spin_wait_ *threadt_put_;
    THREADT_FIND_(threadt_put_, threadt_put_barrier_spin_wait);
    if (threadt_put_)
        threadt_put_(barrier, missing);
}

static __inline__ void threadt_barrier_spin_return(int result)
{
    threadt_put_barrier_spin_return_ *threadt_put_;
    THREADT_FIND_(threadt_put_, threadt_put_barrier_spin_return);
    if (threadt_put_)
        threadt_put_(result);
}

static __inline__ void threadt_barrier_spin_destroy(const void *barrier, int result)
{
    threadt_put_barrier_spin_destroy_ *threadt_put_;
    THREADT_FIND_(threadt_put_, threadt_put_barrier_spin_destroy);
    if (threadt_put_)
        threadt_put_(barrier, result);
}

/* Handlers: a shared object that gets the records of a process, see libthreadt(7). It defines these functions, and THREADT_HANDLER
 * once: */
#define THREADT_HANDLER_VERSION 1
#ifdef __cplusplus
#define THREADT_HANDLER extern "C" const unsigned threadt_handler_version = THREADT_HANDLER_VERSION;
#else
#define THREADT_HANDLER const unsigned threadt_handler_version = THREADT_HANDLER_VERSION;
#endif

/* A record, as thread_trace(5) describes it. */
struct threadt_record {
    uint64_t time; /* nanoseconds since the Epoch */
    uint64_t tid;  /* pthread_self() */
    uint32_t pid;
    uint32_t lwpid;
    uint8_t event1;
    uint8_t event2;
    uint8_t which;
    uint8_t unused[5];
    uint64_t a[5]; /* a1 to a5, signed ones sign-extended */
};

extern const unsigned threadt_handler_version;
/* Begins, in the process and in each forked child. Whether the records go to the handler and not to the trace, or to both;
 * any other result: the handler does not want any. */
enum { THREADT_INSTEAD = 0, THREADT_BESIDE = 1 };
int threadt_handler_init(const char *parameters);
/* Takes a record, in the thread that makes it. */
void threadt_handler_event(const struct threadt_record *record);
/* The process ends by exit or by returning from main. May be missing. */
void threadt_handler_fini(void);

#ifdef __cplusplus
}
#endif

#endif
