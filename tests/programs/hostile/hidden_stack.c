// A timer's handler that locks on an alternate stack which the kernel does not tell of meanwhile (SS_AUTODISARM):
// `hidden_stack SIGNALS PLACE RAW`.
//
// The stack is at PLACE: `static`, `mapped` (mapped before the thread's own stack, and so above it) or `array`, an array on
// the thread's own stack. With RAW 1 it is set
// by the system call itself. Prints how many pairs of lock and unlock the thread and its handler made.

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "../lifecycle/calls.h"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

enum { SIZE = 64 * 1024 };

static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER, handlers = PTHREAD_MUTEX_INITIALIZER;
static volatile long handled, made, wanted;
static int raw;
static char *mapped;

static void handle(int signal) {
    (void)signal;
    pthread_mutex_lock(&handlers);
    pthread_mutex_unlock(&handlers);
    handled++;
}

static void __attribute__((noinline)) run(char *memory) {
    stack_t stack = {.ss_sp = memory, .ss_size = SIZE, .ss_flags = SS_AUTODISARM};
    if (raw ? syscall(SYS_sigaltstack, &stack, NULL) : sigaltstack(&stack, NULL))
        exit(2);
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 100}, {0, 100}}, none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
    while (handled < wanted) {
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
        made++;
    }
    setitimer(ITIMER_REAL, &none, NULL);
    // The array goes away with its function.
    stack_t disabled = {.ss_flags = SS_DISABLE};
    sigaltstack(&disabled, NULL);
}

static void __attribute__((noinline)) run_on_array(void) {
    char array[SIZE];
    memset(array, 0, sizeof array);
    run(array);
}

static void *work(void *place) {
    static char memory[SIZE];
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
    made++;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    if (strcmp(place, "array") == 0)
        run_on_array();
    else if (strcmp(place, "mapped") == 0)
        run(mapped);
    else
        run(memory);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    wanted = atol(argv[1]);
    raw = atoi(argv[3]);
    mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // The first call, and what it takes to make the files, is not interrupted.
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
    made++;
    work(argv[2]);
    wanted *= 2;
    // The same in another thread, which alone takes the timer's signals.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, argv[2]))
        return 2;
    pthread_join(thread, NULL);
    printf("%ld\n", made + handled);
    return 0;
}
