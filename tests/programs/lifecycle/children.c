// Processes and their children: `children MODE`. Prints what is needed to find the records of each: `parent PID`,
// `child PID STATUS`. The parent makes 10 pairs before and 3 after; a forked child 5; a program that was exec'd 7; a thread
// that execs 4.

#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

// Came with glibc 2.34.
#pragma weak _Fork
pid_t _Fork(void);

extern char **environ;
static char self[4096];

static void waited(pid_t child) {
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    printf("child %d %d\n", child, WEXITSTATUS(status));
}

static pid_t start(const char *mode) {
    char *leaf[] = {self, "leaf", NULL};
    pid_t child;
    if (strcmp(mode, "posix_spawn") == 0)
        return posix_spawn(&child, self, NULL, NULL, leaf, environ) ? -1 : child;
    if (strcmp(mode, "vfork_exec") == 0) {
        child = vfork();
        if (child == 0) {
            execv(self, leaf);
            _exit(99);
        }
        return child;
    }
    if (strcmp(mode, "vfork_exec_fails") == 0) {
        child = vfork();
        if (child == 0) {
            execv("/nonexistent/program", leaf);
            _exit(errno);
        }
        return child;
    }
    if (strcmp(mode, "vfork_exit") == 0) {
        child = vfork();
        if (child == 0)
            _exit(21);
        return child;
    }
    child = strcmp(mode, "_Fork") == 0 ? _Fork() : fork();
    if (child)
        return child;
    pairs(5);
    if (strcmp(mode, "fork_exit") == 0)
        exit(22);
    if (strcmp(mode, "fork__exit") == 0 || strcmp(mode, "_Fork") == 0)
        _exit(22);
    if (strcmp(mode, "fork_exec") == 0)
        execv(self, leaf);
    return 0;
}

static void *becomes_leaf(void *argument) {
    pairs(4);
    execl(self, self, "leaf", (char *)NULL);
    return argument;
}

int main(int argc, char **argv) {
    if (argc != 2 || readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 2;
    const char *mode = argv[1];
    if (strcmp(mode, "leaf") == 0) {
        pairs(7);
        return 23;
    }
    printf("parent %d\n", getpid());
    fflush(stdout);
    pairs(10);
    if (strcmp(mode, "exec") == 0) {
        execl(self, self, "leaf", (char *)NULL);
        return 2;
    }
    if (strcmp(mode, "exec_in_thread") == 0) {
        pthread_t thread;
        return pthread_create(&thread, NULL, becomes_leaf, NULL) || pthread_join(thread, NULL) ? 2 : 3;
    }
    if (strcmp(mode, "exec_fails") == 0) {
        char *arguments[] = {"program", NULL};
        if (execvp("/nonexistent/program", arguments) != -1)
            return 2;
        printf("errno %d\n", errno);
    } else if (strcmp(mode, "system") == 0) {
        char command[sizeof self + 8];
        snprintf(command, sizeof command, "%s leaf", self);
        printf("child 0 %d\n", WEXITSTATUS(system(command)));
    } else if (strcmp(mode, "popen") == 0) {
        char command[sizeof self + 8];
        snprintf(command, sizeof command, "%s leaf", self);
        printf("child 0 %d\n", WEXITSTATUS(pclose(popen(command, "w"))));
    } else {
        pid_t child = start(mode);
        if (child == 0)
            return 22;
        waited(child);
    }
    pairs(3);
    return 24;
}
