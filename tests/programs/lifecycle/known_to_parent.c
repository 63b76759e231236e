// A process that has recorded, and then changes what its child's trinfo will say: `known_to_parent WHAT`, with room for another command line.
// The child locks a mutex and is killed, or ends. WHAT is
//   title       the parent changes its command line before the fork
//   own-title   the child changes its command line before it locks
//   thread      another thread loads a library within the fork
//   removed     the second argument is a command that removes the child's files when it has locked; it locks again and ends
//   start       many children, one after the other, print `PID START`, the time when they began as the kernel has it; each ends
//   behind      the same in a time namespace whose clock is 5 ms behind; ends with 77 where there can be none
//   namespace   the child is the first of a PID namespace and records nothing; its child does, and ends.
// Prints `child PID` of the one that records; with `namespace` the inode of its PID namespace.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static sem_t begun, loaded;
static char *title, *title_end;

static void *load(void *unused) {
    while (sem_wait(&begun))
        ;
    if (!dlopen("libm.so.6", RTLD_NOW))
        abort();
    sem_post(&loaded);
    return unused;
}

// A handler of pthread_atfork: the hook has been called, and libc has not forked yet.
static void let_load(void) {
    sem_post(&begun);
    while (sem_wait(&loaded))
        ;
}

static void change_title(void) {
    memset(title, 0, title_end - title);
    strcpy(title, "another title");
}

static int end(pid_t child) {
    return waitpid(child, NULL, 0) == child ? 0 : 3;
}

static void record_and_die(void) {
    pairs(1);
    kill(getpid(), SIGKILL);
}

static int begin_many(void) {
    for (int i = 0; i < 400; i++) {
        pid_t child = fork();
        if (child) {
            if (end(child))
                return 4;
            continue;
        }
        unsigned long long start;
        FILE *file = fopen("/proc/self/stat", "r");
        if (!file || fscanf(file, "%*[^)]) %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &start) != 1)
            abort();
        printf("%d %llu\n", getpid(), start);
        exit(0);
    }
    return 0;
}

static int begin_many_behind(void) {
    static const char offset[] = "boottime -1 995000000\n";
    int file = unshare(CLONE_NEWTIME) ? -1 : open("/proc/self/timens_offsets", O_WRONLY);
    if (file < 0 || write(file, offset, sizeof offset - 1) < 0)
        return 77;
    close(file);
    return begin_many();
}

static int in_namespace(void) {
    if (unshare(CLONE_NEWPID))
        return 4;
    pid_t first = fork();
    if (first)
        return end(first);
    pid_t second = fork();
    if (second)
        _exit(end(second));
    char link[64] = "";
    if (readlink("/proc/self/ns/pid", link, sizeof link - 1) < 0)
        _exit(5);
    pairs(1);
    printf("%s\n", link);
    exit(0);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    char *what = strdup(argv[1]);
    title = argv[0];
    title_end = argv[argc - 1] + strlen(argv[argc - 1]);
    pairs(1);
    if (strcmp(what, "start") == 0)
        return begin_many();
    if (strcmp(what, "behind") == 0)
        return begin_many_behind();
    if (strcmp(what, "namespace") == 0)
        return in_namespace();
    pthread_t loader;
    if (strcmp(what, "thread") == 0) {
        if (sem_init(&begun, 0, 0) || sem_init(&loaded, 0, 0) || pthread_create(&loader, NULL, load, NULL))
            abort();
        pthread_atfork(let_load, NULL, NULL);
    }
    if (strcmp(what, "title") == 0)
        change_title();
    pid_t child = fork();
    if (child == 0) {
        if (strcmp(what, "own-title") == 0)
            change_title();
        if (strcmp(what, "removed") == 0) {
            pairs(1);
            if (system(argv[2]))
                abort();
            pairs(1);
            exit(0);
        }
        record_and_die();
    }
    if (strcmp(what, "thread") == 0)
        pthread_join(loader, NULL);
    printf("child %d\n", child);
    return end(child);
}
