/*
 * Mutexes whose owner dies, and those that inherit priority.
 *
 *     robust plain | recursive
 */
#include "mutex.h"

/* The name that it had before it was in POSIX. */
__asm__(".symver old_consistent, pthread_mutex_consistent_np@GLIBC_2.4");
int old_consistent(pthread_mutex_t *mutex);

static void *die_owning(void *argument) {
    struct subject *subject = argument;
    LOCK(pthread_mutex_lock, subject, 0, 1, 0);
    return NULL;
}

static void abandon(struct subject *subject) {
    struct worker worker;
    begin(&worker, die_owning, subject);
    finish(&worker, NULL);
}

static void *wait_lock(void *argument) {
    struct subject *subject = argument;
    about_to_block();
    LOCK(pthread_mutex_lock, subject, 1, 1, 0);
    UNLOCK(pthread_mutex_unlock, subject, PERHAPS, 0);
    return NULL;
}

/* The word of these mutexes shows waiters in another way than that of a normal one. */
static void contend(struct subject *subject) {
    struct worker worker;
    LOCK(pthread_mutex_lock, subject, 0, 1, 0);
    begin(&worker, wait_lock, subject);
    until_blocked(&worker);
    UNLOCK(pthread_mutex_unlock, subject, 1, 0);
    finish(&worker, NULL);
    LOCK(pthread_mutex_lock, subject, 0, 1, 0);
    if (subject->recursive) {
        LOCK(pthread_mutex_lock, subject, 0, 2, 0);
        TIMEDLOCK(subject, &past, PAST_NS, 0, 3, 0);
        UNLOCK(pthread_mutex_unlock, subject, 0, 0);
        UNLOCK(pthread_mutex_unlock, subject, 0, 0);
    } else {
        TRYLOCK(pthread_mutex_trylock, subject, EBUSY);
        TIMEDLOCK(subject, &past, PAST_NS, 1, 0, ETIMEDOUT);
        /* It was its own waiter. */
        UNLOCK(pthread_mutex_unlock, subject, PERHAPS, 0);
        return;
    }
    UNLOCK(pthread_mutex_unlock, subject, 0, 0);
}

int main(int argc, char **argv) {
    check(argc == 2);
    int recursive = strcmp(argv[1], "recursive") == 0;
    int type = recursive ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL;
    struct subject subject;

    make(&subject, type, 1, PTHREAD_PRIO_NONE, 0);
    contend(&subject);
    CONSISTENT(&subject, EINVAL);
    const char *event = event_of(&subject, "rmutex_consistent");
    int rval = old_consistent(&subject.mutex);
    expect("pthread_mutex_consistent_np", event, 0, "xd", &subject.mutex, rval);
    check(rval == EINVAL);

    /* The next owner gets EOWNERDEAD, and makes the mutex consistent. The mutex is its own: it is one deep. */
    abandon(&subject);
    LOCK(pthread_mutex_lock, &subject, 0, 1, EOWNERDEAD);
    CONSISTENT(&subject, 0);
    UNLOCK(pthread_mutex_unlock, &subject, 0, 0);
    abandon(&subject);
    TIMEDLOCK(&subject, &future, FUTURE_NS, 0, 1, EOWNERDEAD);
    CONSISTENT(&subject, 0);
    UNLOCK(pthread_mutex_unlock, &subject, 0, 0);

    /* The next owner does not, and nobody ever has it again. */
    abandon(&subject);
    TRYLOCK(pthread_mutex_trylock, &subject, EOWNERDEAD);
    UNLOCK(pthread_mutex_unlock, &subject, 0, 0);
    LOCK(pthread_mutex_lock, &subject, 0, 0, ENOTRECOVERABLE);
    TIMEDLOCK(&subject, &future, FUTURE_NS, 0, 0, ENOTRECOVERABLE);
    /* Last, because glibc leaves the word locked here. */
    TRYLOCK(pthread_mutex_trylock, &subject, ENOTRECOVERABLE);
    DESTROY(pthread_mutex_destroy, &subject, 0);

    make(&subject, type, 0, PTHREAD_PRIO_INHERIT, 0);
    contend(&subject);
    DESTROY(pthread_mutex_destroy, &subject, 0);
    return done();
}
