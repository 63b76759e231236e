// The first records of a process are its vfork child's: `guest_first WHERE THEN`.
//
// WHERE: the child is made by `main`, or by a `thread` that ends then. It posts twice and ends. THEN the process
//   posts     posts once
//   ends      ends
//   execs     runs a program in its place
//   killed    posts from another thread, makes such a child again, and is killed
//
// Prints its ID and the LWP of the thread that made the child, and ends with 7.

#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../check.h"

static sem_t semaphore;

static void make_child(void) {
    pid_t child = vfork();
    CHECK(child >= 0);
    if (child == 0) {
        sem_post(&semaphore);
        sem_post(&semaphore);
        _exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child);
}

static void *run(void *unused) {
    printf("%d %ld\n", getpid(), syscall(SYS_gettid));
    fflush(stdout);
    make_child();
    return unused;
}

static void *post(void *unused) {
    CHECK(sem_post(&semaphore) == 0);
    return unused;
}

static void in_thread(void *(*routine)(void *)) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, routine, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv) {
    CHECK(argc == 3 && sem_init(&semaphore, 0, 0) == 0);
    if (strcmp(argv[1], "main") == 0)
        run(NULL);
    else
        in_thread(run);
    if (strcmp(argv[2], "posts") == 0)
        post(NULL);
    if (strcmp(argv[2], "execs") == 0)
        execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
    if (strcmp(argv[2], "killed") == 0) {
        in_thread(post);
        make_child();
        raise(SIGKILL);
    }
    return 7;
}
