/*
 * How a row program prints the records that it expects.
 *
 * A program calls each traced function and notes, beside the call, the records that the trace must have of it. When it
 * ends it prints the notes, one a line:
 *
 *     expect PID LWP TID SYMBOL EVENT WHICH ERRNO A1 A2 A3 A4 A5
 *
 * SYMBOL is the C function that was called, "-" for a record without a call. ERRNO is what errno was after the call,
 * having been UNTOUCHED before it: natively and under the library it must be the same. The columns stand as they must stand
 * in the trace, base included; "*" is a value that the program cannot know and "?" is 0 or 1. A thread's records must
 * be exactly these, in this order.
 *
 * Notes go to memory first, because printing in the middle would be one more thing that could go wrong between two
 * records. Nothing here calls a traced function unless it notes the call.
 */
#ifndef EXPECT_H
#define EXPECT_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Ends the program unless the condition holds. */
#define check(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            _Exit(99); \
        } \
    } while (0)

/* No errno value: what errno is between calls. */
#define UNTOUCHED 7777

struct expectation {
    long pid, lwp;
    unsigned long tid;
    const char *symbol, *event;
    int which, error;
    char form[6];
    long values[5];
};

static struct expectation expectations[8192];
static atomic_uint expected;

static inline long own_lwp(void) { return syscall(SYS_gettid); }

/* pthread_self(), without a call that would be recorded: the first word of the thread's control block. */
static inline unsigned long own_tid(void) {
    unsigned long tid;
    __asm__("mov %%fs:0, %0" : "=r"(tid));
    return tid;
}

/*
 * Notes one record. `form` has a letter for each column, and the arguments follow where the letter takes one:
 *
 *     d  int, decimal             x  pointer or unsigned long, hex
 *     l  int64_t, decimal         X  unsigned int, hex
 *     u  unsigned int, decimal    t  pthread_t, hex of at least twelve digits
 *     z  unsigned long, decimal   -  nothing: 0      *  anything      ?  0 or 1
 *
 * Columns behind the last letter are empty.
 */
static inline void expect(const char *symbol, const char *event, int which, const char *form, ...) {
    int error = errno;
    unsigned index = atomic_fetch_add(&expected, 1);
    check(index < sizeof expectations / sizeof *expectations);
    struct expectation *new = &expectations[index];
    *new = (struct expectation){getpid(), own_lwp(), own_tid(), symbol, event, which, error, "-----", {0}};
    check(strlen(form) <= 5);
    memcpy(new->form, form, strlen(form));
    va_list arguments;
    va_start(arguments, form);
    for (int column = 0; form[column]; column++) {
        switch (form[column]) {
        case 'd': new->values[column] = va_arg(arguments, int); break;
        case 'u': case 'X': new->values[column] = va_arg(arguments, unsigned); break;
        case 'l': case 'z': case 'x': case 't': new->values[column] = va_arg(arguments, long); break;
        default: break;
        }
    }
    va_end(arguments);
    errno = UNTOUCHED;
}

/* Prints the notes and forgets them. */
static inline void report(void) {
    for (unsigned index = 0; index < expected; index++) {
        struct expectation *each = &expectations[index];
        printf("expect %ld %ld 0x%012lx ", each->pid, each->lwp, each->tid);
        printf("%s %s %d %d", each->symbol, each->event, each->which, each->error);
        for (int column = 0; column < 5; column++) {
            long value = each->values[column];
            switch (each->form[column]) {
            case 'd': case 'l': printf(" %ld", value); break;
            case 'u': case 'z': printf(" %lu", value); break;
            case 'x': case 'X': printf(value ? " 0x%lx" : " 0", value); break;
            case 't': printf(value ? " 0x%012lx" : " 0", value); break;
            case '-': printf(" 0"); break;
            default: printf(" %c", each->form[column]); break;
            }
        }
        printf("\n");
    }
    fflush(stdout);
    expected = 0;
}

/* What main returns when all went well. */
static inline int done(void) {
    expect("-", "proc_exit", 0, "d", 0);
    report();
    return 0;
}

/*
 * Whether this C library has the function; if not, prints `missing`. The library under test exports every name, so the C
 * library itself is asked. Functions that may be missing are referred to weakly.
 */
static inline int available(const char *function) {
    const char *libraries[] = {"libc.so.6", "libpthread.so.0", "libutil.so.1"};
    for (int index = 0; index < 3; index++) {
        void *library = dlopen(libraries[index], RTLD_LAZY | RTLD_NOLOAD);
        if (library && dlsym(library, function)) return 1;
    }
    printf("missing %s\n", function);
    return 0;
}

/* Whether this C library is older than that version, "2.34". */
static inline int is_older_than(const char *version) { return strverscmp(gnu_get_libc_version(), version) < 0; }

/* Long enough for others to run, and of no other meaning. */
static inline void pause_briefly(void) { nanosleep(&(struct timespec){0, 500000}, NULL); }

/* Reads one of a thread's files in /proc as a string; false when the thread has gone. Leaves errno alone. */
static inline int read_task(long lwp, const char *name, char *text, size_t room) {
    char path[64];
    int error = errno;
    snprintf(path, sizeof path, "/proc/self/task/%ld/%s", lwp, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, text, room - 1);
    if (file >= 0) close(file);
    errno = error;
    if (size > 0) text[size] = 0;
    return size > 0;
}

static inline void until_gone(long lwp) {
    char text[512];
    while (read_task(lwp, "stat", text, sizeof text)) pause_briefly();
}

/*
 * Whether a thread waits in the kernel for another one, or for a signal. Where the kernel does not show in which call it
 * sleeps, it is enough that it sleeps.
 */
static inline int is_waiting(long lwp) {
    char text[512];
    if (read_task(lwp, "syscall", text, sizeof text)) {
        int number = atoi(text);
        /* Also futex_waitv and futex_wait. */
        return number == SYS_futex || number == SYS_pause || number == 449 || number == 455;
    }
    return read_task(lwp, "stat", text, sizeof text) && strrchr(text, ')')[2] == 'S';
}

/* Limits that have passed, that are far away, and that are none. */
static const struct timespec past = {1, 5};
static const struct timespec future = {4000000000, 999999999};
static const struct timespec bad_nanoseconds = {3, 1000000000};
#define PAST_NS INT64_C(1000000005)
#define FUTURE_NS INT64_C(4000000000999999999)
#define BAD_NANOSECONDS_NS INT64_C(4000000000)
/* A clock that no wait takes. */
#define BAD_CLOCK CLOCK_PROCESS_CPUTIME_ID

#endif
