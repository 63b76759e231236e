// A signal handler interrupts the first record of a process: `interrupted_first_record WAY STEP [INSTRUCTIONS]`.
//
// The signal comes when the process has made STEP system calls in its first calls of sem_post, and executed so many instructions since:
// the program stops it there as a debugger does. The handler posts twice, does what WAY names, and posts once more:
//   none     nothing
//   fork     forks two children by libc. Both return into what was interrupted; the first one posts before
//   raw      the same by the system call, which no hook notices
//   unseen   the same, and nobody posts in the handler after it
//   vfork    two children by vfork, which posts once, and posix_spawn, which end at once
//   jump     leaves by siglongjmp; what the process does then it does from where it was
//   deep     the same, from deeper in the stack
//   end      the same, and then the process ends
//   leave    leaves by siglongjmp; then another thread posts, for which the process waits without a call
//   doze     the same, but it waits by sleeping for a millisecond, time after time
//   compute  lets another thread post, and waits for it without a call
//   asleep   the same, but sleeps, and the other thread ends the process
//   exit     ends the process
//   exec     runs a program in its place that posts 3 times and ends with 7
//   failing  tries to run a program that is not there
//   close    closes the descriptors from 3 to 31, where a file of the library is open first
//   many     posts 500 times. The process has posted before: not its first record is interrupted, but a write
// With "kept-" before it another signal comes earlier, after 20 system calls, whose handler posts twice, and tries to run a program if
// the other one does.
// Without a STEP the signal comes after a random time, up to MICROSECONDS: `interrupted_first_record WAY at MICROSECONDS`.
//
// Every process posts 10 times where the signal may come, and 20 times later, when the handler does nothing; where the handler forks
// or closes, no more descriptors are open then than before. Each counts its own posts beside the library. Prints for each process its ID,
// how many posts it has begun and how many it has ended, and how many of these its parent had begun; at last 1 if the signal has come in
// time, else 0. Ends with 7, with 77 where no process may be stopped.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "../instruction.h"
#include "interrupt.h"
#include "open_descriptors.h"

struct calls {
    int pid, begun, ended, inherited;
};

static struct {
    atomic_int processes, was_interrupted;
    struct calls calls[16];
} *shared;

static const char *way, *program;
static struct calls *own;
static volatile int in_progress;
static volatile sig_atomic_t was_handled, is_late;
static sem_t semaphore;
static sigjmp_buf before;
static atomic_int may_post, has_posted;

static void post(int count) {
    for (int i = 0; i < count; i++) {
        int outer = in_progress;
        in_progress = outer + 1;
        own->begun++;
        CHECK(sem_post(&semaphore) == 0);
        own->ended++;
        in_progress = outer;
    }
}

static void *post_elsewhere(void *unused) {
    while (!may_post)
        usleep(100);
    post(20);
    if (strcmp(way, "asleep") == 0)
        exit(7);
    has_posted = 1;
    return unused;
}

static void wait_until_posted(void) {
    for (may_post = 1; !has_posted;)
        if (strcmp(way, "doze") == 0)
            usleep(1000);
}

// Counted as begun: those posts that the process has inherited, and that return in it as well.
static void begin_process(void) {
    int number = atomic_fetch_add(&shared->processes, 1);
    CHECK(number < 16);
    own = &shared->calls[number];
    own->pid = (int)syscall(SYS_getpid);
    own->inherited = in_progress;
}

static pid_t fork_unnoticed(void) {
    return (pid_t)by_instruction(SYS_fork, 0, 0, 0);
}

static void make_guests(void) {
    char *arguments[] = {"true", NULL};
    pid_t child;
    CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, (char *[]){NULL}) == 0);
    if (vfork() == 0) {
        post(1);
        _exit(0);
    }
}

static void fail_to_execute(void) {
    CHECK(execv("/nonexistent", (char *[]){"nonexistent", NULL}) == -1);
}

static void close_descriptors(void) {
    for (int number = 3; number < 32; number++)
        close(number);
}

static void post_earlier(int number) {
    (void)number;
    post(2);
    if (strcmp(way, "failing") == 0)
        fail_to_execute();
}

static void handle(int number) {
    int outer = in_progress;
    (void)number;
    if (is_late || was_handled++)
        return;
    atomic_store(&shared->was_interrupted, 1);
    post(2);
    if (strcmp(way, "jump") == 0 || strcmp(way, "deep") == 0 || strcmp(way, "end") == 0 || strcmp(way, "leave") == 0 ||
        strcmp(way, "doze") == 0)
        siglongjmp(before, 1);
    if (strcmp(way, "compute") == 0)
        wait_until_posted();
    if (strcmp(way, "asleep") == 0)
        for (may_post = 1;;)
            pause();
    if (strcmp(way, "exit") == 0)
        exit(7);
    if (strcmp(way, "exec") == 0) {
        own->begun += 3;
        own->ended += 3;
        execv(program, (char *[]){"interrupted_first_record", "posts", NULL});
        _exit(99);
    }
    if (strcmp(way, "many") == 0)
        post(500);
    if (strcmp(way, "failing") == 0)
        fail_to_execute();
    if (strcmp(way, "vfork") == 0)
        make_guests();
    if (strcmp(way, "close") == 0)
        close_descriptors();
    int is_unseen = strcmp(way, "unseen") == 0, is_raw = is_unseen || strcmp(way, "raw") == 0;
    for (int i = 0; i < 2 && (is_raw || strcmp(way, "fork") == 0); i++) {
        pid_t child = is_raw ? fork_unnoticed() : fork();
        CHECK(child >= 0);
        if (child == 0) {
            begin_process();
            if (i == 0 && !is_unseen)
                post(2);
            break;
        }
    }
    if (!is_unseen)
        post(1);
    in_progress = outer;
}

static __attribute__((noinline)) void post_deep(int depth, int count) {
    volatile char room[512];
    room[0] = room[511] = 0;
    if (depth == 0)
        post(count);
    else
        post_deep(depth - 1, count);
    room[1] = room[0];
}

static int run(int microseconds) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    struct itimerval timer = {.it_value = {0, microseconds}};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && sem_init(&semaphore, 0, 0) == 0);
    CHECK(signal(SIGUSR1, post_earlier) != SIG_ERR);
    begin_process();
    pid_t first = own->pid;
    if (strcmp(way, "close") == 0)
        close_descriptors();
    int before_all = open_descriptors();
    pthread_t other;
    int has_other = strcmp(way, "leave") == 0 || strcmp(way, "doze") == 0 || strcmp(way, "compute") == 0 || strcmp(way, "asleep") == 0;
    CHECK(!has_other || pthread_create(&other, NULL, post_elsewhere, NULL) == 0);
    if (strcmp(way, "many") == 0)
        post(1);
    if (sigsetjmp(before, 1) == 0) {
        if (microseconds != 0)
            CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
        else
            CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 && syscall(SYS_tgkill, first, first, SIGSTOP) == 0);
        post(10);
    }
    in_progress = 0;
    is_late = 1;
    if (has_other) {
        wait_until_posted();
        CHECK(pthread_join(other, NULL) == 0);
    }
    if (strcmp(way, "deep") == 0)
        post_deep(4, 20);
    else if (strcmp(way, "end") != 0)
        post(20);
    // What a jump has left is open until the next write.
    int is_complete = strcmp(way, "fork") == 0 || strcmp(way, "raw") == 0 || strcmp(way, "unseen") == 0 ||
                      strcmp(way, "vfork") == 0 || strcmp(way, "close") == 0;
    CHECK(!is_complete || open_descriptors() == before_all);
    int status;
    while (wait(&status) > 0)
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    exit(own->pid == first ? 7 : 0);
}

int main(int argc, char **argv) {
    int status;
    if (argc == 2) {
        CHECK(sem_init(&semaphore, 0, 0) == 0);
        for (int i = 0; i < 3; i++)
            CHECK(sem_post(&semaphore) == 0);
        return 7;
    }
    CHECK(argc == 3 || argc == 4);
    int is_timed = argc == 4 && strcmp(argv[2], "at") == 0;
    int has_earlier = strncmp(argv[1], "kept-", 5) == 0;
    way = argv[1] + (has_earlier ? 5 : 0);
    program = argv[0];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    pid_t process = fork();
    CHECK(process >= 0);
    if (process == 0)
        run(is_timed ? atoi(argv[3]) : 0);
    if (is_timed) {
        CHECK(waitpid(process, &status, 0) == process);
    } else {
        begin_to_interrupt(process);
        if (has_earlier)
            interrupt_first(process, 20, SIGUSR1);
        status = go_on_and_interrupt(process, atoi(argv[2]), argc == 4 ? atoi(argv[3]) : 0);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    for (int i = 0; i < shared->processes; i++) {
        struct calls *calls = &shared->calls[i];
        printf("%d %d %d %d\n", calls->pid, calls->begun, calls->ended, calls->inherited);
    }
    printf("%d\n", shared->was_interrupted);
    fflush(stdout);
    return 7;
}
