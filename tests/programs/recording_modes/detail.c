/*
 * What THR_TRACE_DETAIL adds: `detail callers | tail | owners`.
 *
 * callers: calls whose return address the program knows, because there is a label behind each, by a direct call, through
 * the global offset table and through a pointer; the frame pointer holds nonsense meanwhile.
 * tail: the last call of a function, which the compiler has made a jump: the return address is its caller's.
 * owners: who holds what is waited for, by LWP; which kind of lock an unlock ends; a new key.
 */
#include "../rows/worker.h"
#include <semaphore.h>
#include <threads.h>

/* Where the last call of one of the functions below returned to. */
unsigned long returns_to;

/*
 * NAME(argument) makes the call `instruction` with this one argument. A complete function in assembly, so that no compiler
 * moves the label away from the call.
 */
#define CALLER(name, instruction) \
    long name(void *argument); \
    __asm__(".pushsection .text\n" \
            ".globl " #name "\n.type " #name ", @function\n" #name ":\n" \
            "push %rbp\n" \
            "lea 1f(%rip), %rax\n" \
            "mov %rax, returns_to(%rip)\n" \
            "mov $-1, %rbp\n" instruction "\n" \
            "1: pop %rbp\n" \
            "ret\n" \
            ".size " #name ", . - " #name "\n.popsection")

CALLER(lock_directly, "call pthread_mutex_lock@PLT");
CALLER(lock_by_table, "call *pthread_mutex_lock@GOTPCREL(%rip)");
CALLER(lock_by_pointer, "mov pthread_mutex_lock@GOTPCREL(%rip), %r9\ncall *%r9");
CALLER(unlock_directly, "call pthread_mutex_unlock@PLT");
CALLER(unlock_by_table, "call *pthread_mutex_unlock@GOTPCREL(%rip)");
CALLER(try_directly, "call pthread_mutex_trylock@PLT");
CALLER(post_directly, "call sem_post@PLT");
CALLER(init_directly, "xor %esi, %esi\nxor %edx, %edx\ncall sem_init@PLT");
CALLER(wait_directly, "call sem_wait@PLT");
CALLER(wait_by_table, "call *sem_wait@GOTPCREL(%rip)");
CALLER(yield_by_table, "call *sched_yield@GOTPCREL(%rip)");

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t sem;

/* A call of one of the functions above whose record has this form up to a5. */
#define CALL(caller, argument) check(caller(argument) == 0)

static void callers(void) {
    long (*locks[])(void *) = {lock_directly, lock_by_table, lock_by_pointer};
    long (*unlocks[])(void *) = {unlock_directly, unlock_by_table, unlock_directly};
    check(syscall(SYS_gettid) == own_lwp());
    for (int i = 0; i < 3; i++) {
        CALL(locks[i], &mutex);
        expect("pthread_mutex_lock", "mutex_lock", 1, "x---x", &mutex, returns_to);
        expect("pthread_mutex_lock", "mutex_lock", 2, "dd", 0, 0);
        CALL(unlocks[i], &mutex);
        expect("pthread_mutex_unlock", "mutex_unlock", 0, "xdd-x", &mutex, 0, 0, returns_to);
    }
    CALL(try_directly, &mutex);
    expect("pthread_mutex_trylock", "mutex_trylock", 0, "xd--x", &mutex, 0, returns_to);
    CALL(unlock_directly, &mutex);
    expect("pthread_mutex_unlock", "mutex_unlock", 0, "xdd-x", &mutex, 0, 0, returns_to);
    CALL(init_directly, &sem);
    expect("sem_init", "sema_init", 0, "xduxd", &sem, 0, 0, returns_to, 0);
    for (int i = 0; i < 2; i++) {
        CALL(post_directly, &sem);
        expect("sem_post", "sema_post", 0, "xdu-x", &sem, 0, 0, returns_to);
        CALL((i ? wait_by_table : wait_directly), &sem);
        expect("sem_wait", "sema_wait", 1, "xu--x", &sem, 1, returns_to);
        expect("sem_wait", "sema_wait", 2, "d", 0);
    }
    CALL(yield_by_table, NULL);
    expect("sched_yield", "thr_yield", 0, "----x", returns_to);
}

/* gcc -O2 makes a jump of each of these calls. */
#define TAIL __attribute__((noipa))
TAIL int tail_unlock(void *it) { return pthread_mutex_unlock(it); }
TAIL int tail_trylock(void *it) { return pthread_mutex_trylock(it); }
TAIL int tail_lock(void *it) { return pthread_mutex_lock(it); }
TAIL int tail_post(void *it) { return sem_post(it); }
TAIL int tail_wait(void *it) { return sem_wait(it); }

CALLER(through_tail_unlock, "call tail_unlock");
CALLER(through_tail_trylock, "call tail_trylock");
CALLER(through_tail_lock, "call tail_lock");
CALLER(through_tail_post, "call tail_post");
CALLER(through_tail_wait, "call tail_wait");

static void tails(void) {
    CALL(through_tail_lock, &mutex);
    expect("pthread_mutex_lock", "mutex_lock", 1, "x---x", &mutex, returns_to);
    expect("pthread_mutex_lock", "mutex_lock", 2, "dd", 0, 0);
    CALL(through_tail_unlock, &mutex);
    expect("pthread_mutex_unlock", "mutex_unlock", 0, "xdd-x", &mutex, 0, 0, returns_to);
    CALL(through_tail_trylock, &mutex);
    expect("pthread_mutex_trylock", "mutex_trylock", 0, "xd--x", &mutex, 0, returns_to);
    CALL(through_tail_unlock, &mutex);
    expect("pthread_mutex_unlock", "mutex_unlock", 0, "xdd-x", &mutex, 0, 0, returns_to);
    CALL(through_tail_post, &sem);
    expect("sem_post", "sema_post", 0, "xdu-x", &sem, 0, 0, returns_to);
    CALL(through_tail_wait, &sem);
    expect("sem_wait", "sema_wait", 1, "xu--x", &sem, 1, returns_to);
    expect("sem_wait", "sema_wait", 2, "d", 0);
}

/* From here on a5 is of no interest: the tests look at a4. */
static pthread_mutex_t recursive;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long owner;

static void *waits_for_mutex(void *argument) {
    about_to_block();
    expect("pthread_mutex_lock", "mutex_lock", 1, "x--l*", &mutex, owner);
    check(pthread_mutex_lock(&mutex) == 0);
    expect("pthread_mutex_lock", "mutex_lock", 2, "dd", 0, 1);
    check(pthread_mutex_unlock(&mutex) == 0);
    expect("pthread_mutex_unlock", "mutex_unlock", 0, "xdd-*", &mutex, 0, 1);
    expect("pthread_mutex_timedlock", "rmutex_timedlock", 1, "xdll*", &recursive, 0, PAST_NS, owner);
    check(pthread_mutex_timedlock(&recursive, &past) == ETIMEDOUT);
    expect("pthread_mutex_timedlock", "rmutex_timedlock", 2, "ddu", ETIMEDOUT, 1, 0);
    return argument;
}

static void *waits_for_writer(void *argument) {
    about_to_block();
    expect("pthread_rwlock_rdlock", "rw_rdlock", 1, "x--l*", &rwlock, owner);
    check(pthread_rwlock_rdlock(&rwlock) == 0);
    expect("pthread_rwlock_rdlock", "rw_rdlock", 2, "ddu", 0, 1, 1);
    check(pthread_rwlock_unlock(&rwlock) == 0);
    expect("pthread_rwlock_unlock", "rw_unlock", 0, "xdd-*", &rwlock, 0, 0);
    return argument;
}

static void *writes_after_writer(void *argument) {
    about_to_block();
    expect("pthread_rwlock_wrlock", "rw_wrlock", 1, "x--l*", &rwlock, owner);
    check(pthread_rwlock_wrlock(&rwlock) == 0);
    expect("pthread_rwlock_wrlock", "rw_wrlock", 2, "dd", 0, 1);
    check(pthread_rwlock_unlock(&rwlock) == 0);
    expect("pthread_rwlock_unlock", "rw_unlock", 0, "xd?l*", &rwlock, 0, INT64_C(1));
    return argument;
}

static void recursion(void) {
    pthread_mutexattr_t attr;
    check(pthread_mutexattr_init(&attr) == 0);
    check(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE) == 0);
    check(pthread_mutex_init(&recursive, &attr) == 0);
    expect("pthread_mutex_init", "rmutex_init", 0, "xxdd*", &recursive, &attr, 1, 0);
    for (unsigned depth = 1; depth <= 3; depth++) {
        expect("pthread_mutex_lock", "rmutex_lock", 1, "x--l*", &recursive, depth == 1 ? 0 : own_lwp());
        check(pthread_mutex_lock(&recursive) == 0);
        expect("pthread_mutex_lock", "rmutex_lock", 2, "ddu", 0, 0, depth);
    }
}

static void held_by_this_thread(void *(*body)(void *)) {
    struct worker worker;
    owner = own_lwp();
    if (body == waits_for_mutex) {
        expect("pthread_mutex_lock", "mutex_lock", 1, "x--l*", &mutex, INT64_C(0));
        check(pthread_mutex_lock(&mutex) == 0);
        expect("pthread_mutex_lock", "mutex_lock", 2, "dd", 0, 0);
    } else {
        expect("pthread_rwlock_wrlock", "rw_wrlock", 1, "x--l*", &rwlock, INT64_C(0));
        check(pthread_rwlock_wrlock(&rwlock) == 0);
        expect("pthread_rwlock_wrlock", "rw_wrlock", 2, "dd", 0, 0);
    }
    begin(&worker, body, NULL);
    until_blocked(&worker);
    if (body == waits_for_mutex) {
        check(pthread_mutex_unlock(&mutex) == 0);
        expect("pthread_mutex_unlock", "mutex_unlock", 0, "xdd-*", &mutex, 0, 1);
    } else {
        check(pthread_rwlock_unlock(&rwlock) == 0);
        expect("pthread_rwlock_unlock", "rw_unlock", 0, "xddl*", &rwlock, 0, 1, INT64_C(1));
    }
    finish(&worker, NULL);
}

static void owners(void) {
    pthread_key_t keys[2];
    tss_t tss;
    recursion();
    held_by_this_thread(waits_for_mutex);
    held_by_this_thread(waits_for_writer);
    held_by_this_thread(writes_after_writer);
    for (int i = 0; i < 2; i++) {
        check(pthread_key_create(&keys[i], NULL) == 0);
        expect("pthread_key_create", "thr_keycreate", 0, "xxdl*", &keys[i], NULL, 0, (int64_t)keys[i]);
    }
    check(keys[0] != keys[1]);
    check(tss_create(&tss, NULL) == thrd_success);
    expect("tss_create", "thr_keycreate", 0, "xxdl*", &tss, NULL, 0, (int64_t)tss);
}

int main(int argc, char **argv) {
    check(argc == 2);
    check(sem_init(&sem, 0, 0) == 0);
    expect("sem_init", "sema_init", 0, "xdu-d", &sem, 0, 0, 0);
    if (strcmp(argv[1], "callers") == 0)
        callers();
    else if (strcmp(argv[1], "tail") == 0)
        tails();
    else if (strcmp(argv[1], "owners") == 0)
        owners();
    else
        check(!"a known case");
    return done();
}
