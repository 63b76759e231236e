// A handler of records that a signal handler of the program's interrupts at each instruction, the library's among them. Compiled as the
// handler with -DHANDLER, which makes recorded calls itself, and counts how often it is called while it runs, and how
// often for locks, during which it does nothing.
//
//   calls  the signal handler tries a lock; ten posts are stepped through
//   jumps  it leaves a post by siglongjmp, at one instruction after the other; a lock follows each jump
//
// Prints how many instructions, or jumps, there were.

#define _GNU_SOURCE
#include "../check.h"
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

#ifdef HANDLER

#include "../../../threadt/include/threadt.h"

THREADT_HANDLER

static unsigned depth, again, locks;

int threadt_handler_init(const char *parameters)
{
    return atoi(parameters);
}

void threadt_handler_event(const struct threadt_record *record)
{
    static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    if (record->event1 == 2 && record->event2 == 2 && record->which == 1) {
        // Behind a jump.
        depth = 0;
        locks++;
        return;
    }
    if (depth++)
        again++;
    pthread_mutex_trylock(&own);
    pthread_mutex_unlock(&own);
    depth--;
}

void threadt_handler_fini(void)
{
    dprintf(1, "called again %u locks %u\n", again, locks);
}

#else

/// In rflags: SIGTRAP behind the next instruction.
#define TRAP_FLAG 0x100
/// More than ten posts have.
#define STEPS_MAX 200000
/// So many instructions are left out between two jumps.
#define STRIDE 5

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static sigjmp_buf environment;
static volatile int jumps, steps, steps_max, is_stopping;

static void step(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    int error = errno;
    steps++;
    if (is_stopping || steps > STEPS_MAX)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    else if (!jumps)
        pthread_mutex_trylock(&held);
    else if (steps == steps_max)
        siglongjmp(environment, 1);
    errno = error;
}

static void step_through(void (*call)(void))
{
    is_stopping = 0;
    asm volatile("pushf\n\torl %0, (%%rsp)\n\tpopf" : : "i"(TRAP_FLAG) : "memory", "cc");
    call();
    is_stopping = 1;
}

static sem_t semaphore;

static void post(void)
{
    sem_post(&semaphore);
}

static void post_ten_times(void)
{
    for (int round = 0; round < 10; round++)
        post();
}

int main(int count, char **arguments)
{
    CHECK(count == 2);
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    CHECK(pthread_mutex_lock(&held) == 0);
    post();
    if (strcmp(arguments[1], "calls") == 0) {
        step_through(post_ten_times);
        printf("%d\n", steps);
        return 0;
    }
    for (jumps = 1;; jumps++) {
        steps = 0;
        steps_max = STRIDE * jumps;
        int has_jumped = sigsetjmp(environment, 1);
        if (!has_jumped)
            step_through(post);
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        if (!has_jumped)
            break;
    }
    printf("%d\n", jumps);
    return 0;
}

#endif
