// Times one kind of call: `calls KIND THREADS TURNS` prints the nanoseconds of wall time that a turn takes, of which each
// thread makes TURNS, and the process's peak memory in KiB.
//
// The clock runs from when the first thread begins its turns until the last one has made them: neither the start of the
// process nor the writing of what is left in buffers at its end is in it.
#include "figures.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_THREADS = 64 };

static long turns;
static pthread_barrier_t ready;
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;

static void lock_and_unlock(pthread_mutex_t *mutex) {
    for (long i = 0; i < turns; i++) {
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
    }
}

static void private_mutex(void) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    lock_and_unlock(&mutex);
}

static void shared_mutex(void) {
    lock_and_unlock(&shared);
}

static void recursive_mutex(void) {
    pthread_mutexattr_t attribute;
    pthread_mutex_t mutex;
    pthread_mutexattr_init(&attribute);
    pthread_mutexattr_settype(&attribute, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &attribute);
    lock_and_unlock(&mutex);
}

static void read_lock(void) {
    pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
    for (long i = 0; i < turns; i++) {
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
    }
}

static void semaphore(void) {
    sem_t sem;
    sem_init(&sem, 0, 0);
    for (long i = 0; i < turns; i++) {
        sem_post(&sem);
        sem_wait(&sem);
    }
}

static void system_call(void) {
    for (long i = 0; i < turns; i++)
        syscall(SYS_getppid);
}

// Two threads wake each other by turns. A turn is a wake-up there and one back.
static void ping_pong(void) {
    static pthread_cond_t changed[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
    static int players, whose;
    pthread_mutex_lock(&shared);
    int mine = players++;
    for (long i = 0; i < turns; i++) {
        while (whose != mine)
            pthread_cond_wait(&changed[mine], &shared);
        whose = !mine;
        pthread_cond_signal(&changed[!mine]);
    }
    pthread_mutex_unlock(&shared);
}

// Functions that call each other, whose innermost one makes the turns.
enum { FRAMES = 16 };

// Fills in the frames; null where the turn is a try.
static int (*make_backtrace)(void **frames, int most);

#define TURNS_IN_DEPTH(name, ...)                                                                                                \
    __attribute__((noinline, noclone, __VA_ARGS__)) static long name(int depth) {                                                \
        void *frames[FRAMES];                                                                                                    \
        if (depth > 1) {                                                                                                         \
            long made = name(depth - 1);                                                                                         \
            __asm__ volatile("" : "+r"(made)); /* no jump in the place of the call */                                            \
            return made;                                                                                                         \
        }                                                                                                                        \
        for (long i = 0; i < turns; i++)                                                                                         \
            if (make_backtrace)                                                                                                  \
                make_backtrace(frames, FRAMES);                                                                                  \
            else                                                                                                                 \
                pthread_mutex_trylock(&shared);                                                                                  \
        return turns;                                                                                                            \
    }

TURNS_IN_DEPTH(turns_in_depth, optimize("omit-frame-pointer"))
TURNS_IN_DEPTH(turns_with_frame_pointers, optimize("no-omit-frame-pointer"))

static void failed_try(void) {
    pthread_mutex_lock(&shared);
    turns_in_depth(FRAMES);
}

static void failed_try_with_frame_pointers(void) {
    pthread_mutex_lock(&shared);
    turns_with_frame_pointers(FRAMES);
}

static void backtraces(void) {
    make_backtrace = backtrace;
    turns_in_depth(FRAMES);
}

static void libunwind_backtraces(void) {
    void *library = dlopen("libunwind.so.8", RTLD_NOW);
    if (library)
        make_backtrace = (int (*)(void **, int))dlsym(library, "unw_backtrace");
    if (!make_backtrace) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    turns_in_depth(FRAMES);
}

static const struct {
    const char *name;
    void (*make_turns)(void);
} kinds[] = {{"private", private_mutex},   {"shared", shared_mutex}, {"recursive", recursive_mutex},
             {"read-lock", read_lock},     {"semaphore", semaphore}, {"ping-pong", ping_pong},
             {"system-call", system_call},
             {"failed-try", failed_try},   {"failed-try-fp", failed_try_with_frame_pointers},
             {"backtrace", backtraces},    {"unw-backtrace", libunwind_backtraces}};
static void (*make_turns)(void);

struct span {
    long began, ended;
};

static void *work(void *argument) {
    struct span *span = argument;
    pthread_barrier_wait(&ready);
    span->began = nanoseconds();
    make_turns();
    span->ended = nanoseconds();
    return NULL;
}

int main(int argc, char **argv) {
    for (size_t i = 0; argc == 4 && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(argv[1], kinds[i].name))
            make_turns = kinds[i].make_turns;
    int threads = make_turns ? atoi(argv[2]) : 0;
    turns = make_turns ? atol(argv[3]) : 0;
    if (threads < 1 || threads > MOST_THREADS || turns < 1) {
        fprintf(stderr, "usage: calls private|shared|recursive|read-lock|semaphore|ping-pong|system-call|failed-try[-fp]|"
                        "[unw-]backtrace THREADS TURNS\n");
        return 2;
    }
    pthread_t ids[MOST_THREADS];
    struct span spans[MOST_THREADS];
    pthread_barrier_init(&ready, NULL, threads);
    for (int i = 0; i < threads; i++)
        start(&ids[i], NULL, work, &spans[i]);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    struct span all = spans[0];
    for (int i = 1; i < threads; i++) {
        all.began = spans[i].began < all.began ? spans[i].began : all.began;
        all.ended = spans[i].ended > all.ended ? spans[i].ended : all.ended;
    }
    print_figures((double)(all.ended - all.began) / turns, peak_memory());
    return 0;
}
