// The program opens a file by the number of its closed stdin when the library has seen that it is free, and is about to take it; then it
// forks: `taken_number STOPS`. With `taken_number STOPS post` it makes a recorded call before, which waits in vain for that thread.
//
// The library's thread is stopped meanwhile as by a debugger: when it has asked for the number, and then when it has got another one and
// has been at so many beginnings and ends of system calls more. The child exits at once. Prints how many descriptors it had that the program
// did not open, and one's target. Ends with 7, with 77 where no thread may be stopped.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "foreign.h"
#include "interrupt.h"

enum { BEFORE, IS_FREE, IS_TAKEN, IS_MISPLACED, HAS_FORKED };

struct shared {
    atomic_int step, thread;
};
static struct shared *shared;

static void wait_until(int step) {
    while (atomic_load(&shared->step) < step)
        sched_yield();
}

static void *record(void *argument) {
    sem_t semaphore;
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    atomic_store(&shared->thread, gettid());
    CHECK(syscall(SYS_tgkill, getpid(), gettid(), SIGSTOP) == 0);
    CHECK(sem_post(&semaphore) == 0);
    return argument;
}

static void run(int posts) {
    char target[300] = "";
    int status;
    pthread_t thread;
    close(STDIN_FILENO);
    note_known();
    CHECK(pthread_create(&thread, NULL, record, NULL) == 0);
    wait_until(IS_FREE);
    CHECK(open("/dev/null", O_RDONLY) == STDIN_FILENO);
    known[STDIN_FILENO] = 1;
    atomic_store(&shared->step, IS_TAKEN);
    wait_until(IS_MISPLACED);
    sem_t semaphore;
    CHECK(sem_init(&semaphore, 0, 0) == 0 && (!posts || sem_post(&semaphore) == 0));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int found = foreign(target, sizeof target);
        printf("%d %s\n", found, target);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    atomic_store(&shared->step, HAS_FORKED);
    CHECK(pthread_join(thread, NULL) == 0);
    exit(7);
}

// Lets the thread go on until such a system call has returned.
static void run_until(pid_t thread, int (*is_wanted)(const struct user_regs_struct *)) {
    struct user_regs_struct registers;
    int status;
    do {
        CHECK(advance(thread, PTRACE_SYSCALL, &status));
        CHECK(ptrace(PTRACE_GETREGS, thread, NULL, &registers) == 0);
    } while (!is_wanted(&registers));
}

static int has_seen_it_free(const struct user_regs_struct *registers) {
    int has_asked = registers->orig_rax == SYS_fcntl && registers->rdi == STDIN_FILENO && registers->rsi == F_GETFD;
    return has_asked && (long long)registers->rax == -EBADF;
}

static int has_misplaced(const struct user_regs_struct *registers) {
    return registers->orig_rax == SYS_openat && registers->rdx & O_PATH && (long long)registers->rax >= 0;
}

int main(int argc, char **argv) {
    CHECK(argc == 2 || (argc == 3 && strcmp(argv[2], "post") == 0));
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    int status;
    pid_t process = fork();
    CHECK(process >= 0);
    if (process == 0) {
        // It waits for this one.
        CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        run(argc == 3);
    }
    while (!atomic_load(&shared->thread))
        if (waitpid(process, &status, WNOHANG) == process)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    pid_t thread = shared->thread;
    begin_to_interrupt(thread);
    run_until(thread, has_seen_it_free);
    atomic_store(&shared->step, IS_FREE);
    wait_until(IS_TAKEN);
    run_until(thread, has_misplaced);
    for (int stops = 0; stops < atoi(argv[1]); stops++)
        CHECK(advance(thread, PTRACE_SYSCALL, &status));
    atomic_store(&shared->step, IS_MISPLACED);
    wait_until(HAS_FORKED);
    CHECK(ptrace(PTRACE_DETACH, thread, NULL, NULL) == 0);
    CHECK(waitpid(process, &status, 0) == process && WIFEXITED(status));
    return WEXITSTATUS(status);
}
