/*
 * Processes: how they begin, how they become other programs, and how they end. Each case is one run:
 *
 *     process return | exit | _exit | _Exit | quick_exit |
 *             quick_exit@GLIBC_2.10                            ends so, with an odd status
 *     process fork | _Fork                                     a child that ends, and children that cannot be made
 *     process execve | execv | execvp | …                      fails to run a program, then runs itself once more
 *     process image 1 2 3 4 5 6 7 8 9                          what those run: checks what it was given
 */
#include "expect.h"
#include "forbid.h"
#include <sys/wait.h>

#pragma weak _Fork
#pragma weak execveat
pid_t _Fork(void);
int execveat(int, const char *, char *const[], char *const[], int);
/* The version that older programs call. */
void old_quick_exit(int);
__asm__(".symver old_quick_exit,quick_exit@GLIBC_2.10");

extern char **environ;

/* Ends with the status, which is recorded as it was given: exit's callers may give any int. */
static int end(const char *how) {
    int status = strcmp(how, "exit") == 0 ? -3 : 41;
    expect(strcmp(how, "return") == 0 ? "-" : how, "proc_exit", 0, "d", status);
    report();
    if (strcmp(how, "exit") == 0) exit(status);
    if (strcmp(how, "_exit") == 0) _exit(status);
    if (strcmp(how, "_Exit") == 0) _Exit(status);
    if (strcmp(how, "quick_exit") == 0) quick_exit(status);
    if (strcmp(how, "quick_exit@GLIBC_2.10") == 0) old_quick_exit(status);
    return status;
}

static int forks(const char *symbol, pid_t (*function)(void), int kind) {
    expect(symbol, "proc_fork", 1, "d", kind);
    pid_t child = function();
    check(child >= 0);
    if (child == 0) {
        expected = 0;
        expect("-", "proc_begin", 0, "d", getppid());
        expect("_exit", "proc_exit", 0, "d", 5);
        report();
        _exit(5);
    }
    expect(symbol, "proc_fork", 2, "ddd", child, 0, kind);
    int status;
    check(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);

    forbid_processes();
    expect(symbol, "proc_fork", 1, "d", kind);
    check(function() == -1 && errno == EAGAIN);
    expect(symbol, "proc_fork", 2, "ddd", 0, EAGAIN, kind);
    return done();
}

/* The call does not return: what follows is the next image's. */
static void about_to_exec(const char *symbol) {
    expect(symbol, "proc_exec", 1, "");
    report();
}

/* The call returns, with this errno. */
static void failed(const char *symbol, int result, int wanted) {
    int error = errno;
    expect(symbol, "proc_exec", 1, "");
    expect(symbol, "proc_exec", 2, "d", error);
    check(result == -1 && error == wanted);
}

static int execs(const char *how) {
    const char *path = "/proc/self/exe", *none = "/nonexistent/program";
    char *arguments[] = {"process", "image", "1", "2", "3", "4", "5", "6", "7", "8", "9", NULL};
    char *search = "PATH=/nonexistent";
    check(putenv("ROW=kept") == 0);
    if (strcmp(how, "execve") == 0) {
        failed(how, execve(none, arguments, environ), ENOENT);
        failed(how, execve("/dev/null", arguments, environ), EACCES);
        about_to_exec(how);
        execve(path, arguments, environ);
    } else if (strcmp(how, "execv") == 0) {
        failed(how, execv(none, arguments), ENOENT);
        about_to_exec(how);
        execv(path, arguments);
    } else if (strcmp(how, "execvp") == 0) {
        failed(how, execvp(none, arguments), ENOENT);
        check(putenv(search) == 0);
        failed(how, execvp("no-such-program", arguments), ENOENT);
        about_to_exec(how);
        execvp(path, arguments);
    } else if (strcmp(how, "execvpe") == 0) {
        failed(how, execvpe(none, arguments, environ), ENOENT);
        about_to_exec(how);
        execvpe(path, arguments, environ);
    } else if (strcmp(how, "execl") == 0) {
        failed(how, execl(none, "process", NULL), ENOENT);
        about_to_exec(how);
        execl(path, "process", "image", "1", "2", "3", "4", "5", "6", "7", "8", "9", NULL);
    } else if (strcmp(how, "execlp") == 0) {
        failed(how, execlp(none, "process", NULL), ENOENT);
        about_to_exec(how);
        execlp(path, "process", "image", "1", "2", "3", "4", "5", "6", "7", "8", "9", NULL);
    } else if (strcmp(how, "execle") == 0) {
        failed(how, execle(none, "process", NULL, environ), ENOENT);
        about_to_exec(how);
        execle(path, "process", "image", "1", "2", "3", "4", "5", "6", "7", "8", "9", NULL, environ);
    } else if (strcmp(how, "fexecve") == 0) {
        failed(how, fexecve(-1, arguments, environ), EINVAL);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        about_to_exec(how);
        fexecve(file, arguments, environ);
    } else if (strcmp(how, "execveat") == 0) {
        if (!available(how)) return done();
        failed(how, execveat(AT_FDCWD, none, arguments, environ, 0), ENOENT);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        about_to_exec(how);
        execveat(file, "", arguments, environ, AT_EMPTY_PATH);
    } else {
        check(!"a known case");
    }
    check(!"the call did not return");
    return 1;
}

/* The next image: same process, same thread. */
static int image(int argc, char **argv) {
    check(argc == 11 && getenv("ROW") && strcmp(getenv("ROW"), "kept") == 0);
    for (int index = 2; index < argc; index++) check(atoi(argv[index]) == index - 1);
    return done();
}

int main(int argc, char **argv) {
    check(argc >= 2);
    const char *name = argv[1];
    if (strcmp(name, "image") == 0) return image(argc, argv);
    if (strcmp(name, "fork") == 0) return forks(name, fork, 0);
    if (strcmp(name, "_Fork") == 0) return available(name) ? forks(name, _Fork, 8) : done();
    if (strncmp(name, "exec", 4) == 0 || strcmp(name, "fexecve") == 0) return execs(name);
    return end(name);
}
