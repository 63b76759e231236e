// A signal handler interrupts the first record of its process, while the library makes its files: `first_record WAY YIELDS`.
//
// It does so each time: the program has a lease of the directory's clock, FILE in the environment, and the kernel sends a signal
// to the thread that opens the file. The handler gives the lease back, after
//   yield    YIELDS calls of sched_yield
//   fork     the same, and then a child has been forked that makes 10 more
//   await    another thread has made YIELDS calls, which it does when the handler has begun
//   end      the same, and that thread has ended by the system call
// Then the thread makes 10 more. Prints how many calls all have made. Ends with 7.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"

static const char *way;
static int yields, file, begun[2], done[2];
static volatile sig_atomic_t handled;
static atomic_int *calls;

static void yield(int count) {
    for (int i = 0; i < count; i++) {
        CHECK(sched_yield() == 0);
        atomic_fetch_add(calls, 1);
    }
}

static void *other_thread(void *unused) {
    char byte;
    (void)unused;
    CHECK(read(begun[0], &byte, 1) == 1);
    yield(yields);
    CHECK(write(done[1], "", 1) == 1);
    if (strcmp(way, "end") == 0)
        syscall(SYS_exit, 0);
    return NULL;
}

static void handle(int number) {
    char byte;
    int status;
    (void)number;
    if (handled++)
        return;
    if (strcmp(way, "await") == 0 || strcmp(way, "end") == 0)
        CHECK(write(begun[1], "", 1) == 1 && read(done[0], &byte, 1) == 1);
    else
        yield(yields);
    CHECK(fcntl(file, F_SETLEASE, F_UNLCK) == 0);
    if (strcmp(way, "fork") != 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        yield(10);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    way = argv[1];
    yields = atoi(argv[2]);
    pthread_t thread;
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    struct f_owner_ex owner = {F_OWNER_TID, gettid()};
    calls = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(calls != MAP_FAILED && pipe(begun) == 0 && pipe(done) == 0);
    CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0);
    CHECK(sigaction(SIGIO, &action, NULL) == 0);
    file = open(getenv("FILE"), O_RDWR | O_CLOEXEC);
    CHECK(file >= 0 && fcntl(file, F_SETOWN_EX, &owner) == 0 && fcntl(file, F_SETLEASE, F_WRLCK) == 0);
    yield(1);
    CHECK(handled);
    yield(9);
    if (strcmp(way, "await") == 0)
        CHECK(pthread_join(thread, NULL) == 0);
    printf("%d\n", atomic_load(calls));
    fflush(stdout);
    return 7;
}
