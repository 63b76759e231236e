// Two threads that each make a recorded call while the standard descriptors are closed; where the first one is stopped in it, as by a
// debugger, the second one waits for it in vain: `overlapping_openers STOPS WAY`.
//
// The first one is stopped at so many beginnings and ends of system calls after it has seen that a number is free, but at the latest when
// it has opened its file. The second one goes on until it is about to open one. Then one goes on to its end, and then the other one: WAY is
// `first`; or `second`: then the first one goes on before until it is about to open its file. Ends with 1 if one of the three numbers has
// led to something but a directory at the end of a system call, or is open in the end; with 77 where no thread may be stopped.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "interrupt.h"

static atomic_int *threads;
static pid_t process;

static void *record(void *thread) {
    sem_t semaphore;
    CHECK(sem_init(&semaphore, 0, 0) == 0 && sem_post(&semaphore) == 0);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    atomic_store((atomic_int *)thread, gettid());
    CHECK(syscall(SYS_tgkill, getpid(), gettid(), SIGSTOP) == 0);
    CHECK(sem_post(&semaphore) == 0);
    return thread;
}

static void run(void) {
    pthread_t thread[2];
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&thread[i], NULL, record, (void *)&threads[i]) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    for (int fd = 0; fd < 3; fd++)
        CHECK(fcntl(fd, F_GETFD) < 0);
    _exit(0);
}

static void check_numbers(void) {
    for (int fd = 0; fd < 3; fd++) {
        char path[64], target[300] = "";
        snprintf(path, sizeof path, "/proc/%d/fd/%d", process, fd);
        if (readlink(path, target, sizeof target - 1) >= 0 && strcmp(target, "/") != 0) {
            printf("%d led to %s\n", fd, target);
            exit(1);
        }
    }
}

// Lets the thread go on to the next beginning or end of a system call; 0 if it has ended.
static int go_on(pid_t thread, struct user_regs_struct *registers) {
    int status;
    if (!advance(thread, PTRACE_SYSCALL, &status))
        return 0;
    CHECK(ptrace(PTRACE_GETREGS, thread, NULL, registers) == 0);
    check_numbers();
    return 1;
}

static int has_seen_one_free(const struct user_regs_struct *registers) {
    int has_asked = registers->orig_rax == SYS_fcntl && registers->rdi < 3 && registers->rsi == F_GETFD;
    return has_asked && (long long)registers->rax == -EBADF;
}

static int is_at_opening(const struct user_regs_struct *registers) {
    return registers->orig_rax == SYS_openat && !(registers->rdx & O_PATH);
}

static int begins_to_open(const struct user_regs_struct *registers) {
    return is_at_opening(registers) && (long long)registers->rax == -ENOSYS;
}

static int has_opened(const struct user_regs_struct *registers) {
    return is_at_opening(registers) && (long long)registers->rax >= 0;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    int second = strcmp(argv[2], "second") == 0, status;
    struct user_regs_struct registers;
    threads = mmap(NULL, 2 * sizeof *threads, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(threads != MAP_FAILED && (process = fork()) >= 0);
    if (process == 0) {
        CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        run();
    }
    for (int i = 0; i < 2; i++) {
        while (!threads[i])
            if (waitpid(process, &status, WNOHANG) == process)
                return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        begin_to_interrupt(threads[i]);
    }
    do
        CHECK(go_on(threads[0], &registers));
    while (!has_seen_one_free(&registers));
    for (int stops = 0; stops < atoi(argv[1]) && !has_opened(&registers); stops++)
        CHECK(go_on(threads[0], &registers));
    struct user_regs_struct others;
    do
        CHECK(go_on(threads[1], &others));
    while (!begins_to_open(&others));
    while (second && !is_at_opening(&registers))
        CHECK(go_on(threads[0], &registers));
    for (int i = 0; i < 2; i++)
        while (go_on(threads[second ^ i], &registers))
            ;
    CHECK(waitpid(process, &status, 0) == process && WIFEXITED(status));
    return WEXITSTATUS(status);
}
