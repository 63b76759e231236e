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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stopped_threads.h"

static void *record(void *index) {
    post();
    be_thread((int)(long)index);
    post();
    return index;
}

static void run(void) {
    pthread_t threads[2];
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    for (long i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, record, (void *)i) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int fd = 0; fd < 3; fd++)
        CHECK(fcntl(fd, F_GETFD) < 0);
    _exit(0);
}

static int go_on_and_check(pid_t thread, struct user_regs_struct *registers) {
    if (!go_on(thread, registers))
        return 0;
    for (int fd = 0; fd < 3; fd++) {
        char path[64], target[300] = "";
        snprintf(path, sizeof path, "/proc/%d/fd/%d", process, fd);
        if (readlink(path, target, sizeof target - 1) >= 0 && strcmp(target, "/") != 0) {
            printf("%d led to %s\n", fd, target);
            exit(1);
        }
    }
    return 1;
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
    int second = strcmp(argv[2], "second") == 0;
    begin_process(run);
    pid_t threads[2] = {take_thread(0), take_thread(1)};
    run_until(threads[0], has_seen_free);
    struct user_regs_struct registers = {0}, others;
    for (int stops = 0; stops < atoi(argv[1]) && !has_opened(&registers); stops++)
        CHECK(go_on_and_check(threads[0], &registers));
    do
        CHECK(go_on_and_check(threads[1], &others));
    while (!begins_to_open(&others));
    while (second && !is_at_opening(&registers))
        CHECK(go_on_and_check(threads[0], &registers));
    for (int i = 0; i < 2; i++)
        while (go_on_and_check(threads[second ^ i], &registers))
            ;
    return end_of_process();
}
