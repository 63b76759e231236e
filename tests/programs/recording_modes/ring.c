// Posts semaphores. The record of each post has the number of posts before it, so that a test knows which are kept.
//
// Takes the steps that its arguments name, in order:
//
//   posts N        the main thread posts a semaphore of its own N times
//   thread N       a thread does so and is joined
//   stay N         a thread does so, and then lives until the process ends
//   fork N         a child does so and ends by _exit; it is waited for
//   exec RING      becomes `ring` with the arguments that are left and THR_TRACE_RING=RING; without it if RING is -
//   go             prints "ready" and waits until there is a file `go`
//   pause          prints "paused" and waits for a signal
//   filter         from here on, every call that opens, writes or changes a file or maps memory kills the process
//   kill, abort, quick_exit, _exit
//
// Before it posts, each thread prints `posts LWP SEMAPHORE N`. Returns 7 from main.

#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 128 };

struct poster {
    sem_t sem;
    long count;
    int stays;
    atomic_int done;
};

static struct poster posters[MOST];
static int used;
static int filtered;

static struct poster *next_poster(const char *count) {
    if (used == MOST)
        exit(2);
    struct poster *poster = &posters[used++];
    poster->count = atol(count);
    return poster;
}

static void post(struct poster *poster) {
    if (!filtered)
        dprintf(1, "posts %d %p %ld\n", gettid(), (void *)&poster->sem, poster->count);
    for (long i = 0; i < poster->count; i++)
        sem_post(&poster->sem);
    poster->done = 1;
}

static void *body(void *argument) {
    struct poster *poster = argument;
    post(poster);
    while (poster->stays)
        pause();
    return NULL;
}

static void kill_for_files(void) {
    static const int calls[] = {SYS_open,      SYS_openat, SYS_write,     SYS_pwrite64, SYS_writev, SYS_fallocate,
                                SYS_ftruncate, SYS_mmap,   SYS_unlinkat,  SYS_unlink,   SYS_fchmod, SYS_statfs,
                                SYS_fstatfs,   SYS_stat,   SYS_newfstatat};
    enum { CALLS = sizeof calls / sizeof *calls };
    struct sock_filter filter[CALLS + 3] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    for (int i = 0; i < CALLS; i++)
        filter[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], CALLS - i, 0);
    filter[CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[CALLS + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {CALLS + 3, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
        exit(3);
    filtered = 1;
}

int main(int argc, char **argv) {
    for (char **next = argv + 1; next < argv + argc;) {
        const char *step = *next++;
        if (strcmp(step, "go") == 0) {
            dprintf(1, "ready\n");
            while (access("go", F_OK))
                usleep(500);
            continue;
        }
        if (strcmp(step, "pause") == 0) {
            dprintf(1, "paused\n");
            pause();
            continue;
        }
        if (strcmp(step, "filter") == 0) {
            kill_for_files();
            continue;
        }
        if (strcmp(step, "kill") == 0)
            raise(SIGKILL);
        if (strcmp(step, "abort") == 0)
            abort();
        if (strcmp(step, "quick_exit") == 0)
            quick_exit(7);
        if (strcmp(step, "_exit") == 0)
            _exit(7);
        if (next == argv + argc)
            return 2;
        const char *value = *next++;
        pthread_t thread;
        if (strcmp(step, "posts") == 0) {
            post(next_poster(value));
        } else if (strcmp(step, "thread") == 0) {
            if (pthread_create(&thread, NULL, body, next_poster(value)) || pthread_join(thread, NULL))
                return 2;
        } else if (strcmp(step, "stay") == 0) {
            struct poster *poster = next_poster(value);
            poster->stays = 1;
            if (pthread_create(&thread, NULL, body, poster))
                return 2;
            while (!poster->done)
                usleep(500);
        } else if (strcmp(step, "fork") == 0) {
            struct poster *poster = next_poster(value);
            pid_t child = fork();
            if (child == 0) {
                post(poster);
                _exit(0);
            }
            int status;
            if (child < 0 || waitpid(child, &status, 0) != child || status)
                return 2;
        } else if (strcmp(step, "exec") == 0) {
            if (strcmp(value, "-") == 0)
                unsetenv("THR_TRACE_RING");
            else
                setenv("THR_TRACE_RING", value, 1);
            next[-1] = argv[0];
            execv("/proc/self/exe", next - 1);
            return 2;
        } else {
            return 2;
        }
    }
    return 7;
}
