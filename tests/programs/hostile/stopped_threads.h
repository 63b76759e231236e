// For programs some of whose threads are stopped as by a debugger while the process goes on: by its parent, which is the program, too.

#pragma once
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "interrupt.h"

struct shared {
    atomic_int step, threads[8];
    // A descriptor of the process, for the parent.
    atomic_int number;
};
// Of the process and its parent.
static struct shared *shared;
static pid_t process;

// In the parent: ends it if the process has ended.
static inline void check_process(void) {
    int status;
    if (waitpid(process, &status, WNOHANG) == process)
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static inline void wait_until(int step) {
    while (atomic_load(&shared->step) < step) {
        sched_yield();
        if (process)
            check_process();
    }
}

static inline void begin_step(int step) {
    atomic_store(&shared->step, step);
}

// A recorded call.
static inline void post(void) {
    sem_t semaphore;
    CHECK(sem_init(&semaphore, 0, 0) == 0 && sem_post(&semaphore) == 0);
}

// Makes the process, which runs this.
static inline void begin_process(void (*run)(void)) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED && (process = fork()) >= 0);
    if (process == 0) {
        // It waits for its parent.
        CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        run();
    }
}

// In a thread of the process: from here on the parent says how far it goes.
static inline void be_thread(int index) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    atomic_store(&shared->threads[index], gettid());
    CHECK(syscall(SYS_tgkill, getpid(), gettid(), SIGSTOP) == 0);
}

// In the parent. Ends it where no thread may be stopped.
static inline pid_t take_thread(int index) {
    while (!shared->threads[index])
        check_process();
    begin_to_interrupt(shared->threads[index]);
    return shared->threads[index];
}

// Lets the thread go on to the next beginning or end of a system call; 0 if it has ended.
static inline int go_on(pid_t thread, struct user_regs_struct *registers) {
    int status;
    if (!advance(thread, PTRACE_SYSCALL, &status))
        return 0;
    CHECK(ptrace(PTRACE_GETREGS, thread, NULL, registers) == 0);
    return 1;
}

// Lets it go on to one of these.
static inline void run_until(pid_t thread, int (*is_wanted)(const struct user_regs_struct *)) {
    struct user_regs_struct registers;
    do
        CHECK(go_on(thread, &registers));
    while (!is_wanted(&registers));
}

// Lets it go on alone.
static inline void leave_thread(pid_t thread) {
    CHECK(ptrace(PTRACE_DETACH, thread, NULL, NULL) == 0);
}

// Whether it has been told that no file has this number.
static inline int has_seen_free(const struct user_regs_struct *registers) {
    int has_asked = registers->orig_rax == SYS_fcntl && registers->rdi < 3 && registers->rsi == F_GETFD;
    return has_asked && (long long)registers->rax == -EBADF;
}

static inline int end_of_process(void) {
    int status;
    CHECK(waitpid(process, &status, 0) == process && WIFEXITED(status));
    return WEXITSTATUS(status);
}
