// Takes the steps that its arguments name, in order: calls that a test can count, and states that are hard for a recorder.
//
//   pairs N          N pairs of lock and unlock
//   thread N         the same in a thread that is joined
//   threads T N      the same in T threads at once, each with a mutex of its own
//   nothread N       fails unless N threads with stacks of libc's cannot be made
//   nofile N, fsize N, as N    lowers a limit; `as` to what the process has now and N bytes more
//   map N            maps N bytes and unmaps them
//   lock all         locks all memory, also what is mapped later, if that is allowed
//   locked KIB       fails if more is locked
//   chdir DIR, chroot DIR, setuid UID, seteuid UID
//   run COMMAND      by the shell, without the library
//   deny             a seccomp filter: every further open fails with EPERM
//   keep LEAST MOST  a seccomp filter that kills for closing one of these descriptors
//   descriptors WHEN counts those that are open: `before`; fails unless as many are open now: `after`
//   allow CALLS      a seccomp filter that kills for every system call but those that the steps `pairs`, `thread` and `threads`
//                    and the end of the program make by themselves (`host`), and what the recorder makes with rings: `rings`
//                    for threads that are there already, `threads` also for new ones
//   trap CALLS       the same with a SIGSYS, which has a handler that ends the program with 4, and by the system call seccomp
//   allowthread CALLS N        a thread that puts itself alone under that filter, then makes N pairs, and is joined
//   refusedsync N    a thread with a filter of its own, which makes the kernel refuse one for all threads that kills for every
//                    open, makes N pairs
//   stderr FILE      closes descriptor 2 and opens FILE, which gets its number
//   print TEXT       writes TEXT to descriptor 2
//   clone N          a child made by syscall(SYS_clone, SIGCHLD) makes N pairs and ends by _exit
//   vfork N, vforkexec N       a vforked child makes N pairs and as many posts, then ends, or becomes `steps pairs N`
//   vforkkill N      a vforked child makes N pairs under a seccomp filter that kills for every open
//   leave N          main leaves by pthread_exit; a thread, the last one, makes N pairs then, and the program ends with 0
//   exec             becomes `steps` with the arguments that are left
//   kill             kills itself
//
// Threads run on memory that is there from the start. Prints its process ID first and "done" at last; ends with 7.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "../lifecycle/calls.h"
#include "open_descriptors.h"

enum { THREADS = 8, STACK = 1 << 20 };

static char stacks[THREADS][STACK] __attribute__((aligned(4096)));
static sem_t posted;

static void *work(void *count) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    for (long i = 0; i < (long)count; i++)
        if (pthread_mutex_lock(&own) || pthread_mutex_unlock(&own))
            abort();
    return NULL;
}

static void run_threads(int threads, long count) {
    pthread_t ids[THREADS];
    for (int i = 0; i < threads; i++) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        CHECK(pthread_attr_setstack(&attributes, stacks[i], STACK) == 0);
        CHECK(pthread_create(&ids[i], &attributes, work, (void *)count) == 0);
    }
    for (int i = 0; i < threads; i++)
        CHECK(pthread_join(ids[i], NULL) == 0);
}

static void fail_to_make_threads(long count) {
    pthread_t id;
    for (long i = 0; i < count; i++)
        CHECK(pthread_create(&id, NULL, work, NULL) == EAGAIN);
}

static void limit(int what, unsigned long value) {
    struct rlimit limits = {value, value};
    CHECK(setrlimit(what, &limits) == 0);
}

static void limit_memory(long more) {
    long pages;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    limit(RLIMIT_AS, pages * 4096 + more);
}

static long locked_memory(void) {
    char line[256];
    long locked = 0;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file);
    while (fgets(line, sizeof line, file))
        sscanf(line, "VmLck: %ld", &locked);
    fclose(file);
    return locked;
}

static void deny_open(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
    CHECK(open("/dev/null", O_RDONLY) == -1 && errno == EPERM);
}

static void keep_open(int least, int most) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, least, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, most, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

static void end_at_signal(int signal) {
    (void)signal;
    _exit(4);
}

static void allow_only(const char *more, int trap) {
    int calls[] = {SYS_clone3, SYS_clone,        SYS_rt_sigprocmask, SYS_set_robust_list, SYS_rseq,         SYS_futex,
                   SYS_exit,   SYS_exit_group,   SYS_write,          SYS_rt_sigreturn,    SYS_restart_syscall,
                   // For rings.
                   SYS_prctl,  SYS_getpid,
                   // For new threads.
                   SYS_gettid, SYS_openat,       SYS_prlimit64,      SYS_fallocate,       SYS_mmap,
                   SYS_close,  SYS_tgkill,       SYS_madvise,        SYS_fstat};
    enum { CALLS = sizeof calls / sizeof *calls, FOR_THREADS = 9, FOR_RINGS = 2 };
    int count = CALLS;
    if (strcmp(more, "threads") != 0)
        count -= FOR_THREADS;
    if (strcmp(more, "host") == 0)
        count -= FOR_RINGS;
    struct sock_filter filter[CALLS + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < count; i++)
        filter[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], count - i, 0);
    int action = trap ? SECCOMP_RET_TRAP : SECCOMP_RET_KILL_PROCESS;
    filter[count + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    filter[count + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {count + 3, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (trap) {
        signal(SIGSYS, end_at_signal);
        // As a sandbox asks whether the kernel knows a flag.
        CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL) == -1 && errno == EFAULT);
        CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
    } else
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
}

static long kill_for_open(int flags) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static void *allow_in_thread(void *arguments) {
    char **words = arguments;
    allow_only(words[0], 0);
    pairs(atoi(words[1]));
    return NULL;
}

static sem_t filtered, refused;

static void *filter_and_wait(void *count) {
    struct sock_filter filter[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0);
    sem_post(&filtered);
    sem_wait(&refused);
    return work(count);
}

static void refused_for_all(long count) {
    pthread_t id;
    sem_init(&filtered, 0, 0);
    sem_init(&refused, 0, 0);
    CHECK(pthread_create(&id, NULL, filter_and_wait, (void *)count) == 0);
    sem_wait(&filtered);
    // The kernel returns the other thread's ID.
    CHECK(kill_for_open(SECCOMP_FILTER_FLAG_TSYNC) > 0);
    sem_post(&refused);
    CHECK(pthread_join(id, NULL) == 0);
}

static void wait_for(pid_t child, int status) {
    int ended;
    CHECK(child > 0);
    CHECK(waitpid(child, &ended, 0) == child);
    CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == status);
}

static void vfork_and(int count, const char *number, int exec) {
    char *arguments[] = {"steps", "pairs", (char *)number, NULL};
    pid_t child = vfork();
    if (child == 0) {
        pairs(count);
        for (int i = 0; i < count; i++)
            sem_post(&posted);
        if (exec)
            execv("/proc/self/exe", arguments);
        _exit(7);
    }
    wait_for(child, 7);
}

static void vfork_and_be_filtered(int count) {
    pid_t child = vfork();
    if (child == 0) {
        CHECK(kill_for_open(0) == 0);
        pairs(count);
        _exit(7);
    }
    wait_for(child, 7);
}

static pthread_t main_thread;

static void *be_last(void *count) {
    CHECK(pthread_join(main_thread, NULL) == 0);
    pairs(atoi(count));
    return NULL;
}

static void leave_main(char *count) {
    pthread_t id;
    main_thread = pthread_self();
    CHECK(pthread_create(&id, NULL, be_last, count) == 0);
    pthread_exit(NULL);
}

int main(int argc, char **argv) {
    // For the shell and for `vforkexec` the library is in the environment, for `run` it is not.
    char preload[8192] = "";
    if (getenv("LD_PRELOAD"))
        snprintf(preload, sizeof preload, "%s", getenv("LD_PRELOAD"));
    printf("pid %d\n", getpid());
    fflush(stdout);
    sem_init(&posted, 0, 0);
    for (char **next = argv + 1; next < argv + argc;) {
        const char *step = *next++;
        if (strcmp(step, "deny") == 0) {
            deny_open();
            continue;
        }
        if (strcmp(step, "kill") == 0)
            raise(SIGKILL);
        if (strcmp(step, "exec") == 0) {
            next[-1] = argv[0];
            execv("/proc/self/exe", next - 1);
            CHECK(0);
        }
        CHECK(next < argv + argc);
        char *value = *next++;
        long number = atol(value);
        if (strcmp(step, "pairs") == 0)
            pairs((int)number);
        else if (strcmp(step, "leave") == 0)
            leave_main(value);
        else if (strcmp(step, "thread") == 0)
            run_threads(1, number);
        else if (strcmp(step, "threads") == 0)
            run_threads((int)number, atol(*next++));
        else if (strcmp(step, "nothread") == 0)
            fail_to_make_threads(number);
        else if (strcmp(step, "nofile") == 0)
            limit(RLIMIT_NOFILE, number);
        else if (strcmp(step, "fsize") == 0)
            limit(RLIMIT_FSIZE, number);
        else if (strcmp(step, "as") == 0)
            limit_memory(number);
        else if (strcmp(step, "map") == 0) {
            void *memory = mmap(NULL, number, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            CHECK(memory != MAP_FAILED && munmap(memory, number) == 0);
        } else if (strcmp(step, "lock") == 0) {
            if (mlockall(MCL_CURRENT | MCL_FUTURE))
                CHECK(errno == EPERM || errno == ENOMEM);
        } else if (strcmp(step, "locked") == 0) {
            CHECK(locked_memory() <= number);
        } else if (strcmp(step, "chdir") == 0)
            CHECK(chdir(value) == 0);
        else if (strcmp(step, "chroot") == 0)
            CHECK(chroot(value) == 0);
        else if (strcmp(step, "allow") == 0)
            allow_only(value, 0);
        else if (strcmp(step, "trap") == 0)
            allow_only(value, 1);
        else if (strcmp(step, "allowthread") == 0) {
            pthread_t id;
            CHECK(pthread_create(&id, NULL, allow_in_thread, next - 1) == 0 && pthread_join(id, NULL) == 0);
            next++;
        }
        else if (strcmp(step, "keep") == 0)
            keep_open((int)number, atoi(*next++));
        else if (strcmp(step, "descriptors") == 0) {
            static int before;
            if (strcmp(value, "before") == 0)
                before = open_descriptors();
            CHECK(open_descriptors() == before);
        }
        else if (strcmp(step, "refusedsync") == 0)
            refused_for_all(number);
        else if (strcmp(step, "setuid") == 0)
            CHECK(setgid(number) == 0 && setuid(number) == 0);
        else if (strcmp(step, "seteuid") == 0)
            CHECK(seteuid(number) == 0);
        else if (strcmp(step, "run") == 0) {
            unsetenv("LD_PRELOAD");
            CHECK(system(value) == 0);
            if (*preload)
                setenv("LD_PRELOAD", preload, 1);
        } else if (strcmp(step, "stderr") == 0) {
            close(2);
            CHECK(open(value, O_WRONLY | O_CREAT | O_TRUNC, 0600) == 2);
        } else if (strcmp(step, "print") == 0)
            CHECK(write(2, value, strlen(value)) == (ssize_t)strlen(value));
        else if (strcmp(step, "clone") == 0) {
            pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
            if (child == 0) {
                pairs((int)number);
                _exit(0);
            }
            wait_for(child, 0);
        } else if (strcmp(step, "vfork") == 0)
            vfork_and((int)number, value, 0);
        else if (strcmp(step, "vforkexec") == 0)
            vfork_and((int)number, value, 1);
        else if (strcmp(step, "vforkkill") == 0)
            vfork_and_be_filtered((int)number);
        else {
            printf("no step %s\n", step);
            return 2;
        }
    }
    puts("done");
    return 7;
}
