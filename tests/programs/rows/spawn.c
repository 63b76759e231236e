/*
 * Processes that libc makes within a call. Each case is one run:
 *
 *     spawn posix_spawn | posix_spawnp | pidfd_spawn | pidfd_spawnp | system | popen | vfork | daemon | forkpty
 *     spawn image PID       what most of those run: the child of the process PID
 */
#include "expect.h"
#include "forbid.h"
#include <pty.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Not of every glibc. */
#pragma weak pidfd_spawn
#pragma weak pidfd_spawnp
int pidfd_spawn(int *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
                char *const[]);
int pidfd_spawnp(int *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
                 char *const[]);

/* The first versions give a file of no known format to the shell. */
__asm__(".symver old_posix_spawn, posix_spawn@GLIBC_2.2.5");
__asm__(".symver old_posix_spawnp, posix_spawnp@GLIBC_2.2.5");
int old_posix_spawn(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
                    char *const[]);
int old_posix_spawnp(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
                     char *const[]);

extern char **environ;
static char *no_environment[] = {NULL};

static const char *none = "/nonexistent/program";
static char self[4096], parent[16];
static char *image_arguments[] = {self, "image", parent, NULL};

static void ends_well(pid_t child, int wanted) {
    int status;
    check(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == wanted);
}

/* The next records are the child's, none of its parent's. */
static void becomes_child(pid_t of) {
    expected = 0;
    expect("-", "proc_begin", 0, "d", of);
}

/* Calls one of the functions of six arguments, which fails. */
#define SPAWN_FAILS(function, kind, wanted, ...) \
    do { \
        expect(#function, "proc_fork", 1, "d", kind); \
        int rval = function(__VA_ARGS__); \
        check(rval == wanted); \
        expect(#function, "proc_fork", 2, "ddd", 0, rval, kind); \
    } while (0)

/* A file that the kernel does not execute: the old version runs it by the shell, the default version refuses it. */
#define SPAWN_SCRIPT(function, kind) \
    do { \
        char script[] = "./script-XXXXXX"; \
        int file = mkstemp(script); \
        check(file >= 0 && write(file, "exit 6\n", 7) == 7 && fchmod(file, 0700) == 0 && close(file) == 0); \
        pid_t shell = -1; \
        expect(#function "@GLIBC_2.2.5", "proc_fork", 1, "d", kind); \
        check(old_##function(&shell, script, NULL, NULL, image_arguments, no_environment) == 0); \
        expect(#function "@GLIBC_2.2.5", "proc_fork", 2, "ddd", shell, 0, kind); \
        ends_well(shell, 6); \
        SPAWN_FAILS(function, kind, ENOEXEC, &shell, script, NULL, NULL, image_arguments, no_environment); \
        check(unlink(script) == 0); \
    } while (0)

static int spawns(void) {
    pid_t child = -1;
    SPAWN_SCRIPT(posix_spawn, 2);
    expect("posix_spawn", "proc_fork", 1, "d", 2);
    check(posix_spawn(&child, self, NULL, NULL, image_arguments, environ) == 0);
    expect("posix_spawn", "proc_fork", 2, "ddd", child, 0, 2);
    ends_well(child, 0);
    /* Without a variable: the PID is known all the same. */
    expect("posix_spawn", "proc_fork", 1, "d", 2);
    check(posix_spawn(NULL, self, NULL, NULL, image_arguments, environ) == 0);
    int status;
    child = wait(&status);
    expect("posix_spawn", "proc_fork", 2, "ddd", child, 0, 2);
    check(status == 0);
    SPAWN_FAILS(posix_spawn, 2, ENOENT, &child, none, NULL, NULL, image_arguments, environ);
    forbid_processes();
    /* Older ones return the -1 of the call that failed, as EPERM. */
    int refused = is_older_than("2.34") ? EPERM : EAGAIN;
    SPAWN_FAILS(posix_spawn, 2, refused, NULL, self, NULL, NULL, image_arguments, environ);
    return done();
}

static int spawns_by_search(void) {
    pid_t child = -1;
    SPAWN_SCRIPT(posix_spawnp, 3);
    expect("posix_spawnp", "proc_fork", 1, "d", 3);
    check(posix_spawnp(&child, self, NULL, NULL, image_arguments, environ) == 0);
    expect("posix_spawnp", "proc_fork", 2, "ddd", child, 0, 3);
    ends_well(child, 0);
    SPAWN_FAILS(posix_spawnp, 3, ENOENT, &child, "no-such-program", NULL, NULL, image_arguments, environ);
    return done();
}

/* No program finds a function that the C library does not have. */
static int has_function(const char *function) {
    void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (library && dlsym(library, function)) return 1;
    check(dlsym(RTLD_DEFAULT, function) == NULL);
    printf("missing %s\n", function);
    return 0;
}

static int spawns_to_pidfd(void) {
    int pidfd = -1;
    if (!has_function("pidfd_spawn")) return done();
    expect("pidfd_spawn", "proc_fork", 1, "d", 9);
    check(pidfd_spawn(&pidfd, self, NULL, NULL, image_arguments, environ) == 0);
    int status;
    pid_t child = wait(&status);
    expect("pidfd_spawn", "proc_fork", 2, "ddd", child, 0, 9);
    check(status == 0 && close(pidfd) == 0);
    expect("pidfd_spawn", "proc_fork", 1, "d", 9);
    check(pidfd_spawn(&pidfd, none, NULL, NULL, image_arguments, environ) == ENOENT);
    expect("pidfd_spawn", "proc_fork", 2, "ddd", 0, ENOENT, 9);
    return done();
}

static int spawns_to_pidfd_by_search(void) {
    int pidfd = -1;
    if (!has_function("pidfd_spawnp")) return done();
    expect("pidfd_spawnp", "proc_fork", 1, "d", 10);
    check(pidfd_spawnp(&pidfd, self, NULL, NULL, image_arguments, environ) == 0);
    int status;
    pid_t child = wait(&status);
    expect("pidfd_spawnp", "proc_fork", 2, "ddd", child, 0, 10);
    check(status == 0 && close(pidfd) == 0);
    expect("pidfd_spawnp", "proc_fork", 1, "d", 10);
    check(pidfd_spawnp(&pidfd, "no-such-program", NULL, NULL, image_arguments, environ) == ENOENT);
    expect("pidfd_spawnp", "proc_fork", 2, "ddd", 0, ENOENT, 10);
    return done();
}

/* The shell's own records do not matter here. */
static void hide_shell(void) { check(unsetenv("LD_PRELOAD") == 0); }

static int runs_commands(void) {
    hide_shell();
    expect("system", "proc_fork", 1, "d", 4);
    check(system("exit 7") == 7 << 8);
    expect("system", "proc_fork", 2, "ddd", 0, 0, 4);
    expect("system", "proc_fork", 1, "d", 4);
    check(system(NULL));
    expect("system", "proc_fork", 2, "ddd", 0, 0, 4);
    forbid_processes();
    expect("system", "proc_fork", 1, "d", 4);
    int result = system("exit 7");
    check(result == 127 << 8 || result == -1);
    /* glibc reports it as the shell's failure, which it need not have been. */
    expect("system", "proc_fork", 2, "ddd", 0, result == -1 ? errno : 0, 4);
    return done();
}

static int opens_commands(void) {
    hide_shell();
    char text[8] = "";
    expect("popen", "proc_fork", 1, "d", 5);
    FILE *stream = popen("echo here", "r");
    expect("popen", "proc_fork", 2, "ddd", 0, 0, 5);
    check(stream && fgets(text, sizeof text, stream) && strcmp(text, "here\n") == 0 && pclose(stream) == 0);
    expect("popen", "proc_fork", 1, "d", 5);
    check(popen("exit", "neither") == NULL && errno == EINVAL);
    expect("popen", "proc_fork", 2, "ddd", 0, EINVAL, 5);
    return done();
}

static int vforks(void) {
    char *const *arguments = image_arguments;
    expect("vfork", "proc_fork", 1, "d", 1);
    pid_t child = vfork();
    if (child == 0) {
        execve(self, arguments, environ);
        _exit(99);
    }
    expect("vfork", "proc_fork", 2, "ddd", child, 0, 1);
    ends_well(child, 0);
    expect("vfork", "proc_fork", 1, "d", 1);
    child = vfork();
    if (child == 0) _exit(7);
    expect("vfork", "proc_fork", 2, "ddd", child, 0, 1);
    ends_well(child, 7);
    forbid_processes();
    expect("vfork", "proc_fork", 1, "d", 1);
    check(vfork() == -1 && errno == EAGAIN);
    expect("vfork", "proc_fork", 2, "ddd", 0, EAGAIN, 1);
    return done();
}

/* daemon() ends the process that calls it, so a child of this one does. */
static int becomes_daemon(void) {
    check(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    expect("fork", "proc_fork", 1, "d", 0);
    pid_t child = fork();
    if (child == 0) {
        becomes_child(getppid());
        expect("daemon", "proc_fork", 1, "d", 6);
        report();
        pid_t before = getpid();
        check(daemon(1, 1) == 0);
        becomes_child(before);
        expect("daemon", "proc_fork", 1, "d", 6);
        forbid_processes();
        check(daemon(1, 1) == -1 && errno == EAGAIN);
        expect("daemon", "proc_fork", 2, "ddd", 0, EAGAIN, 6);
        return done();
    }
    expect("fork", "proc_fork", 2, "ddd", child, 0, 0);
    int status;
    while (wait(&status) > 0) check(status == 0);
    return done();
}

static int forks_on_terminal(void) {
    int terminal, out = dup(STDOUT_FILENO);
    /* Before glibc 2.34 it is in a library of its own, whose call of fork is recorded too. */
    int calls_fork = is_older_than("2.34");
    expect("forkpty", "proc_fork", 1, "d", 7);
    if (calls_fork) expect("fork", "proc_fork", 1, "d", 0);
    pid_t child = forkpty(&terminal, NULL, NULL, NULL);
    if (child == 0) {
        dup2(out, STDOUT_FILENO);
        becomes_child(getppid());
        expect("_exit", "proc_exit", 0, "d", 5);
        report();
        _exit(5);
    }
    if (calls_fork) expect("fork", "proc_fork", 2, "ddd", child, 0, 0);
    expect("forkpty", "proc_fork", 2, "ddd", child, 0, 7);
    ends_well(child, 5);
    forbid_processes();
    expect("forkpty", "proc_fork", 1, "d", 7);
    if (calls_fork) expect("fork", "proc_fork", 1, "d", 0);
    check(forkpty(&terminal, NULL, NULL, NULL) == -1 && errno == EAGAIN);
    if (calls_fork) expect("fork", "proc_fork", 2, "ddd", 0, EAGAIN, 0);
    expect("forkpty", "proc_fork", 2, "ddd", 0, EAGAIN, 7);
    return done();
}

int main(int argc, char **argv) {
    check(argc >= 2 && readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(parent, sizeof parent, "%d", getpid());
    const char *name = argv[1];
    if (strcmp(name, "image") == 0) {
        check(argc == 3 && atoi(argv[2]) == getppid());
        becomes_child(getppid());
        return done();
    }
    if (strcmp(name, "posix_spawn") == 0) return spawns();
    if (strcmp(name, "posix_spawnp") == 0) return spawns_by_search();
    if (strcmp(name, "pidfd_spawn") == 0) return spawns_to_pidfd();
    if (strcmp(name, "pidfd_spawnp") == 0) return spawns_to_pidfd_by_search();
    if (strcmp(name, "system") == 0) return runs_commands();
    if (strcmp(name, "popen") == 0) return opens_commands();
    if (strcmp(name, "vfork") == 0) return vforks();
    if (strcmp(name, "daemon") == 0) return becomes_daemon();
    if (strcmp(name, "forkpty") == 0) return forks_on_terminal();
    check(!"a known case");
}
