// Threads that record at full speed while signals arrive: `storm posts|jumps|altjumps|forks SIGNALS`.
//
// Each worker posts a semaphore of its own again and again and locks a mutex of its own (but for jumps: a lock must not
// be left). SIGPROF comes a thousand times a second of CPU time, SIGUSR1 and SIGUSR2 as fast as another thread can send
// them. The handlers nest; each posts its thread's second semaphore and locks its thread's mutex for that signal.
//
//   posts     the handlers return
//   jumps     SIGUSR1's leaves by siglongjmp, from wherever the thread was; altjumps: from an alternate stack
//   forks     SIGUSR1's forks now and then; the child returns from it into what was interrupted, posts three times more
//             and ends
//
// A worker goes on until it has handled SIGNALS of SIGUSR1. Prints a line for each worker:
//   LWP SEMAPHORE finished posted SEMAPHORE handled LOCKS FORKS
// where `finished` counts the posts that returned, `posted` is the semaphore's value, and `handled` that of the second.

#define _GNU_SOURCE
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lifecycle/calls.h"

// However late the signals of a busy machine come, a worker posts no more than LEAD times before the next one.
enum { WORKERS = 3, SIGNALS = 3, ALTERNATE = 64 * 1024, FORKS = 12, LEAD = 500 };

struct worker {
    pthread_t thread;
    pid_t lwp;
    sem_t own, handlers;
    pthread_mutex_t mutex, mutexes[SIGNALS];
    volatile long finished, locks, handled, since, forks;
    atomic_int ready, done;
    sigjmp_buf back;
    pid_t children[FORKS];
};

static struct worker workers[WORKERS];
static _Thread_local struct worker *self;
static const char *mode;
static long wanted;

static void handle(int signal) {
    struct worker *worker = self;
    if (!worker)
        return;
    int index = signal == SIGUSR1 ? 0 : signal == SIGUSR2 ? 1 : 2;
    sem_post(&worker->handlers);
    pthread_mutex_lock(&worker->mutexes[index]);
    pthread_mutex_unlock(&worker->mutexes[index]);
    // Handlers nest, but none comes twice, and only this thread counts here.
    __atomic_fetch_add(&worker->locks, 1, __ATOMIC_RELAXED);
    if (signal != SIGUSR1)
        return;
    worker->handled++;
    worker->since = 0;
    if (strcmp(mode, "forks") == 0) {
        if (worker->handled % (wanted / FORKS) || worker->forks == FORKS)
            return;
        // The child has this thread alone; the other signals must not make it record more than three posts.
        sigset_t all, before;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &before);
        pid_t child = fork();
        if (child == 0) {
            self = NULL;
            atomic_store(&worker->done, 2);
            return;
        }
        worker->children[worker->forks++] = child;
        sigprocmask(SIG_SETMASK, &before, NULL);
    } else if (strcmp(mode, "posts") != 0)
        siglongjmp(worker->back, 1);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    static char alternate[WORKERS][ALTERNATE];
    int jumps = strstr(mode, "jumps") != NULL;
    if (strcmp(mode, "altjumps") == 0) {
        stack_t stack = {.ss_sp = alternate[worker - workers], .ss_size = ALTERNATE};
        if (sigaltstack(&stack, NULL))
            abort();
    }
    worker->lwp = gettid();
    sigsetjmp(worker->back, 1);
    self = worker;
    atomic_store(&worker->ready, 1);
    while (worker->handled < wanted) {
        if (worker->since == LEAD) {
            sched_yield();
            continue;
        }
        worker->since++;
        sem_post(&worker->own);
        worker->finished++;
        if (!jumps) {
            pthread_mutex_lock(&worker->mutex);
            pthread_mutex_unlock(&worker->mutex);
        }
        if (atomic_load(&worker->done) == 2) {
            for (int i = 0; i < 3; i++)
                sem_post(&worker->handlers);
            _exit(0);
        }
        for (volatile int pause = 0; pause < 3000; pause++)
            ;
    }
    self = NULL;
    atomic_store(&worker->done, 1);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    mode = argv[1];
    wanted = atol(argv[2]);
    struct sigaction action = {.sa_handler = handle};
    int alternate = strcmp(mode, "altjumps") == 0;
    action.sa_flags = SA_RESTART | (alternate ? SA_ONSTACK : 0);
    for (int i = SIGNALS - 1; i >= 0; i--) {
        // A jump must not leave another handler, which may hold its mutex: SIGUSR1 waits for the others' end.
        sigemptyset(&action.sa_mask);
        if (i && strstr(mode, "jumps"))
            sigaddset(&action.sa_mask, SIGUSR1);
        if (sigaction((int[]){SIGUSR1, SIGUSR2, SIGPROF}[i], &action, NULL))
            return 2;
    }
    for (int i = 0; i < WORKERS; i++) {
        struct worker *worker = &workers[i];
        sem_init(&worker->own, 0, 0);
        sem_init(&worker->handlers, 0, 0);
        pthread_mutex_init(&worker->mutex, NULL);
        for (int signal = 0; signal < SIGNALS; signal++)
            pthread_mutex_init(&worker->mutexes[signal], NULL);
        if (pthread_create(&worker->thread, NULL, work, worker))
            return 2;
    }
    struct itimerval timer = {{0, 1000}, {0, 1000}}, none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &timer, NULL);
    long asked[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        asked[i] = -1;
    for (int left = WORKERS; left;) {
        left = 0;
        for (int i = 0; i < WORKERS; i++) {
            if (atomic_load(&workers[i].done))
                continue;
            left++;
            // A handler that jumps unblocks the next signal before it leaves its stack: if that is there already each time,
            // the stack overflows. So a jump is asked for once the one before has begun.
            long handled = workers[i].handled;
            if (atomic_load(&workers[i].ready) && !(alternate && handled == asked[i])) {
                asked[i] = handled;
                pthread_kill(workers[i].thread, SIGUSR2);
                pthread_kill(workers[i].thread, SIGUSR1);
            }
        }
        usleep(50);
    }
    setitimer(ITIMER_PROF, &none, NULL);
    for (int i = 0; i < WORKERS; i++) {
        struct worker *worker = &workers[i];
        int posted, handled, status;
        pthread_join(worker->thread, NULL);
        sem_getvalue(&worker->own, &posted);
        sem_getvalue(&worker->handlers, &handled);
        for (long child = 0; child < worker->forks; child++)
            if (waitpid(worker->children[child], &status, 0) < 0 || status)
                return 3;
        printf("%d %p %ld %d %p %d %ld %ld\n", worker->lwp, (void *)&worker->own, worker->finished, posted,
               (void *)&worker->handlers, handled, worker->locks, worker->forks);
    }
    return 0;
}
