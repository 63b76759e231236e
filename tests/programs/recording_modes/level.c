/*
 * What THR_TRACE_LEVEL=blocked keeps, exactly: `level KIND`. Only the records that are kept are noted; the other calls are
 * made without a note.
 *
 * Who waits is seen in the kernel before the other one goes on, so that nothing depends on time.
 */
#include "../rows/mutex.h"
#include <sched.h>
#include <semaphore.h>
#include <signal.h>

/* A call that leaves no record. */
#define SILENT(call) check((call) == 0)

static struct subject subject;
/*
 * Who had to wait for a mutex, or whose waiter gave up, marks its word as waited for, though nobody waits any more. The
 * word of one that inherits priority is the kernel's, and kernels differ: then PERHAPS.
 */
static int mark = 1;

static void unlock_after_waiting(void) { UNLOCK(pthread_mutex_unlock, &subject, mark, 0); }

static void *wait_lock(void *argument) {
    about_to_block();
    LOCK(pthread_mutex_lock, &subject, 1, 1, 0);
    unlock_after_waiting();
    return argument;
}

static void *wait_timed(void *argument) {
    about_to_block();
    TIMEDLOCK(&subject, &future, FUTURE_NS, 1, 1, 0);
    unlock_after_waiting();
    return argument;
}

static void *wait_clock(void *argument) {
    about_to_block();
    CLOCKLOCK(&subject, CLOCK_MONOTONIC, &future, FUTURE_NS, 1, 1, 0);
    unlock_after_waiting();
    return argument;
}

static void *fail(void *argument) {
    TRYLOCK(pthread_mutex_trylock, &subject, EBUSY);
    TIMEDLOCK(&subject, &past, PAST_NS, 1, 0, ETIMEDOUT);
    return argument;
}

/* The mutex is held while a worker does this, and let go when it is blocked. */
static void contend(void *(*body)(void *)) {
    struct worker worker;
    SILENT(pthread_mutex_lock(&subject.mutex));
    begin(&worker, body, &subject);
    until_blocked(&worker);
    UNLOCK(pthread_mutex_unlock, &subject, 1, 0);
    finish(&worker, &subject);
}

static void mutexes(int type, int robust, int protocol) {
    struct worker worker;
    int clocked = available("pthread_mutex_clocklock");
    make(&subject, type, robust, protocol, 0);
    for (int i = 0; i < 3; i++) {
        SILENT(pthread_mutex_lock(&subject.mutex));
        if (type == PTHREAD_MUTEX_RECURSIVE) {
            SILENT(pthread_mutex_lock(&subject.mutex));
            SILENT(pthread_mutex_trylock(&subject.mutex));
            SILENT(pthread_mutex_unlock(&subject.mutex));
            SILENT(pthread_mutex_unlock(&subject.mutex));
        }
        SILENT(pthread_mutex_unlock(&subject.mutex));
        SILENT(pthread_mutex_trylock(&subject.mutex));
        SILENT(pthread_mutex_unlock(&subject.mutex));
        SILENT(pthread_mutex_timedlock(&subject.mutex, &future));
        SILENT(pthread_mutex_unlock(&subject.mutex));
        if (clocked) {
            SILENT(pthread_mutex_clocklock(&subject.mutex, CLOCK_MONOTONIC, &future));
            SILENT(pthread_mutex_unlock(&subject.mutex));
        }
    }
    contend(wait_lock);
    contend(wait_timed);
    if (clocked)
        contend(wait_clock);
    SILENT(pthread_mutex_lock(&subject.mutex));
    begin(&worker, fail, NULL);
    finish(&worker, NULL);
    unlock_after_waiting();
    SILENT(pthread_mutex_lock(&subject.mutex));
    SILENT(pthread_mutex_unlock(&subject.mutex));
    DESTROY(pthread_mutex_destroy, &subject, 0);

    /* What is never recorded. */
    pthread_key_t key;
    sigset_t none;
    int old;
    sigemptyset(&none);
    check(pthread_self() == own_tid());
    SILENT(pthread_key_create(&key, NULL));
    SILENT(pthread_setspecific(key, &key));
    check(pthread_getspecific(key) == &key);
    SILENT(pthread_key_delete(key));
    SILENT(pthread_sigmask(SIG_BLOCK, &none, NULL));
    SILENT(sched_yield());
    SILENT(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old));
    pthread_testcancel();
}

/* Reader-writer locks. */
static pthread_rwlock_t rwlock;

/* A writer that had to wait may leave a mark as well. */
static void unlock_after_writing(void) {
    SILENT(pthread_rwlock_unlock(&rwlock));
    expect("pthread_rwlock_unlock", "rw_unlock", 0, "xd?", &rwlock, 0);
}

static void *reads(void *argument) {
    about_to_block();
    expect("pthread_rwlock_rdlock", "rw_rdlock", 1, "x", &rwlock);
    check(pthread_rwlock_rdlock(&rwlock) == 0);
    expect("pthread_rwlock_rdlock", "rw_rdlock", 2, "ddu", 0, 1, 1);
    SILENT(pthread_rwlock_unlock(&rwlock));
    return argument;
}

static void *reads_timed(void *argument) {
    about_to_block();
    expect("pthread_rwlock_timedrdlock", "rw_timedrdlock", 1, "xdl", &rwlock, 0, FUTURE_NS);
    check(pthread_rwlock_timedrdlock(&rwlock, &future) == 0);
    expect("pthread_rwlock_timedrdlock", "rw_timedrdlock", 2, "ddu", 0, 1, 1);
    SILENT(pthread_rwlock_unlock(&rwlock));
    return argument;
}

static void *writes(void *argument) {
    about_to_block();
    expect("pthread_rwlock_wrlock", "rw_wrlock", 1, "x", &rwlock);
    check(pthread_rwlock_wrlock(&rwlock) == 0);
    expect("pthread_rwlock_wrlock", "rw_wrlock", 2, "dd", 0, 1);
    unlock_after_writing();
    return argument;
}

static void *writes_timed(void *argument) {
    about_to_block();
    expect("pthread_rwlock_timedwrlock", "rw_timedwrlock", 1, "xdl", &rwlock, 0, FUTURE_NS);
    check(pthread_rwlock_timedwrlock(&rwlock, &future) == 0);
    expect("pthread_rwlock_timedwrlock", "rw_timedwrlock", 2, "dd", 0, 1);
    unlock_after_writing();
    return argument;
}

static void *fails_to_read_or_write(void *argument) {
    expect("pthread_rwlock_tryrdlock", "rw_tryrdlock", 0, "xd", &rwlock, EBUSY);
    check(pthread_rwlock_tryrdlock(&rwlock) == EBUSY);
    expect("pthread_rwlock_trywrlock", "rw_trywrlock", 0, "xd", &rwlock, EBUSY);
    check(pthread_rwlock_trywrlock(&rwlock) == EBUSY);
    return argument;
}

static void rwlocks(void) {
    struct worker worker;
    void *(*kinds[])(void *) = {reads, reads_timed, writes, writes_timed};
    SILENT(pthread_rwlock_init(&rwlock, NULL));
    expect("pthread_rwlock_init", "rwlock_init", 0, "xx-d", &rwlock, NULL, 0);
    for (int i = 0; i < 3; i++) {
        SILENT(pthread_rwlock_rdlock(&rwlock));
        SILENT(pthread_rwlock_tryrdlock(&rwlock));
        SILENT(pthread_rwlock_timedrdlock(&rwlock, &future));
        for (int readers = 3; readers; readers--)
            SILENT(pthread_rwlock_unlock(&rwlock));
        SILENT(pthread_rwlock_wrlock(&rwlock));
        SILENT(pthread_rwlock_unlock(&rwlock));
        SILENT(pthread_rwlock_trywrlock(&rwlock));
        SILENT(pthread_rwlock_unlock(&rwlock));
        SILENT(pthread_rwlock_timedwrlock(&rwlock, &future));
        SILENT(pthread_rwlock_unlock(&rwlock));
    }
    for (int kind = 0; kind < 4; kind++) {
        SILENT(pthread_rwlock_wrlock(&rwlock));
        begin(&worker, kinds[kind], NULL);
        until_blocked(&worker);
        expect("pthread_rwlock_unlock", "rw_unlock", 0, "xdd", &rwlock, 0, 1);
        SILENT(pthread_rwlock_unlock(&rwlock));
        finish(&worker, NULL);
    }
    SILENT(pthread_rwlock_wrlock(&rwlock));
    begin(&worker, fails_to_read_or_write, NULL);
    finish(&worker, NULL);
    SILENT(pthread_rwlock_unlock(&rwlock));
    SILENT(pthread_rwlock_destroy(&rwlock));
    expect("pthread_rwlock_destroy", "rwlock_destroy", 0, "xd", &rwlock, 0);
}

/* Semaphores. */
static sem_t sem;

static void *waits(void *argument) {
    about_to_block();
    expect("sem_wait", "sema_wait", 1, "xu", &sem, 0);
    check(sem_wait(&sem) == 0);
    expect("sem_wait", "sema_wait", 2, "d", 0);
    return argument;
}

static void *waits_timed(void *argument) {
    about_to_block();
    expect("sem_timedwait", "sema_timedwait", 1, "xudl", &sem, 0, 0, FUTURE_NS);
    check(sem_timedwait(&sem, &future) == 0);
    expect("sem_timedwait", "sema_timedwait", 2, "d", 0);
    return argument;
}

static void semaphores(void) {
    struct worker worker;
    int value;
    SILENT(sem_init(&sem, 0, 0));
    expect("sem_init", "sema_init", 0, "xdu-d", &sem, 0, 0, 0);
    for (int i = 0; i < 3; i++) {
        SILENT(sem_post(&sem));
        SILENT(sem_wait(&sem));
        SILENT(sem_post(&sem));
        SILENT(sem_trywait(&sem));
        SILENT(sem_post(&sem));
        SILENT(sem_timedwait(&sem, &future));
        SILENT(sem_getvalue(&sem, &value));
    }
    for (int timed = 0; timed < 2; timed++) {
        begin(&worker, timed ? waits_timed : waits, NULL);
        until_blocked(&worker);
        expect("sem_post", "sema_post", 0, "xdu", &sem, 0, 0);
        SILENT(sem_post(&sem));
        finish(&worker, NULL);
        SILENT(sem_post(&sem));
        SILENT(sem_trywait(&sem));
    }
    check(sem_trywait(&sem) == -1 && errno == EAGAIN);
    expect("sem_trywait", "sema_trywait", 0, "xd", &sem, EAGAIN);
    expect("sem_timedwait", "sema_timedwait", 1, "xudl", &sem, 0, 0, PAST_NS);
    check(sem_timedwait(&sem, &past) == -1 && errno == ETIMEDOUT);
    expect("sem_timedwait", "sema_timedwait", 2, "d", ETIMEDOUT);
    SILENT(sem_destroy(&sem));
    expect("sem_destroy", "sema_destroy", 0, "xd", &sem, 0);
}

/* Spin locks. */
static pthread_spinlock_t spin;

static void *spins(void *argument) {
    expect("pthread_spin_trylock", "spin_trylock", 0, "xd", &spin, EBUSY);
    check(pthread_spin_trylock(&spin) == EBUSY);
    about_to_block();
    expect("pthread_spin_lock", "spin_lock", 1, "x", &spin);
    SILENT(pthread_spin_lock(&spin));
    expect("pthread_spin_lock", "spin_lock", 2, "d", 1);
    SILENT(pthread_spin_unlock(&spin));
    return argument;
}

static void spin_locks(void) {
    struct worker worker;
    SILENT(pthread_spin_init(&spin, 0));
    expect("pthread_spin_init", "spin_init", 0, "xdd", &spin, 0, 0);
    for (int i = 0; i < 6; i++) {
        SILENT(pthread_spin_lock(&spin));
        SILENT(pthread_spin_unlock(&spin));
        SILENT(pthread_spin_trylock(&spin));
        SILENT(pthread_spin_unlock(&spin));
    }
    SILENT(pthread_spin_lock(&spin));
    begin(&worker, spins, NULL);
    until_spinning(&worker);
    SILENT(pthread_spin_unlock(&spin));
    finish(&worker, NULL);
    SILENT(pthread_spin_destroy(&spin));
    expect("pthread_spin_destroy", "spin_destroy", 0, "xd", &spin, 0);
}

/* pthread_once: who runs the routine, and who waits for its end. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static volatile int may_end;

static void routine(void) {
    while (!may_end)
        sched_yield();
}

static void *runs_or_waits(void *argument) {
    about_to_block();
    expect("pthread_once", "thr_once", 1, "xx", &once, routine);
    check(pthread_once(&once, routine) == 0);
    expect("pthread_once", "thr_once", 2, "d", 0);
    return argument;
}

static void onces(void) {
    struct worker first, second;
    begin(&first, runs_or_waits, NULL);
    until_spinning(&first);
    begin(&second, runs_or_waits, NULL);
    until_blocked(&second);
    may_end = 1;
    finish(&first, NULL);
    finish(&second, NULL);
    for (int i = 0; i < 6; i++)
        SILENT(pthread_once(&once, routine));
}

int main(int argc, char **argv) {
    check(argc == 2);
    const char *kind = argv[1];
    if (strcmp(kind, "normal") == 0)
        mutexes(PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_NONE);
    else if (strcmp(kind, "recursive") == 0)
        mutexes(PTHREAD_MUTEX_RECURSIVE, 0, PTHREAD_PRIO_NONE);
    else if (strcmp(kind, "errorcheck") == 0)
        mutexes(PTHREAD_MUTEX_ERRORCHECK, 0, PTHREAD_PRIO_NONE);
    else if (strcmp(kind, "adaptive") == 0)
        mutexes(PTHREAD_MUTEX_ADAPTIVE_NP, 0, PTHREAD_PRIO_NONE);
    else if (strcmp(kind, "inherit") == 0) {
        mark = PERHAPS;
        mutexes(PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_INHERIT);
    } else if (strcmp(kind, "robust") == 0)
        mutexes(PTHREAD_MUTEX_NORMAL, 1, PTHREAD_PRIO_NONE);
    else if (strcmp(kind, "rwlock") == 0)
        rwlocks();
    else if (strcmp(kind, "sema") == 0)
        semaphores();
    else if (strcmp(kind, "spin") == 0)
        spin_locks();
    else if (strcmp(kind, "once") == 0)
        onces();
    else
        check(!"a known kind");
    return done();
}
