/* Things that are done once, also when the first attempt does not finish. */
#include "worker.h"
#include <threads.h>

/* An old name, to which programs are no longer linked but still refer. */
int __pthread_once(pthread_once_t *, void (*)(void));
__asm__(".symver __pthread_once, __pthread_once@GLIBC_2.2.5");

static int runs;

/* Each of these is one call, which runs `routine` or not. */

#define ONCE(function, control, routine, wanted_runs) \
    do { \
        runs = 0; \
        expect(#function, "thr_once", 1, "xx", control, routine); \
        int rval_ = function(control, routine); \
        expect(#function, "thr_once", 2, "d", rval_); \
        check(rval_ == 0 && runs == wanted_runs); \
    } while (0)

#define CALL_ONCE(control, routine, wanted_runs) \
    do { \
        runs = 0; \
        expect("call_once", "thr_once", 1, "xx", control, routine); \
        call_once(control, routine); \
        expect("call_once", "thr_once", 2, "d", 0); \
        check(runs == wanted_runs); \
    } while (0)

static void count(void) { runs++; }

static pthread_once_t inner = PTHREAD_ONCE_INIT;

/* A routine's own calls stand between the two records. */
static void nests(void) {
    ONCE(pthread_once, &inner, count, 1);
    runs = 1;
}

static pthread_once_t interrupted = PTHREAD_ONCE_INIT;

static void waits_for_cancel(void) {
    about_to_block();
    while (pause() == -1) continue;
}

static void *is_cancelled(void *argument) {
    expect("pthread_once", "thr_once", 1, "xx", &interrupted, waits_for_cancel);
    /* The call does not return; its second record and the thread's end are what the cancellation leaves. */
    expect("pthread_once", "thr_once", 2, "d", ECANCELED);
    expect("-", "thr_exit", 0, "x", PTHREAD_CANCELED);
    pthread_once(&interrupted, waits_for_cancel);
    return argument;
}

/* Another thread runs the routine, and this one waits for it. */
static pthread_once_t contended = PTHREAD_ONCE_INIT;
static atomic_int may_end;

static void takes_long(void) {
    about_to_block();
    while (!may_end) pause_briefly();
    runs++;
}

static void *does_it(void *argument) {
    ONCE(pthread_once, &contended, takes_long, 1);
    return argument;
}

static void *waits_for_it(void *argument) {
    about_to_block();
    expect("pthread_once", "thr_once", 1, "xx", &contended, takes_long);
    int rval = pthread_once(&contended, takes_long);
    expect("pthread_once", "thr_once", 2, "d", rval);
    check(rval == 0);
    return argument;
}

int main(void) {
    static pthread_once_t first = PTHREAD_ONCE_INIT, old = PTHREAD_ONCE_INIT, outer = PTHREAD_ONCE_INIT;
    static once_flag flag = ONCE_FLAG_INIT;
    ONCE(pthread_once, &first, count, 1);
    ONCE(pthread_once, &first, count, 0);
    ONCE(__pthread_once, &old, count, 1);
    ONCE(__pthread_once, &old, count, 0);
    CALL_ONCE(&flag, count, 1);
    CALL_ONCE(&flag, count, 0);
    ONCE(pthread_once, &outer, nests, 1);

    struct worker worker, other;
    begin(&worker, is_cancelled, NULL);
    until_blocked(&worker);
    int rval = pthread_cancel(worker.thread);
    expect("pthread_cancel", "thr_cancel", 0, "td", worker.thread, rval);
    check(rval == 0);
    finish(&worker, PTHREAD_CANCELED);
    /* It was not done, so it is done now. */
    ONCE(pthread_once, &interrupted, count, 1);

    begin(&worker, does_it, NULL);
    until_about(&worker);
    begin(&other, waits_for_it, NULL);
    until_blocked(&other);
    may_end = 1;
    finish(&worker, NULL);
    finish(&other, NULL);
    return done();
}
