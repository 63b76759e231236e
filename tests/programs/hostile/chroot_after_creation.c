// The program changes its root directory while a thread makes its first file in the trace directory, which has no name any more then:
// `chroot_after_creation ROOT`.
//
// The thread is stopped meanwhile as by a debugger, when it has just made the file. Ends with 77 where no thread may be stopped.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

#include "stopped_threads.h"

enum { RUNS, HAS_CREATED, HAS_LEFT };

static const char *root;

static void *record(void *argument) {
    be_thread(0);
    post();
    return argument;
}

static void run(void) {
    pthread_t thread;
    post();
    CHECK(pthread_create(&thread, NULL, record, NULL) == 0);
    wait_until(HAS_CREATED);
    CHECK(chroot(root) == 0);
    begin_step(HAS_LEFT);
    CHECK(pthread_join(thread, NULL) == 0);
    exit(0);
}

static int has_created(const struct user_regs_struct *registers) {
    return registers->orig_rax == SYS_openat && registers->rdx & O_CREAT && (long long)registers->rax >= 0;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    root = argv[1];
    begin_process(run);
    pid_t thread = take_thread(0);
    run_until(thread, has_created);
    begin_step(HAS_CREATED);
    wait_until(HAS_LEFT);
    leave_thread(thread);
    return end_of_process();
}
