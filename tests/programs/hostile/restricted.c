// Forbids its threads what a recorder would do, and goes on with calls that are allowed: they need no system call.
//
// Takes the steps that its arguments name, in order:
//
//   pairs N          N pairs of lock and unlock, N posts and N waits that find a token
//   timed N          N locks of a free mutex with a time limit that is not in memory, and N unlocks
//   thread N         pairs N in a thread that is joined
//   fork N           pairs N in a child, which ends by _exit and is waited for
//   tsc HOW          forbids this thread to read the processor's counter
//   strict HOW       puts this thread under strict seccomp
//   refused HOW      the same under a filter, which must fail
//   strictthread HOW N       makes a thread that does so, pairs N, and ends by the exit system call
//   say              writes "still here" to descriptor 1
//   leave            ends by the exit system call, which strict seccomp allows
//   exit, _exit      ends by that function with status 7
//   handler          from here on a signal handler does pairs 1 every 2 ms
//
// HOW: prctl, syscall (of prctl) or seccomp (the system call). With -DEARLY the program forbids itself the counter by an
// inlined system call before any library's constructor runs. Returns 7 from main.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../instruction.h"

enum { DONE = 7 };

static pthread_mutex_t handlers_mutex = PTHREAD_MUTEX_INITIALIZER;

// Ends without a library's function, for a thread that may call no other.
static void leave(int status) {
    by_instruction(SYS_exit, status, 0, 0);
    __builtin_unreachable();
}

static void must(int is_true) {
    if (!is_true)
        leave(3);
}

static void pairs(long count) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    sem_t sem;
    must(sem_init(&sem, 0, 0) == 0);
    for (long i = 0; i < count; i++) {
        must(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
        must(sem_post(&sem) == 0 && sem_wait(&sem) == 0);
    }
}

static void timed(long count) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const struct timespec *nowhere = (const struct timespec *)8;
    for (long i = 0; i < count; i++)
        must(pthread_mutex_timedlock(&mutex, nowhere) == 0 && pthread_mutex_unlock(&mutex) == 0);
}

static void *work(void *count) {
    pairs((long)count);
    return NULL;
}

static void handle(int signal) {
    (void)signal;
    must(pthread_mutex_lock(&handlers_mutex) == 0 && pthread_mutex_unlock(&handlers_mutex) == 0);
}

static int forbid(int option, unsigned long value, const char *how) {
    if (strcmp(how, "prctl") == 0)
        return prctl(option, value, 0, 0, 0);
    if (strcmp(how, "syscall") == 0)
        return syscall(SYS_prctl, option, value, 0, 0, 0);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL);
}

struct strict {
    const char *how;
    long count;
    atomic_int done;
};

static void *strict_work(void *argument) {
    struct strict *strict = argument;
    pairs(strict->count);
    must(forbid(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, strict->how) == 0);
    pairs(strict->count);
    strict->done = 1;
    leave(0);
    return NULL;
}

static void allow_all(void) {
    struct sock_filter filter[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, filter};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

#ifdef EARLY
static void forbid_early(int argc, char **argv, char **environment) {
    (void)argc, (void)argv, (void)environment;
    if (by_instruction(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0))
        leave(4);
}

__attribute__((section(".preinit_array"), used)) static void (*first)(int, char **, char **) = forbid_early;
#endif

int main(int argc, char **argv) {
    // So that stdio asks the kernel nothing when it is used.
    static char buffer[64];
    must(setvbuf(stdout, buffer, _IOFBF, sizeof buffer) == 0);
    for (char **next = argv + 1; next < argv + argc;) {
        const char *step = *next++;
        if (strcmp(step, "say") == 0) {
            must(write(1, "still here\n", 11) == 11);
            continue;
        } else if (strcmp(step, "leave") == 0) {
            leave(DONE);
        } else if (strcmp(step, "exit") == 0) {
            printf("left in stdio's buffer\n");
            exit(DONE);
        } else if (strcmp(step, "_exit") == 0) {
            _exit(DONE);
        } else if (strcmp(step, "handler") == 0) {
            struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
            struct itimerval interval = {{0, 2000}, {0, 2000}};
            must(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &interval, NULL) == 0);
            continue;
        }
        must(next < argv + argc);
        const char *value = *next++;
        if (strcmp(step, "pairs") == 0) {
            pairs(atol(value));
        } else if (strcmp(step, "timed") == 0) {
            timed(atol(value));
        } else if (strcmp(step, "thread") == 0) {
            pthread_t thread;
            must(pthread_create(&thread, NULL, work, (void *)atol(value)) == 0 && pthread_join(thread, NULL) == 0);
        } else if (strcmp(step, "fork") == 0) {
            pid_t child = fork();
            if (child == 0) {
                pairs(atol(value));
                _exit(0);
            }
            int status;
            must(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        } else if (strcmp(step, "tsc") == 0) {
            must(forbid(PR_SET_TSC, PR_TSC_SIGSEGV, value) == 0);
        } else if (strcmp(step, "strict") == 0) {
            must(forbid(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, value) == 0);
        } else if (strcmp(step, "refused") == 0) {
            allow_all();
            must(forbid(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, value) == -1 && errno == EINVAL);
        } else if (strcmp(step, "strictthread") == 0) {
            must(next < argv + argc);
            struct strict strict = {value, atol(*next++), 0};
            pthread_t thread;
            must(pthread_create(&thread, NULL, strict_work, &strict) == 0);
            while (!strict.done)
                usleep(500);
        } else {
            must(0);
        }
    }
    return DONE;
}
