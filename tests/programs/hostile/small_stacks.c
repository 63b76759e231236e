// Threads with the smallest stack there may be, of which they leave little: `small_stacks`.
//
// Each calls one function of every kind with just LEFT bytes of stack below it: its first record, waits that block,
// calls that fail, and so many calls that its buffer is written more than once. What overflows meets the guard page.

#define _GNU_SOURCE
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "../lifecycle/calls.h"

#define CHECK(condition)                                    \
    do                                                      \
        if (!(condition)) {                                 \
            static const char text[] = "failed: " #condition "\n"; \
            if (write(1, text, sizeof text - 1)) _exit(3);  \
        }                                                   \
    while (0)

// What glibc's own functions (and the dynamic linker's lazy binding, which saves vector registers) may need.
enum { LEFT = 6 * 1024 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem, taken;
static char *nothing[] = {"nothing", NULL};

static struct timespec soon(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_nsec += 2000000;
    if (now.tv_nsec >= 1000000000) {
        now.tv_sec++;
        now.tv_nsec -= 1000000000;
    }
    return now;
}

static void in_first(void) {
    pairs(1);
}

static void in_many(void) {
    pairs(2000);
}

static void in_cond_wait(void) {
    struct timespec limit = soon();
    pthread_mutex_lock(&mutex);
    int result;
    while ((result = pthread_cond_timedwait(&cond, &mutex, &limit)) == 0)
        ;
    CHECK(result == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
}

static void in_sem_wait(void) {
    struct timespec limit = soon();
    CHECK(sem_timedwait(&taken, &limit) == -1 && errno == ETIMEDOUT);
    sem_post(&sem);
    CHECK(sem_wait(&sem) == 0);
}

static void in_timed_lock(void) {
    struct timespec limit = soon();
    static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&held);
    CHECK(pthread_mutex_timedlock(&held, &limit) == ETIMEDOUT);
    pthread_mutex_unlock(&held);
}

static void in_rwlock(void) {
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
}

static void nothing_once(void) {
}

static void in_others(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_spinlock_t spin;
    pthread_barrier_t barrier;
    pthread_key_t key;
    CHECK(pthread_once(&once, nothing_once) == 0);
    pthread_spin_init(&spin, 0);
    pthread_spin_lock(&spin);
    pthread_spin_unlock(&spin);
    pthread_barrier_init(&barrier, NULL, 1);
    CHECK(pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
    CHECK(pthread_key_create(&key, NULL) == 0 && pthread_setspecific(key, &key) == 0);
    CHECK(pthread_getspecific(key) == &key && pthread_key_delete(key) == 0);
    CHECK(pthread_kill(pthread_self(), 0) == 0);
    sched_yield();
    mtx_t c11;
    mtx_init(&c11, mtx_plain);
    mtx_lock(&c11);
    mtx_unlock(&c11);
}

static void in_exec(void) {
    CHECK(execv("/nonexistent", nothing) == -1 && errno == ENOENT);
}

static void *leaf(void *argument) {
    return argument;
}

static void in_create(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    pthread_t thread;
    CHECK(pthread_create(&thread, &attributes, leaf, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

static void in_exit(void) {
    pairs(1);
    pthread_exit(NULL);
}

static void (*const bodies[])(void) = {in_first, in_many, in_cond_wait, in_sem_wait, in_timed_lock, in_rwlock, in_others, in_exec, in_create, in_exit};

static void *work(void *argument) {
    void (*body)(void) = *(void (*const *)(void))argument;
    pthread_attr_t attributes;
    void *lowest;
    size_t size;
    // The main thread has called each function once: this is not the first binding of any.
    if (pthread_getattr_np(pthread_self(), &attributes) || pthread_attr_getstack(&attributes, &lowest, &size))
        return NULL;
    pthread_attr_destroy(&attributes);
    long spare = (char *)__builtin_frame_address(0) - (char *)lowest - LEFT;
    volatile char *room = alloca(spare > 0 ? spare : 1);
    room[0] = 0;
    body();
    return (void *)(long)room[0];
}

int main(void) {
    sem_init(&sem, 0, 0);
    sem_init(&taken, 0, 0);
    for (int turn = 0; turn < 2; turn++)
        for (unsigned i = 0; i < sizeof bodies / sizeof *bodies; i++) {
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
            pthread_attr_setstacksize(&attributes, turn ? PTHREAD_STACK_MIN : 1 << 20);
            pthread_t thread;
            CHECK(pthread_create(&thread, &attributes, work, (void *)&bodies[i]) == 0);
            CHECK(pthread_join(thread, NULL) == 0);
        }
    puts("done");
    return 0;
}
