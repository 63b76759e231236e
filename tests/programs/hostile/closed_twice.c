// Closes a number that it has closed already, and then gets it for its own file, while another thread writes a record; both are stopped in
// it, as by a debugger: `closed_twice WAY ORDER FILE`.
//
// WAY is what the first thread closes the number by: `close`, `fclose` of a second stream, `closedir` or `pclose`; or `freopen`, which opens its
// file in a stream whose number is closed. The second thread is stopped when it is about to write by that number. ORDER:
//
//   within    the first one is stopped when it is about to close the number, or to open its file in that stream; then the second one goes on
//             until it is stopped, if it is not made to wait; then the first one until it has opened its own file, if it is not; then both
//   long      as `within`, but the second one has more than a second
//   flush     as `long`, but the second one writes a full buffer, and the number is that which such a write moves its file to
//   open      as `long`, for `freopen`, but the number is not closed before: the second one closes it when the first one is stopped
//   before    the second one is stopped before the first one begins to close the number
//   opening   as `before`, but the second one is stopped as soon as it has got the number
//
// Ends with 1 if the number does not lead to the first one's file at the end, or that has been written to, or if closing has succeeded though the
// number was another one's before; with 77 where no thread may be stopped.

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "stopped_threads.h"

enum { RUN, IS_CLOSED, MAY_CLOSE, HAS_POSTED };
// In beginnings and ends of system calls: that which is to be waited for is a matter of a few, of 10 ms, or of a second.
enum { SHORT = 40, MEDIUM = 2000, LONG = 100000 };
// Records that are more than a buffer holds.
enum { FULL = 2000 };

static const char *way, *order, *path;
static sem_t semaphore;

static int is_flush(void) {
    return strcmp(order, "flush") == 0;
}

static int is_open_before(void) {
    return strcmp(order, "open") == 0;
}

// Whether the first thread begins to close the number before the second one begins to open a file.
static int begins_first(void) {
    return strcmp(order, "within") == 0 || strcmp(order, "long") == 0 || is_flush() || is_open_before();
}

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
        if (is_flush()) {
            int apart = 48 + shared->threads[1] % 16;
            CHECK(dup2(number, apart) == apart && close(number) == 0);
            number = apart;
        }
        CHECK((stream = fdopen(number, "r+")));
    }
    if (!is_open_before())
        CHECK(close(number) == 0);
    shared->number = number;
    begin_step(IS_CLOSED);
    if (!begins_first())
        wait_until(MAY_CLOSE);
    if (strcmp(way, "freopen") == 0) {
        CHECK((stream = freopen(path, "w+", stream)));
        return fileno(stream);
    }
    int result;
    if (strcmp(way, "close") == 0)
        result = close(number);
    else if (strcmp(way, "fclose") == 0)
        result = fclose(stream);
    else if (strcmp(way, "closedir") == 0)
        result = closedir(directory);
    else
        result = pclose(stream);
    // What looks at the number first may find it free, and close it when it is another one's.
    CHECK(result == -1 || (strcmp(way, "close") == 0 && begins_first()));
    return open_own();
}

static void *use_file(void *unused) {
    struct stat own, found;
    // The other one has no file open then, so that the number is the least free one when it is closed.
    while (!atomic_load(&shared->threads[1]))
        sched_yield();
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
    if (is_open_before())
        CHECK(close(shared->number) == 0);
    for (int i = 0; i < (is_flush() ? FULL : 1); i++)
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

static int is_waiting(const struct user_regs_struct *registers) {
    return shared->step == IS_CLOSED && begins(registers) && registers->orig_rax == SYS_sched_yield;
}

static int has_got_number(const struct user_regs_struct *registers) {
    return !begins(registers) && registers->orig_rax == SYS_openat && (int)registers->rax == shared->number;
}

static int is_about_to_write(const struct user_regs_struct *registers) {
    return begins(registers) && registers->orig_rax == SYS_pwrite64;
}

static int has_opened(const struct user_regs_struct *registers) {
    long wanted = strcmp(way, "freopen") == 0 ? SYS_dup3 : SYS_openat;
    return !begins(registers) && (long)registers->orig_rax == wanted;
}

// Lets it go on to one of these, or for so many beginnings and ends of system calls.
static void run_for(int patience, pid_t thread, int (*is_wanted)(const struct user_regs_struct *)) {
    struct user_regs_struct registers;
    for (int stops = 0; stops < patience && go_on(thread, &registers) && !is_wanted(&registers); stops++)
        ;
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    way = argv[1];
    order = argv[2];
    path = argv[3];
    begin_process(run);
    pid_t closer = take_thread(0), recorder = take_thread(1);
    if (begins_first()) {
        run_until(closer, is_about_to_close);
        run_for(strcmp(order, "within") == 0 ? SHORT : LONG, recorder, is_about_to_write);
        run_for(SHORT, closer, has_opened);
    } else {
        run_until(closer, is_waiting);
        run_until(recorder, strcmp(order, "opening") == 0 ? has_got_number : is_about_to_write);
        begin_step(MAY_CLOSE);
        run_for(MEDIUM, closer, has_opened);
    }
    leave_thread(recorder);
    leave_thread(closer);
    return end_of_process();
}
