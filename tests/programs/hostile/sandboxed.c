// Goes into a sandbox, and forks children there that can open no file. Steps, taken in order:
//
//   pairs N             N pairs of lock and unlock
//   chroot              changes the root to an empty directory; `chroot-call` by syscall(); `helper` by a child that shares memory
//                       and root with this process, and has no thread pointer, as Chromium does
//   chroot-fails        changes the root to a directory that is not there, while it may open no more files
//   pivot               moves to another mount namespace, and there to an empty file system
//   readonly            moves to another mount namespace, and makes all there read-only
//   mounts              moves to another mount namespace, in which nothing is changed
//   user UID            becomes this user
//   unprivileged        moves to a user namespace without any users
//   landlock            forbids itself to make files
//   filter refuse|kill  forbids itself to open files, by errno or by death
//   children C N END    forks C children. Each makes N pairs in each of two threads, and ends: by `exit`, by `_exit`, or by a system `call`; or it is `kill`ed
//   renderers C N       the same in a PID namespace for each, under a filter, from which they are killed
//   spaces C N          the same without a filter
//   family C N          forks a child, which forks C children and makes N pairs, as they do
//   connections C       forks C children, one after the other, as a server does for its connections: each changes its root, makes 10 pairs,
//                       and ends
//   series C N          forks a child that makes C threads, one after the other, each of which makes N pairs, and is killed
//   orphan N            makes a daemon that prints its ID and makes N pairs when its parent has ended
//   killed C N          C threads of this process, which all live until each has made N pairs and it is killed
//   late FILE N         ends the process by quick_exit, when all steps are taken, with a handler that fills the disk of the file and makes N pairs
//   stay                says so, and waits for ever
//
// All children of a step live until all have made their pairs. Ends with 7; with 77 if something is not permitted here.

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../check.h"

#define PERMITTED(condition)                                       \
    do                                                             \
        if (!(condition)) {                                        \
            printf("line %d: %s\n", __LINE__, strerror(errno));    \
            fflush(stdout);                                        \
            _exit(77);                                             \
        }                                                          \
    while (0)

static void pairs(int count) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < count; i++)
        if (pthread_mutex_lock(&mutex) || pthread_mutex_unlock(&mutex))
            abort();
}

static void chroot_fails(void) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const struct rlimit none = {.rlim_cur = 3, .rlim_max = limit.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK(chroot("/nonexistent") == -1);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void *thread(void *count) {
    pairs((int)(long)count);
    return NULL;
}

static void work(int count) {
    pthread_t other;
    CHECK(pthread_create(&other, NULL, thread, (void *)(long)count) == 0);
    pairs(count);
    CHECK(pthread_join(other, NULL) == 0);
}

static void filter(unsigned action) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof program / sizeof *program, program};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0);
}

// Children make their pairs, write to this pipe, and wait until the other one has no writer.
static int done[2], held[2];

static void child(int count, const char *ending) {
    char byte = 0;
    close(held[1]);
    work(count);
    CHECK(write(done[1], &byte, 1) == 1);
    CHECK(read(held[0], &byte, 1) == 0);
    if (strcmp(ending, "exit") == 0)
        exit(7);
    if (strcmp(ending, "_exit") == 0)
        _exit(7);
    // The first process of a PID namespace can end itself by no signal.
    syscall(SYS_exit_group, 7);
}

static void reap(int children) {
    char byte;
    close(held[0]);
    close(done[1]);
    for (int i = 0; i < children; i++)
        CHECK(read(done[0], &byte, 1) == 1);
    close(held[1]);
    close(done[0]);
    for (int i = 0; i < children; i++) {
        int status;
        CHECK(waitpid(-1, &status, 0) > 0);
        CHECK(WIFEXITED(status) ? WEXITSTATUS(status) == 7 : WTERMSIG(status) == SIGKILL);
    }
}

static void children(int number, int count, const char *ending) {
    CHECK(pipe(done) == 0 && pipe(held) == 0);
    for (int i = 0; i < number; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            child(count, ending);
    }
    reap(number);
}

static void renderers(int number, int count, int are_filtered) {
    CHECK(pipe(done) == 0 && pipe(held) == 0);
    for (int i = 0; i < number; i++) {
        long pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
        PERMITTED(pid >= 0);
        if (pid == 0) {
            pairs(1);
            if (are_filtered)
                filter(SECCOMP_RET_KILL_PROCESS);
            child(count, "call");
        }
    }
    reap(number);
}

static void *thread_until_death(void *count) {
    pairs((int)(long)count);
    char byte = 0;
    CHECK(write(done[1], &byte, 1) == 1);
    for (;;)
        pause();
}

static void killed(int number, int count) {
    CHECK(pipe(done) == 0);
    for (int i = 0; i < number; i++) {
        pthread_t other;
        CHECK(pthread_create(&other, NULL, thread_until_death, (void *)(long)count) == 0);
    }
    char byte;
    for (int i = 0; i < number; i++)
        CHECK(read(done[0], &byte, 1) == 1);
    kill(getpid(), SIGKILL);
}

static void series(int number, int count) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        for (int i = 0; i < number; i++) {
            pthread_t other;
            CHECK(pthread_create(&other, NULL, thread, (void *)(long)count) == 0 && pthread_join(other, NULL) == 0);
        }
        kill(getpid(), SIGKILL);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

static void orphan(int count) {
    int ended[2];
    CHECK(pipe(ended) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        // libc forks by itself: no hook sees the daemon begin.
        pid_t parent = getpid();
        CHECK(daemon(1, 1) == 0);
        while (getppid() == parent)
            usleep(1000);
        pairs(count);
        printf("%d\n", getpid());
        exit(7);
    }
    char byte;
    close(ended[1]);
    CHECK(waitpid(pid, NULL, 0) == pid && read(ended[0], &byte, 1) == 0);
}

static int filler = -1, late_pairs;

static void record_late(void) {
    static char zeros[1 << 16];
    if (filler < 0)
        return;
    for (size_t size = sizeof zeros; size > 0;)
        if (write(filler, zeros, size) <= 0)
            size /= 2;
    pairs(late_pairs);
}

static void add_record_late(void) { CHECK(at_quick_exit(record_late) == 0); }

// Before the constructors of libraries, so that it runs after their handlers.
__attribute__((section(".preinit_array"), used)) static void (*const add_first)(void) = add_record_late;

static void late(const char *file, int number) {
    filler = open(file, O_CREAT | O_WRONLY, 0600);
    late_pairs = number;
    CHECK(filler >= 0);
}

static void family(int number, int count) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        pairs(count);
        children(number, count, "_exit");
        _exit(7);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void change_root(const char *how) {
    CHECK(mkdir("empty", 0700) == 0 || errno == EEXIST);
    if (strcmp(how, "chroot-call") == 0)
        PERMITTED(syscall(SYS_chroot, "empty") == 0);
    else
        PERMITTED(chroot("empty") == 0);
    CHECK(chdir("/") == 0);
}

static void connections(int number) {
    for (int i = 0; i < number; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            change_root("chroot");
            pairs(10);
            exit(7);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        PERMITTED(WEXITSTATUS(status) == 7);
    }
}

// chroot by a child without a thread pointer of its own: whoever uses thread-local storage there finds zeros.
static int root_of_helper(void *unused) {
    (void)unused;
    long failed = chroot("empty") != 0;
    syscall(SYS_exit, failed);
    return 0;
}

static void helper(void) {
    static char stack[65536], thread_area[16384] __attribute__((aligned(64)));
    CHECK(mkdir("empty", 0700) == 0 || errno == EEXIST);
    void **area = (void **)(thread_area + sizeof thread_area / 2);
    int status;
    pid_t pid = clone(root_of_helper, stack + sizeof stack, CLONE_FS | CLONE_VM | CLONE_VFORK | CLONE_SETTLS | SIGCHLD,
                      NULL, NULL, area, NULL);
    PERMITTED(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(chdir("/") == 0);
}

static void pivot(void) {
    PERMITTED(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK(mkdir("empty", 0700) == 0 || errno == EEXIST);
    PERMITTED(mount("none", "empty", "tmpfs", 0, NULL) == 0 && mkdir("empty/old", 0700) == 0);
    PERMITTED(chdir("empty") == 0 && syscall(SYS_pivot_root, ".", "old") == 0);
    PERMITTED(chdir("/") == 0 && umount2("/old", MNT_DETACH) == 0);
}

static void readonly(void) {
    struct { unsigned long long set, clear, propagation, namespace; } attributes = {1 /* MOUNT_ATTR_RDONLY */, 0, 0, 0};
    PERMITTED(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    // mount_setattr, Linux 5.12.
    PERMITTED(syscall(442, AT_FDCWD, "/", 0x8000 /* AT_RECURSIVE */, &attributes, sizeof attributes) == 0);
}

static void landlock(void) {
    unsigned long long handled = 1 << 8 /* LANDLOCK_ACCESS_FS_MAKE_REG */;
    int rules = (int)syscall(444, &handled, sizeof handled, 0);
    PERMITTED(rules >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    PERMITTED(syscall(446, rules, 0) == 0);
    close(rules);
}

int main(int count, char **steps) {
    (void)count;
    for (char **step = steps + 1; *step; step++) {
        const char *name = *step;
        if (strcmp(name, "pairs") == 0)
            pairs(atoi(*++step));
        else if (strcmp(name, "chroot") == 0 || strcmp(name, "chroot-call") == 0)
            change_root(*step);
        else if (strcmp(name, "chroot-fails") == 0)
            chroot_fails();
        else if (strcmp(name, "helper") == 0)
            helper();
        else if (strcmp(name, "pivot") == 0)
            pivot();
        else if (strcmp(name, "readonly") == 0)
            readonly();
        else if (strcmp(name, "mounts") == 0)
            PERMITTED(unshare(CLONE_NEWNS) == 0);
        else if (strcmp(name, "user") == 0)
            PERMITTED(setuid((uid_t)atoi(*++step)) == 0);
        else if (strcmp(name, "unprivileged") == 0)
            PERMITTED(unshare(CLONE_NEWUSER) == 0);
        else if (strcmp(name, "landlock") == 0)
            landlock();
        else if (strcmp(name, "filter") == 0) {
            filter(strcmp(*++step, "kill") == 0 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EACCES);
        } else if (strcmp(name, "children") == 0) {
            children(atoi(step[1]), atoi(step[2]), step[3]);
            step += 3;
        } else if (strcmp(name, "renderers") == 0 || strcmp(name, "spaces") == 0) {
            renderers(atoi(step[1]), atoi(step[2]), *name == 'r');
            step += 2;
        } else if (strcmp(name, "family") == 0) {
            family(atoi(step[1]), atoi(step[2]));
            step += 2;
        } else if (strcmp(name, "connections") == 0) {
            connections(atoi(*++step));
        } else if (strcmp(name, "series") == 0) {
            series(atoi(step[1]), atoi(step[2]));
            step += 2;
        } else if (strcmp(name, "orphan") == 0) {
            orphan(atoi(*++step));
        } else if (strcmp(name, "killed") == 0) {
            killed(atoi(step[1]), atoi(step[2]));
        } else if (strcmp(name, "late") == 0) {
            late(step[1], atoi(step[2]));
            step += 2;
        } else if (strcmp(name, "stay") == 0) {
            printf("here\n");
            fflush(stdout);
            for (;;)
                pause();
        } else
            return 1;
    }
    if (filler >= 0)
        quick_exit(7);
    return 7;
}
