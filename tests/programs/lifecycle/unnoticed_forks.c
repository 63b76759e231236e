// Processes that no hook of fork has made, and their children: `unnoticed_forks FORK SPAWN`. FORK makes a process inside
// libc or the kernel, SPAWN runs a program from it, before the process calls any other hooked function. Prints
// `parent PID`, `process PID` and `child PID STATUS`. The parent makes 10 pairs, the process 3000, the program 4000: more
// than a buffer holds.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

extern char **environ;
static char self[4096];
static char *leaf[] = {self, "leaf", NULL};

static long raw_fork(void) { return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }

// The new process: 0 there, its number in its parent, which daemon() ends.
static long make_process(const char *how) {
    if (strcmp(how, "daemon") == 0)
        return daemon(1, 1);
    if (strcmp(how, "forkpty") == 0) {
        int terminal, out = dup(1);
        pid_t process = forkpty(&terminal, NULL, NULL, NULL);
        if (process == 0)
            dup2(out, 1);
        return process;
    }
    if (strcmp(how, "raw") == 0)
        return raw_fork();
    if (strcmp(how, "raw_twice") == 0) {
        // The process between the two calls nothing that is hooked either.
        long middle = raw_fork();
        if (middle != 0)
            return middle;
        long process = raw_fork();
        if (process == 0)
            return 0;
        waitpid(process, NULL, 0);
        syscall(SYS_exit_group, 0);
    }
    abort();
}

static void becomes_leaf(void) {
    execve(self, leaf, environ);
    syscall(SYS_exit_group, 99);
}

static void call_hooks(void) {
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    pairs(5);
}

static int in_shared_memory(void *hooks) {
    if (hooks)
        call_hooks();
    becomes_leaf();
    return 99;
}

static pid_t spawn(const char *how) {
    pid_t child = -1;
    if (strcmp(how, "vfork") == 0) {
        child = vfork();
        if (child == 0)
            becomes_leaf();
    } else if (strcmp(how, "vfork_hooks") == 0) {
        child = vfork();
        if (child == 0) {
            call_hooks();
            becomes_leaf();
        }
    } else if (strncmp(how, "raw_vfork", 9) == 0) {
        // clone() gives it a stack of its own.
        static _Alignas(16) char stack[65536];
        void *hooks = strcmp(how, "raw_vfork_hooks") == 0 ? stack : NULL;
        child = clone(in_shared_memory, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, hooks);
    } else if (strcmp(how, "posix_spawn") == 0) {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addclose(&actions, 9);
        if (posix_spawn(&child, self, &actions, NULL, leaf, environ))
            abort();
        posix_spawn_file_actions_destroy(&actions);
    } else if (strcmp(how, "posix_spawn_attributes") == 0) {
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
        if (posix_spawnp(&child, self, NULL, &attributes, leaf, environ))
            abort();
        posix_spawnattr_destroy(&attributes);
    }
    return child;
}

int main(int argc, char **argv) {
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 2;
    if (argc == 2 && strcmp(argv[1], "leaf") == 0) {
        pairs(4000);
        return 23;
    }
    if (argc != 3)
        return 2;
    // Waits for all of them, also for a daemon.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (fork()) {
        int status, all = 0;
        while (wait(&status) > 0)
            all |= status;
        return WIFEXITED(all) ? WEXITSTATUS(all) : 6;
    }
    printf("parent %d\n", getpid());
    fflush(stdout);
    pairs(10);
    long process = make_process(argv[1]);
    if (process < 0)
        return 3;
    if (process == 0) {
        pid_t child = spawn(argv[2]);
        pairs(3000);
        int status;
        if (waitpid(child, &status, 0) != child)
            return 4;
        printf("process %d\nchild %d %d\n", getpid(), child, WEXITSTATUS(status));
        return 0;
    }
    return waitpid(process, NULL, 0) == process ? 0 : 5;
}
