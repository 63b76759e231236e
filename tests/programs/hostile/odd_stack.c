// Calls functions with a stack that is 8 bytes off the alignment which the ABI wants, as code does that is compiled with
// -mpreferred-stack-boundary=3, and some assembly: `odd_stack` makes calls of each kind in children, each as its first and
// as later ones, and ends by one.

#define _GNU_SOURCE
#include "../check.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

// Calls `function` with seven arguments, the last one on the stack.
long call_odd(void *function, long a, long b, long c, long d, long e, long f, long g);

__asm__(".text\n"
        ".type call_odd, @function\n"
        "call_odd:\n"
        ".cfi_startproc\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "mov %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "mov %rdi, %r11\n"
        "mov %rsi, %rdi\n"
        "mov %rdx, %rsi\n"
        "mov %rcx, %rdx\n"
        "mov %r8, %rcx\n"
        "mov %r9, %r8\n"
        "mov 16(%rbp), %r9\n"
        "push 24(%rbp)\n"
        "xor %eax, %eax\n"
        "call *%r11\n"
        "leave\n"
        ".cfi_def_cfa %rsp, 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size call_odd, . - call_odd\n");

#define ARGUMENTS(a, b, c, d, e, f, g, ...) (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f), (long)(g)
#define ODD(function, ...) call_odd((void *)(function), ARGUMENTS(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0))
// A function that returns an int leaves the upper half of the register as it is.
#define RESULT(function, ...) ((int)ODD(function, __VA_ARGS__))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static sem_t sem;
static int word = 1;

// What the macros of threadt.h call.
extern void threadt_put_event(void) __attribute__((weak));
extern void threadt_put_mark(void) __attribute__((weak));

static void nothing(void)
{
}

static void call_mutex(void)
{
    // The records of more than a buffer.
    for (int i = 0; i < 2000; i++) {
        CHECK(RESULT(pthread_mutex_lock, &mutex) == 0);
        CHECK(RESULT(pthread_mutex_trylock, &mutex) == EBUSY);
        CHECK(RESULT(pthread_mutex_unlock, &mutex) == 0);
    }
    struct timespec past = {1, 0};
    CHECK(RESULT(pthread_mutex_lock, &mutex) == 0);
    CHECK(RESULT(pthread_mutex_timedlock, &mutex, &past) == ETIMEDOUT);
    CHECK(RESULT(pthread_mutex_unlock, &mutex) == 0);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_t recursive;
    CHECK(RESULT(pthread_mutex_init, &recursive, &attributes) == 0);
    CHECK(RESULT(pthread_mutex_lock, &recursive) == 0 && RESULT(pthread_mutex_lock, &recursive) == 0);
    CHECK(RESULT(pthread_mutex_unlock, &recursive) == 0 && RESULT(pthread_mutex_unlock, &recursive) == 0);
    CHECK(RESULT(pthread_mutex_destroy, &recursive) == 0);
}

static void call_cond(void)
{
    struct timespec past = {1, 0};
    CHECK(RESULT(pthread_cond_signal, &cond) == 0 && RESULT(pthread_cond_broadcast, &cond) == 0);
    pthread_mutex_lock(&mutex);
    CHECK(RESULT(pthread_cond_timedwait, &cond, &mutex, &past) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
}

static void call_sem(void)
{
    CHECK(RESULT(sem_init, &sem, 0, 1) == 0);
    CHECK(RESULT(sem_wait, &sem) == 0 && RESULT(sem_post, &sem) == 0 && RESULT(sem_trywait, &sem) == 0);
    CHECK(RESULT(sem_trywait, &sem) == -1 && errno == EAGAIN);
    CHECK((void *)ODD(sem_open, "/no/such", 0) == SEM_FAILED);
}

static void call_rwlock(void)
{
    CHECK(RESULT(pthread_rwlock_rdlock, &rwlock) == 0 && RESULT(pthread_rwlock_trywrlock, &rwlock) == EBUSY);
    CHECK(RESULT(pthread_rwlock_unlock, &rwlock) == 0);
    CHECK(RESULT(pthread_rwlock_wrlock, &rwlock) == 0 && RESULT(pthread_rwlock_unlock, &rwlock) == 0);
}

static void call_others(void)
{
    CHECK(RESULT(pthread_barrier_init, &barrier, NULL, 1) == 0);
    CHECK(RESULT(pthread_barrier_wait, &barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
    CHECK(RESULT(pthread_spin_init, &spin, 0) == 0 && RESULT(pthread_spin_lock, &spin) == 0);
    CHECK(RESULT(pthread_spin_trylock, &spin) == EBUSY && RESULT(pthread_spin_unlock, &spin) == 0);
    CHECK(RESULT(pthread_once, &once, nothing) == 0);
    CHECK(RESULT(pthread_key_create, &key, NULL) == 0 && RESULT(pthread_setspecific, key, &key) == 0);
    CHECK((void *)ODD(pthread_getspecific, key) == &key);
    CHECK(RESULT(pthread_setname_np, pthread_self(), "odd") == 0);
    CHECK(RESULT(pthread_kill, pthread_self(), 0) == 0 && RESULT(sched_yield, 0) == 0);
    CHECK(RESULT(prctl, PR_SET_NAME, "odder", 0, 0, 0) == 0);
}

static void call_futex(void)
{
    struct timespec nanosecond = {0, 1};
    CHECK(ODD(syscall, SYS_futex, &word, FUTEX_WAKE, 1) == 0);
    CHECK(ODD(syscall, SYS_futex, &word, FUTEX_WAIT, 1, &nanosecond) == -1 && errno == ETIMEDOUT);
    // The sixth argument is the seventh of `syscall`: a wrong value is refused.
    CHECK(ODD(syscall, SYS_futex, &word, FUTEX_CMP_REQUEUE, 1, 1, &word, 1) == 0);
    CHECK(ODD(syscall, SYS_futex, &word, FUTEX_CMP_REQUEUE, 1, 1, &word, 2) == -1 && errno == EAGAIN);
}

static void call_system(void)
{
    CHECK(ODD(syscall, SYS_getppid) == getppid());
    CHECK(ODD(syscall, SYS_setreuid, -1L, -1L) == 0 && ODD(syscall, SYS_dup2, 0, 50) == 50);
    CHECK(ODD(syscall, SYS_unshare, 1) == -1);
    CHECK(RESULT(dup2, 0, 51) == 51 && RESULT(close, 51) == 0 && RESULT(close, 50) == 0);
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0 && RESULT(setrlimit, RLIMIT_FSIZE, &limit) == 0);
    CHECK(RESULT(setreuid, -1, -1) == 0 && RESULT(chroot, "/no/such") == -1);
}

static void call_processes(void)
{
    int status;
    pid_t child = (int)ODD(fork, 0);
    if (child == 0) {
        ODD(_exit, 5);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
    // In the child, this function's frame is the parent's.
    __asm__ volatile("sub $8, %%rsp\n"
                     "call vfork@PLT\n"
                     "add $8, %%rsp\n"
                     "test %%eax, %%eax\n"
                     "jnz 1f\n"
                     "mov $6, %%edi\n"
                     "call _exit@PLT\n"
                     "1:\n"
                     : "=a"(child)
                     :
                     : "rdi", "rsi", "rdx", "rcx", "r8", "r9", "r10", "r11", "cc", "memory");
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 6);
    CHECK(RESULT(execl, "/no/such", "such", NULL) == -1 && errno == ENOENT);
    CHECK(RESULT(execle, "/no/such", "such", "1", "2", "3", "4", NULL) == -1 && errno == ENOENT);
}

static void record_own_events(void)
{
    if (threadt_put_event)
        ODD(threadt_put_event, 1, 1, 2, 3, 4, 5);
    if (threadt_put_mark)
        ODD(threadt_put_mark, "a mark", 6, NULL, 7);
}

static void (*const kinds[])(void) = {call_mutex,  call_cond,   call_sem,    call_rwlock,    call_others,
                                      call_futex, call_system, call_processes, record_own_events};

int main(void)
{
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            kinds[kind]();
            kinds[kind]();
            ODD(exit, 4);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 4) {
            printf("kind %zu: %s %d\n", kind, WIFSIGNALED(status) ? "signal" : "status",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            return 1;
        }
    }
    puts("done");
    return 0;
}
