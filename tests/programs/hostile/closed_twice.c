// Closes a number that it has closed already, and then gets it for its own file, while another thread writes a record; both are stopped in
// it, as by a debugger: `closed_twice WAY FILE`.
//
// The first thread is stopped when it is about to close the number a second time: by `close`, by `fclose` of a second stream, by
// `closedir`, or with `pclose`; or, WAY `freopen`, when it is about to open its file in a stream whose number is closed. Then the second one
// goes on until it is about to write, by that number, if it is not made to wait; then the first one until it has opened its own file, if it is
// not; then both. Ends with 1 if the number does not lead to the first one's file at the end, or that has been written to; with 77 where no
// thread may be stopped.

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "stopped_threads.h"

enum { RUN, IS_CLOSED, HAS_POSTED, PATIENCE = 40 };

static const char *way, *path;
static sem_t semaphore;

static int open_own(void) {
    int number = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(number >= 0);
    return number;
}

// Closes a number twice, that of `stream` if there is one, and opens the file by it.
static int reopen(FILE *stream) {
    DIR *directory = NULL;
    int number;
    if (strcmp(way, "closedir") == 0) {
        CHECK((directory = opendir("/")));
        number = dirfd(directory);
    } else if (stream) {
        number = fileno(stream);
    } else {
        number = open_own();
        CHECK((stream = fdopen(number, "r+")));
    }
    CHECK(close(number) == 0);
    begin_step(IS_CLOSED);
    if (strcmp(way, "close") == 0)
        close(number);
    else if (strcmp(way, "fclose") == 0)
        fclose(stream);
    else if (strcmp(way, "closedir") == 0)
        closedir(directory);
    else if (strcmp(way, "pclose") == 0)
        pclose(stream);
    else {
        CHECK((stream = freopen(path, "w+", stream)));
        return fileno(stream);
    }
    return open_own();
}

static void *use_file(void *unused) {
    struct stat own, found;
    FILE *pipe = strcmp(way, "pclose") == 0 ? popen("exit 0", "r") : NULL;
    be_thread(0);
    int number = reopen(pipe);
    CHECK(stat(path, &own) == 0);
    wait_until(HAS_POSTED);
    CHECK(fstat(number, &found) == 0);
    CHECK(found.st_ino == own.st_ino && found.st_size == 0);
    CHECK(close(number) == 0);
    return unused;
}

static void *record(void *unused) {
    post();
    be_thread(1);
    CHECK(sem_post(&semaphore) == 0);
    begin_step(HAS_POSTED);
    return unused;
}

static void run(void) {
    pthread_t threads[2];
    // The end of the command of `popen` must not stop a thread.
    sigset_t end_of_child;
    sigemptyset(&end_of_child);
    sigaddset(&end_of_child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &end_of_child, NULL);
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    CHECK(pthread_create(&threads[1], NULL, record, NULL) == 0);
    CHECK(pthread_create(&threads[0], NULL, use_file, NULL) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    _exit(0);
}

static int begins(const struct user_regs_struct *registers) {
    return (long long)registers->rax == -ENOSYS;
}

static int is_about_to_close(const struct user_regs_struct *registers) {
    long wanted = strcmp(way, "freopen") == 0 ? SYS_openat : SYS_close;
    return shared->step == IS_CLOSED && begins(registers) && (long)registers->orig_rax == wanted;
}

static int is_about_to_write(const struct user_regs_struct *registers) {
    return begins(registers) && registers->orig_rax == SYS_pwrite64;
}

static int has_opened(const struct user_regs_struct *registers) {
    long wanted = strcmp(way, "freopen") == 0 ? SYS_dup3 : SYS_openat;
    return !begins(registers) && (long)registers->orig_rax == wanted;
}

// Lets it go on to one of these, or for some system calls.
static void run_for_a_while(pid_t thread, int (*is_wanted)(const struct user_regs_struct *)) {
    struct user_regs_struct registers;
    for (int stops = 0; stops < PATIENCE && go_on(thread, &registers) && !is_wanted(&registers); stops++)
        ;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    way = argv[1];
    path = argv[2];
    begin_process(run);
    pid_t closer = take_thread(0), recorder = take_thread(1);
    run_until(closer, is_about_to_close);
    run_for_a_while(recorder, is_about_to_write);
    run_for_a_while(closer, has_opened);
    leave_thread(recorder);
    leave_thread(closer);
    return end_of_process();
}
