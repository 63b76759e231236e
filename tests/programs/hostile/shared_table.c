// Children that have the memory to themselves and the table of descriptors not: `shared_table CHILDREN HOW FILE`.
//
// Two threads lock and unlock at full speed, two open, read and close files of their own, FILE.0 and FILE.1. The main thread
// makes children by clone with CLONE_FILES, HOW: by `function`, `syscall`, `clone3` (by syscall) or `instruction`, or
// `after-function`: by an instruction, after one by the function with a table of its own. Each makes a pair of calls. Prints how often one of the threads' files was not as it should be, and how many pairs the program made
// without the children's.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../instruction.h"
#include "../lifecycle/calls.h"
#include "busy.h"

static const char *file;
static long bad, opened;

static void count_if(int wrong) {
    if (wrong)
        __atomic_fetch_add(&bad, 1, __ATOMIC_RELAXED);
}

static void *use_file(void *number) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", file, *(int *)number);
    int made = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    count_if(made < 0 || write(made, "x", 1) != 1 || close(made));
    while (!ended) {
        int fd = open(path, O_RDWR);
        for (int i = 0; i < 3; i++) {
            char read;
            count_if(pread(fd, &read, 1, 0) != 1 || read != 'x');
            sched_yield();
        }
        struct stat stat;
        count_if(fstat(fd, &stat) || stat.st_size != 1);
        count_if(close(fd));
        __atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static int do_nothing(void *unused) {
    return unused != NULL;
}

static int child(void *unused) {
    (void)unused;
    pairs(1);
    _exit(7);
}

static _Alignas(16) char stack[65536];

static pid_t make_child(const char *how) {
    long flags = CLONE_FILES | SIGCHLD;
    if (strcmp(how, "function") == 0)
        return clone(child, stack + sizeof stack, (int)flags, NULL);
    pid_t made;
    if (strcmp(how, "clone3") == 0) {
        unsigned long long arguments[8] = {CLONE_FILES, 0, 0, 0, SIGCHLD};
        made = (pid_t)syscall(SYS_clone3, arguments, sizeof arguments);
    } else if (strcmp(how, "syscall") == 0)
        made = (pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0);
    else
        made = (pid_t)by_instruction(SYS_clone, flags, 0, 0);
    return made == 0 ? child(NULL) : made;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    file = argv[3];
    // The thread is known to the library.
    pairs(1);
    pthread_t threads[4];
    static int numbers[2] = {0, 1};
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, i < 2 ? work : use_file, &numbers[i & 1]))
            return 2;
    while (__atomic_load_n(&opened, __ATOMIC_RELAXED) < 10 || __atomic_load_n(&busy_pairs, __ATOMIC_RELAXED) < 10)
        sched_yield();
    if (strcmp(argv[2], "after-function") == 0 && waitpid(clone(do_nothing, stack + sizeof stack, SIGCHLD, NULL), NULL, 0) < 0)
        return 3;
    for (int i = 0, children = atoi(argv[1]); i < children; i++) {
        int status;
        pid_t made = make_child(argv[2]);
        if (made < 0 || waitpid(made, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
            return 3;
    }
    ended = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %ld\n", bad, 1 + busy_pairs);
    return 0;
}
