// Two threads that each make a recorded call while the standard descriptors are closed; the first one is stopped in it, as by a debugger,
// and the second one waits for it in vain: `overlapping_openers STOPS WAY`.
//
// The first one is stopped at so many beginnings and ends of system calls after it has seen that a number is free, but at the latest when
// it has opened its file. The second one goes on until it is about to open one. Then one goes on to its end, and then the other one. WAY:
// `first`; `second`: before, the first one goes on until it is about to open its file; `closing`: the first one is stopped when it has
// given a number back, whatever STOPS is, and the second one ends before; `many`: there are eight, all of them stopped when they are about
// to open their files; `libc`: there is one, and the program has a file by the number 0, as within libc, until the thread has seen it.
// `dup2`: there is one, stopped when it is about to give 0 back, and the program gives that number to a file of its own, which it must have
// then. Ends with 1 if one of the three numbers has led to something but a directory at the end of a system call, or is open in the end, before
// another file is opened; with 77 where no thread may be stopped.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../instruction.h"
#include "stopped_threads.h"

enum { RUN, HAS_OPENED, IS_SEEN, HAS_CLOSED, HAVE_POSTED, ARE_CHECKED };

static long count = 2;
static int has_own, is_given;
static sem_t semaphore;

static void *record(void *index) {
    post();
    be_thread((int)(long)index);
    // One recorded call.
    CHECK(sem_post(&semaphore) == 0);
    wait_until(ARE_CHECKED);
    return index;
}

static void run(void) {
    pthread_t threads[8];
    int own = open("/dev/null", O_RDONLY);
    CHECK(own > 2);
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    for (long i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, record, (void *)i) == 0);
    if (has_own) {
        // Its first record may have the number for a moment.
        while (!atomic_load(&shared->threads[0]))
            sched_yield();
        CHECK(by_instruction(SYS_open, (long)"/dev/null", O_RDONLY, 0) == 0);
        begin_step(HAS_OPENED);
        wait_until(IS_SEEN);
        CHECK(by_instruction(SYS_close, 0, 0, 0) == 0);
        begin_step(HAS_CLOSED);
    }
    if (is_given) {
        wait_until(HAS_OPENED);
        CHECK(dup2(own, 0) == 0);
        CHECK(fcntl(0, F_GETFL) == fcntl(own, F_GETFL));
        begin_step(HAS_CLOSED);
    }
    wait_until(HAVE_POSTED);
    for (int fd = 0; fd < 3; fd++)
        CHECK((fcntl(fd, F_GETFD) >= 0) == (is_given && fd == 0));
    begin_step(ARE_CHECKED);
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    _exit(0);
}

static void go_on_and_check(pid_t thread, struct user_regs_struct *registers) {
    CHECK(go_on(thread, registers));
    for (int fd = 0; fd < 3; fd++) {
        char path[64], target[300] = "";
        snprintf(path, sizeof path, "/proc/%d/fd/%d", process, fd);
        if (readlink(path, target, sizeof target - 1) >= 0 && strcmp(target, "/") != 0) {
            printf("%d led to %s\n", fd, target);
            exit(1);
        }
    }
}

static void check_until(pid_t thread, struct user_regs_struct *registers, int (*is_wanted)(const struct user_regs_struct *)) {
    while (!is_wanted(registers))
        go_on_and_check(thread, registers);
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

static int has_given_back(const struct user_regs_struct *registers) {
    return registers->orig_rax == SYS_close && registers->rdi < 3 && registers->rax == 0;
}

static int is_giving_back(const struct user_regs_struct *registers) {
    return registers->orig_rax == SYS_close && registers->rdi == 0 && (long long)registers->rax == -ENOSYS;
}

static int has_seen_taken(const struct user_regs_struct *registers) {
    return registers->orig_rax == SYS_fcntl && registers->rdi == 0 && registers->rsi == F_GETFD && (long long)registers->rax >= 0;
}

static int has_posted(const struct user_regs_struct *registers) {
    return registers->orig_rax == SYS_sched_yield;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    const char *way = argv[2];
    int second = strcmp(way, "second") == 0, closing = strcmp(way, "closing") == 0, many = strcmp(way, "many") == 0;
    has_own = strcmp(way, "libc") == 0;
    is_given = strcmp(way, "dup2") == 0;
    count = many ? 8 : has_own || is_given ? 1 : 2;
    begin_process(run);
    pid_t threads[8];
    struct user_regs_struct registers[8] = {0};
    for (int i = 0; i < count; i++)
        threads[i] = take_thread(i);
    if (has_own) {
        wait_until(HAS_OPENED);
        run_until(threads[0], has_seen_taken);
    }
    run_until(threads[0], has_seen_free);
    if (has_own) {
        begin_step(IS_SEEN);
        wait_until(HAS_CLOSED);
    }
    for (int stops = 0; stops < atoi(argv[1]) && !has_opened(&registers[0]); stops++)
        go_on_and_check(threads[0], &registers[0]);
    if (second)
        check_until(threads[1], &registers[1], begins_to_open);
    if (second || many)
        check_until(threads[0], &registers[0], is_at_opening);
    if (is_given) {
        check_until(threads[0], &registers[0], is_giving_back);
        begin_step(HAS_OPENED);
        // It waits for the thread, or is done by then.
        usleep(100000);
        run_until(threads[0], has_posted);
        registers[0].orig_rax = SYS_sched_yield;
        wait_until(HAS_CLOSED);
    }
    if (closing)
        check_until(threads[0], &registers[0], has_given_back);
    for (int i = 1; i < count; i++)
        check_until(threads[i], &registers[i], closing ? has_posted : begins_to_open);
    for (int i = 0; i < count; i++)
        check_until(threads[i ^ second], &registers[i ^ second], has_posted);
    begin_step(HAVE_POSTED);
    for (int i = 0; i < count; i++)
        leave_thread(threads[i]);
    return end_of_process();
}
