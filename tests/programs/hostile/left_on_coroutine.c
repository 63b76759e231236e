// A coroutine at the end of touched memory, in which a signal handler leaves a call of pthread_mutex_trylock by siglongjmp: at
// instructions of the library, too, earlier and later ones. After each the coroutine calls it again. Prints how many jumps there were, and how
// many pages of the 16 above the stack the kernel has then.

#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "../check.h"
#include "../stack/endless_coroutine.h"

enum { SIZE = 65536, PAGE = 4096, TRAP_FLAG = 0x100 };

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static sigjmp_buf environment;
static volatile int jumps, steps, steps_max, is_stopping;

static void step(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    if (is_stopping)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    else if (++steps > steps_max)
        siglongjmp(environment, 1);
}

static void fail(void)
{
    // What a jump has left makes later calls take many more instructions.
    for (;; jumps++, steps_max += 1 + steps_max / 16) {
        steps = is_stopping = 0;
        int has_jumped = sigsetjmp(environment, 1);
        if (!has_jumped) {
            asm volatile("pushf\n\torl %0, (%%rsp)\n\tpopf" : : "i"(TRAP_FLAG) : "memory", "cc");
            pthread_mutex_trylock(&held);
            is_stopping = 1;
        }
        CHECK(pthread_mutex_trylock(&held) == EBUSY);
        if (!has_jumped)
            break;
    }
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
    CHECK(pthread_mutex_lock(&held) == 0);
    char *memory = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    // Pages of their own, and no parts of a huge one.
    madvise(memory, 2 * SIZE, MADV_NOHUGEPAGE);
    uintptr_t *top = (uintptr_t *)(memory + SIZE);
    *--top = (uintptr_t)coroutine;
    switch_stack(&main_stack, own_stack = top - 6);
    unsigned char are_there[SIZE / PAGE];
    CHECK(mincore(memory + SIZE, SIZE, are_there) == 0);
    int count = 0;
    for (int page = 0; page < SIZE / PAGE; page++)
        count += are_there[page] & 1;
    printf("%d %d\n", jumps, count);
    return 0;
}
