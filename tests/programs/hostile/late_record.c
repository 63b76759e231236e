// A signal handler posts while the program's own post is recorded: `late_record SYSTEM_CALLS INSTRUCTIONS DIRECTORY`, when that has made
// so many system calls and executed so many instructions since: the program stops it there as a debugger does.
//
// Prints how many posts have returned, and how many lines are in the files of DIRECTORY then, while the process goes on. Ends with 7, with
// 77 where no process may be stopped.

#define _GNU_SOURCE
#include <glob.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../check.h"
#include "interrupt.h"

static sem_t semaphore;
static volatile int posts, posts_of_handler;

static void post(void) {
    CHECK(sem_post(&semaphore) == 0);
    posts++;
}

static void handle(int number) {
    (void)number;
    CHECK(sem_post(&semaphore) == 0);
    posts_of_handler++;
}

static int lines(const char *directory) {
    char pattern[4096], text[4096];
    glob_t files;
    int count = 0;
    snprintf(pattern, sizeof pattern, "%s/tr.*", directory);
    CHECK(glob(pattern, 0, NULL, &files) == 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        FILE *file = fopen(files.gl_pathv[i], "r");
        CHECK(file);
        for (; fgets(text, sizeof text, file); count++)
            ;
        fclose(file);
    }
    return count;
}

int main(int count, char **arguments) {
    CHECK(count == 4);
    pid_t process = fork();
    CHECK(process >= 0);
    if (process == 0) {
        CHECK(sem_init(&semaphore, 0, 0) == 0 && signal(SIGALRM, handle) != SIG_ERR);
        post();
        CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 && syscall(SYS_tgkill, getpid(), getpid(), SIGSTOP) == 0);
        post();
        // What of the signal is still to come comes here, at the latest.
        getppid();
        printf("%d %d\n", posts + posts_of_handler, lines(arguments[3]));
        fflush(stdout);
        _exit(7);
    }
    int status = interrupt(process, atoi(arguments[1]), atoi(arguments[2]));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    return 7;
}
