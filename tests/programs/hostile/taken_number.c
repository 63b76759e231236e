// The program opens a file by the number of its closed stdin when the library has seen that it is free, and is about to take it; then it
// forks: `taken_number STOPS`. With `taken_number STOPS post` it makes a recorded call before, which waits in vain for that thread.
//
// The library's thread is stopped meanwhile as by a debugger: when it has asked for the number, and then when it has got another one and
// has been at so many beginnings and ends of system calls more. The child exits at once. Prints how many descriptors it had that the program
// did not open, and one's target. Ends with 7, with 77 where no thread may be stopped.

#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>

#include "foreign.h"
#include "stopped_threads.h"

enum { BEFORE, IS_FREE, IS_TAKEN, IS_MISPLACED, HAS_FORKED };

static int posts;

static void *record(void *argument) {
    be_thread(0);
    post();
    return argument;
}

static void run(void) {
    char target[300] = "";
    int status;
    pthread_t thread;
    close(STDIN_FILENO);
    note_known();
    CHECK(pthread_create(&thread, NULL, record, NULL) == 0);
    wait_until(IS_FREE);
    CHECK(open("/dev/null", O_RDONLY) == STDIN_FILENO);
    known[STDIN_FILENO] = 1;
    begin_step(IS_TAKEN);
    wait_until(IS_MISPLACED);
    if (posts)
        post();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int found = foreign(target, sizeof target);
        printf("%d %s\n", found, target);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    begin_step(HAS_FORKED);
    CHECK(pthread_join(thread, NULL) == 0);
    exit(7);
}

static int has_misplaced(const struct user_regs_struct *registers) {
    return registers->orig_rax == SYS_openat && registers->rdx & O_PATH && (long long)registers->rax >= 0;
}

int main(int argc, char **argv) {
    CHECK(argc == 2 || (argc == 3 && strcmp(argv[2], "post") == 0));
    struct user_regs_struct registers;
    posts = argc == 3;
    begin_process(run);
    pid_t thread = take_thread(0);
    run_until(thread, has_seen_free);
    begin_step(IS_FREE);
    wait_until(IS_TAKEN);
    run_until(thread, has_misplaced);
    for (int stops = 0; stops < atoi(argv[1]); stops++)
        CHECK(go_on(thread, &registers));
    begin_step(IS_MISPLACED);
    wait_until(HAS_FORKED);
    leave_thread(thread);
    return end_of_process();
}
