// The program changes its root directory while a thread makes its first file in the trace directory, which has no name any more then:
// `chroot_after_creation ROOT`.
//
// The thread is stopped meanwhile as by a debugger, when it has just made the file. Ends with 77 where no thread may be stopped.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "interrupt.h"

enum { RUNS, HAS_CREATED, HAS_LEFT };

struct shared {
    atomic_int step, thread;
};
static struct shared *shared;

static void wait_until(int step) {
    while (atomic_load(&shared->step) < step)
        sched_yield();
}

static void post(void) {
    sem_t semaphore;
    CHECK(sem_init(&semaphore, 0, 0) == 0 && sem_post(&semaphore) == 0);
}

static void *record(void *argument) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    atomic_store(&shared->thread, gettid());
    CHECK(syscall(SYS_tgkill, getpid(), gettid(), SIGSTOP) == 0);
    post();
    return argument;
}

static int has_created(pid_t thread) {
    struct user_regs_struct registers;
    CHECK(ptrace(PTRACE_GETREGS, thread, NULL, &registers) == 0);
    return registers.orig_rax == SYS_openat && registers.rdx & O_CREAT && (long long)registers.rax >= 0;
}

static void run(const char *root) {
    pthread_t thread;
    post();
    CHECK(pthread_create(&thread, NULL, record, NULL) == 0);
    wait_until(HAS_CREATED);
    CHECK(chroot(root) == 0);
    atomic_store(&shared->step, HAS_LEFT);
    CHECK(pthread_join(thread, NULL) == 0);
    exit(0);
}

int main(int argc, char **argv) {
    int status;
    CHECK(argc == 2);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    pid_t process = fork();
    CHECK(process >= 0);
    if (process == 0) {
        // It waits for this one.
        CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        run(argv[1]);
    }
    while (!atomic_load(&shared->thread))
        if (waitpid(process, &status, WNOHANG) == process)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    pid_t thread = shared->thread;
    begin_to_interrupt(thread);
    do
        CHECK(advance(thread, PTRACE_SYSCALL, &status));
    while (!has_created(thread));
    atomic_store(&shared->step, HAS_CREATED);
    wait_until(HAS_LEFT);
    CHECK(ptrace(PTRACE_DETACH, thread, NULL, NULL) == 0);
    CHECK(waitpid(process, &status, 0) == process && WIFEXITED(status));
    return WEXITSTATUS(status);
}
