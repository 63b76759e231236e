/* Calls of futex(2) by syscall(2), also of the system calls that Linux 5.16 and 6.7 have added. */
#include "worker.h"
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { WAITV = 449, WAKE = 454, WAIT = 455, REQUEUE = 456 };

/* struct futex_waitv, which older headers lack, and its flags. */
struct waiter {
    uint64_t value, address;
    uint32_t flags, reserved;
};
enum { SIZE_U32 = 2, PRIVATE = 128 };

static uint32_t word, other;

static int error_of(long result) { return result == -1 ? errno : 0; }

/* A wait of which this limit is recorded; `get` is its result, or its error's negative number. */
#define WAITS(object, op, value, limit_ns, get, ...) \
    do { \
        expect("syscall", "futex_wait", 1, "xXul", object, op, value, limit_ns); \
        long result = syscall(__VA_ARGS__); \
        int error = error_of(result); \
        expect("syscall", "futex_wait", 2, "dd", (int)result, error); \
        check((error ? -error : result) == (get) || error == ENOSYS); \
    } while (0)

#define WAKES(object, op, count, get, ...) \
    do { \
        long result = syscall(__VA_ARGS__); \
        int error = error_of(result); \
        expect("syscall", "futex_wake", 0, "xXudd", object, op, count, (int)result, error); \
        check((error ? -error : result) == (get) || error == ENOSYS); \
    } while (0)

#define OPERATES(object, op, value, second, get, ...) \
    do { \
        expect("syscall", "futex_op", 1, "xXux", object, op, value, second); \
        long result = syscall(__VA_ARGS__); \
        int error = error_of(result); \
        expect("syscall", "futex_op", 2, "dd", (int)result, error); \
        check((error ? -error : result) == (get) || error == ENOSYS); \
    } while (0)

static void *sleeps(void *argument) {
    int op = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;
    about_to_block();
    WAITS(&word, op, 7, FUTURE_NS, 0, SYS_futex, &word, op, 7, &future, NULL, 4);
    return argument;
}

static void *sleeps_again(void *argument) {
    about_to_block();
    WAITS(&word, FUTEX_WAIT, 7, INT64_C(0), 0, SYS_futex, &word, FUTEX_WAIT, 7, NULL);
    return argument;
}

static void *sleeps_on_two(void *argument) {
    struct waiter waiters[2] = {{7, (uintptr_t)&word, SIZE_U32 | PRIVATE, 0}, {0, (uintptr_t)&other, SIZE_U32 | PRIVATE, 0}};
    about_to_block();
    WAITS(&word, WAITV, 2, FUTURE_NS, 1, WAITV, waiters, 2, 0, &future, CLOCK_REALTIME);
    return argument;
}

static void *sleeps_by_its_own_call(void *argument) {
    about_to_block();
    WAITS(&word, WAIT, 7, FUTURE_NS, 0, WAIT, &word, 7L, 4L, SIZE_U32 | PRIVATE, &future, CLOCK_REALTIME);
    return argument;
}

/* The word belongs to the first thread. */
static void *locks(void *argument) {
    about_to_block();
    OPERATES(&word, FUTEX_LOCK_PI_PRIVATE, 0, NULL, 0, SYS_futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL);
    check((word & FUTEX_TID_MASK) == (uint32_t)own_lwp());
    OPERATES(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, 0, SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0);
    return argument;
}

/* The seventh argument, the bits, is on the stack. */
static void waits_and_wakes(void) {
    int wake = FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG;
    struct worker worker;
    word = 7;
    WAITS(&word, FUTEX_WAIT, 8, INT64_C(0), -EAGAIN, SYS_futex, &word, FUTEX_WAIT, 8, NULL);
    WAITS(&word, FUTEX_WAIT_PRIVATE, 7, INT64_C(1), -ETIMEDOUT, SYS_futex, &word, FUTEX_WAIT_PRIVATE, 7,
          &(struct timespec){0, 1});
    WAITS(&word, FUTEX_WAIT_BITSET, 7, PAST_NS, -ETIMEDOUT, SYS_futex, &word, FUTEX_WAIT_BITSET, 7, &past, NULL, -1);
    WAITS(&word, FUTEX_WAIT_BITSET, 7, INT64_C(0), -EINVAL, SYS_futex, &word, FUTEX_WAIT_BITSET, 7, NULL, NULL, 0);
    WAKES(&word, FUTEX_WAKE_PRIVATE, 1, 0, SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
    WAKES(&word, FUTEX_WAKE, INT_MAX, 0, SYS_futex, &word, FUTEX_WAKE, INT_MAX);
    begin(&worker, sleeps, NULL);
    until_blocked(&worker);
    WAKES(&word, wake, 1, 0, SYS_futex, &word, wake, 1, NULL, NULL, 2);
    WAKES(&word, wake, 1, 1, SYS_futex, &word, wake, 1, NULL, NULL, 6);
    finish(&worker, NULL);
}

/* What only the kernel may find out: no such memory. */
static void bad_addresses(void) {
    char *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(none != MAP_FAILED);
    errno = UNTOUCHED;
    WAITS(none, FUTEX_WAIT, 0, INT64_C(0), -EFAULT, SYS_futex, none, FUTEX_WAIT, 0, NULL);
    WAITS(&word, FUTEX_WAIT, 7, INT64_C(0), -EFAULT, SYS_futex, &word, FUTEX_WAIT, 7, none);
    WAITS(1L, FUTEX_WAIT, 0, INT64_C(0), -EINVAL, SYS_futex, 1L, FUTEX_WAIT, 0, NULL);
    WAKES(1L, FUTEX_WAKE, 1, -EINVAL, SYS_futex, 1L, FUTEX_WAKE, 1);
    WAITS(0L, WAITV, 1, INT64_C(0), -EFAULT, WAITV, none, 1, 0, NULL, CLOCK_MONOTONIC);
    OPERATES(&word, 99, 5, NULL, -ENOSYS, SYS_futex, &word, 99, 5, NULL, &other, 1);
    munmap(none, 4096);
    errno = UNTOUCHED;
}

static void operations(void) {
    struct worker worker;
    word = 7;
    OPERATES(&word, FUTEX_CMP_REQUEUE, 0, &other, -EAGAIN, SYS_futex, &word, FUTEX_CMP_REQUEUE, 0, 9L, &other, 8);
    begin(&worker, sleeps_again, NULL);
    until_blocked(&worker);
    OPERATES(&word, FUTEX_CMP_REQUEUE, 0, &other, 1, SYS_futex, &word, FUTEX_CMP_REQUEUE, 0, 9L, &other, 7);
    /* It adds 3 to the second word, which was 0, and wakes who waits there. */
    int add = FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 0);
    OPERATES(&word, FUTEX_WAKE_OP, 1, &other, 1, SYS_futex, &word, FUTEX_WAKE_OP, 1, 1L, &other, add);
    check(other == 3);
    finish(&worker, NULL);
    word = own_lwp();
    OPERATES(&word, FUTEX_LOCK_PI, 0, NULL, -EDEADLK, SYS_futex, &word, FUTEX_LOCK_PI, 0, NULL);
    OPERATES(&word, FUTEX_TRYLOCK_PI, 0, NULL, -EDEADLK, SYS_futex, &word, FUTEX_TRYLOCK_PI, 0);
    begin(&worker, locks, NULL);
    until_blocked(&worker);
    OPERATES(&word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, 0, SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0);
    finish(&worker, NULL);
}

/* Where the kernel has these calls. */
static void calls_of_their_own(void) {
    struct worker worker;
    struct waiter waiters[2] = {{7, (uintptr_t)&word, SIZE_U32 | PRIVATE, 0}, {0, (uintptr_t)&other, SIZE_U32 | PRIVATE, 0}};
    int has_waitv = syscall(WAITV, NULL, 0, 0, NULL, 0) != -1 || errno != ENOSYS;
    int has_others = syscall(WAKE, NULL, 0L, 0, 0) != -1 || errno != ENOSYS;
    expect("syscall", "futex_wait", 1, "-Xul", WAITV, 0, INT64_C(0));
    expect("syscall", "futex_wait", 2, "dd", -1, has_waitv ? EINVAL : ENOSYS);
    expect("syscall", "futex_wake", 0, "-Xudd", WAKE, 0, -1, has_others ? EINVAL : ENOSYS);
    word = 7;
    other = 0;
    if (has_waitv) {
        begin(&worker, sleeps_on_two, NULL);
        until_blocked(&worker);
        WAKES(&other, FUTEX_WAKE_PRIVATE, 1, 1, SYS_futex, &other, FUTEX_WAKE_PRIVATE, 1);
        finish(&worker, NULL);
    }
    if (has_others) {
        begin(&worker, sleeps_by_its_own_call, NULL);
        until_blocked(&worker);
        OPERATES(&word, REQUEUE, 0, &other, 1, REQUEUE, waiters, 0, 0, 1);
        WAKES(&other, WAKE, 1, 1, WAKE, &other, 4L, 1, SIZE_U32 | PRIVATE);
        finish(&worker, NULL);
    }
}

/* Calls with other numbers are untouched: a child on a stack of its own, and one that the kernel forks unnoticed. */
static int ends(void *argument) {
    WAKES(&word, FUTEX_WAKE, 3, 0, SYS_futex, &word, FUTEX_WAKE, 3);
    (void)argument;
    return 0;
}

static void forks(void) {
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        int parent = getppid();
        expected = 0;
        expect("-", "proc_begin", 0, "d", parent);
        ends(NULL);
        expect("_exit", "proc_exit", 0, "d", 17);
        report();
        _exit(17);
    }
    int status;
    check(child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 17);
    check(syscall(SYS_getpid) == getpid() && syscall(SYS_getppid) == getppid());
    errno = UNTOUCHED;
    /* No call has such a number. */
    for (long number = -1; number < 1 << 20; number = number < 0 ? 511 : number * 2 + 1) {
        check(syscall(number) == -1 && errno == ENOSYS);
    }
    errno = UNTOUCHED;
}

int main(void) {
    waits_and_wakes();
    bad_addresses();
    operations();
    calls_of_their_own();
    fflush(stdout);
    forks();
    return done();
}
