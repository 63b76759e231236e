// A signal handler on a small alternate stack: `alternate_stack MORE`. The stack has the least size that the kernel takes and MORE
// bytes; below it nothing may be touched. The first recorded calls are the handler's. Ends with 7.

#define _GNU_SOURCE
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../check.h"

enum { GUARD = 1 << 16, SIGNALS = 2000 };

static sem_t sem;
static volatile int handled;

static void handle(int number) {
    (void)number;
    struct timespec past = {0, 1};
    sem_post(&sem);
    sem_trywait(&sem);
    sem_timedwait(&sem, &past);
    handled++;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    // What the kernel wants for its frame, with the registers of this processor.
    size_t size = getauxval(AT_MINSIGSTKSZ);
    size = ((size ? size : MINSIGSTKSZ) + strtoul(argv[1], NULL, 10)) & ~15ul;
    char *memory = mmap(NULL, GUARD + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED && mprotect(memory, GUARD, PROT_NONE) == 0);
    stack_t stack = {.ss_sp = memory + GUARD, .ss_size = size};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    CHECK(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    while (handled < SIGNALS)
        CHECK(raise(SIGUSR1) == 0);
    return 7;
}
