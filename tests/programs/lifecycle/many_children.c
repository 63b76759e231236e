// Children that are forked one after the other, and end. `many_children MODE`; each child that records prints "child PID
// INODE", the inode number of its trbuf.
#include "../filter.h"
#include "calls.h"
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { CHILDREN = 10, AT_ONCE = 12 };

static void print_trbuf(void) {
    char path[4096];
    struct stat stat;
    const char *directory = getenv("THR_TRACE_DIR");
    snprintf(path, sizeof path, "%s/trbuf.%07x", directory ? directory : "", getpid());
    dprintf(1, "child %d %ld\n", getpid(), lstat(path, &stat) == 0 ? (long)stat.st_ino : 0);
}

static int wait_for(pid_t child) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

// How the child ends that records: by _exit, by exit, or by a signal.
enum end { BY_UNDERSCORE_EXIT, BY_EXIT, BY_KILL };

static pid_t start_child(int recorded, enum end end) {
    pid_t child = fork();
    if (child == 0) {
        pairs(recorded);
        print_trbuf();
        if (end == BY_KILL)
            kill(getpid(), SIGKILL);
        if (end == BY_EXIT)
            exit(0);
        _exit(0);
    }
    return child;
}

static volatile int recorded;

static void *record(void *stays) {
    pairs(5);
    recorded = 1;
    while (stays)
        pause();
    return NULL;
}

// From here on every other call than these is fatal.
static void allow_only(const int *calls, int count) {
    struct sock_filter filter[64] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < count; i++)
        filter[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], count - i, 0);
    filter[count + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    filter[count + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter_unseen(filter, count + 3);
}

// Children that record nothing, in a process that may make only the calls that fork, wait and _exit need, and `ours`.
static void without_files(const int *ours, int count) {
    int calls[32] = {SYS_clone, SYS_wait4, SYS_exit_group, SYS_set_robust_list, SYS_rt_sigprocmask, SYS_gettid, SYS_write};
    memcpy(calls + 7, ours, count * sizeof *ours);
    pid_t filtered = fork();
    if (filtered == 0) {
        // For the records of the parent's.
        pairs(2);
        allow_only(calls, 7 + count);
        for (int i = 0; i < CHILDREN; i++) {
            pid_t child = fork();
            if (child == 0)
                _exit(7);
            int status;
            if (syscall(SYS_wait4, child, &status, 0, NULL) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
                syscall(SYS_exit_group, 4);
        }
        syscall(SYS_exit_group, 0);
    }
    int status = wait_for(filtered);
    dprintf(1, "filtered %d %d %d\n", filtered, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    dprintf(1, "parent %d\n", getpid());
    pairs(1);
    if (!strcmp(mode, "serial")) {
        for (int i = 0; i < CHILDREN; i++)
            CHECK(wait_for(start_child(20 - i, i % 2 ? BY_EXIT : BY_UNDERSCORE_EXIT)) == 0);
    } else if (!strcmp(mode, "nested")) {
        for (int i = 0; i < CHILDREN; i++) {
            pid_t child = fork();
            if (child == 0) {
                CHECK(wait_for(start_child(3, BY_UNDERSCORE_EXIT)) == 0);
                print_trbuf();
                _exit(0);
            }
            CHECK(wait_for(child) == 0);
        }
    } else if (!strcmp(mode, "together")) {
        pid_t children[AT_ONCE];
        for (int round = 0; round < 5; round++) {
            for (int i = 0; i < AT_ONCE; i++)
                children[i] = start_child(100 + i, BY_EXIT);
            for (int i = 0; i < AT_ONCE; i++)
                CHECK(wait_for(children[i]) == 0);
        }
    } else if (!strcmp(mode, "killed")) {
        CHECK(wait_for(start_child(50, BY_UNDERSCORE_EXIT)) == 0);
        CHECK(wait_for(start_child(2, BY_KILL)) == SIGKILL);
        CHECK(wait_for(start_child(3, BY_UNDERSCORE_EXIT)) == 0);
    } else if (!strcmp(mode, "overwritten")) {
        CHECK(wait_for(start_child(2000, BY_UNDERSCORE_EXIT)) == 0);
        CHECK(wait_for(start_child(1000, BY_KILL)) == SIGKILL);
        CHECK(wait_for(start_child(3, BY_UNDERSCORE_EXIT)) == 0);
    } else if (!strcmp(mode, "orphaned")) {
        CHECK(wait_for(start_child(5, BY_UNDERSCORE_EXIT)) == 0);
        kill(getpid(), SIGKILL);
    } else if (!strcmp(mode, "threads")) {
        for (int i = 0; i < CHILDREN; i++) {
            pid_t child = fork();
            if (child == 0) {
                pthread_t thread;
                // Every second child ends while its thread still is there.
                void *stays = i % 2 ? &thread : NULL;
                CHECK(pthread_create(&thread, NULL, record, stays) == 0);
                if (stays)
                    while (!recorded)
                        usleep(100);
                else
                    pthread_join(thread, NULL);
                print_trbuf();
                _exit(0);
            }
            CHECK(wait_for(child) == 0);
        }
    } else if (!strcmp(mode, "mutex_only")) {
        // Ours: it forgets what is its parent's.
        static const int ours[] = {SYS_getppid, SYS_getpid, SYS_mmap, SYS_fcntl, SYS_membarrier, SYS_futex, SYS_prctl};
        without_files(ours, sizeof ours / sizeof *ours);
    } else if (!strcmp(mode, "nothing")) {
        without_files(NULL, 0);
    } else {
        return 2;
    }
    return 0;
}
