/* What a thread asks and sets of itself and of others. */
#include "worker.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

/* An old name, to which programs are no longer linked but still refer. */
int old_pthread_yield(void);
__asm__(".symver old_pthread_yield, pthread_yield@GLIBC_2.2.5");

/* The last `size` bytes before memory that cannot be read. */
static void *at_the_edge(const void *bytes, size_t size) {
    long page = sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory != MAP_FAILED && mprotect(memory + page, page, PROT_NONE) == 0);
    return memcpy(memory + page - size, bytes, size);
}

static pthread_t me;

static void identity(void) {
    me = pthread_self();
    expect("pthread_self", "thr_self", 0, "");
    check(me == own_tid());
}

static void yields(void) {
    expect("sched_yield", "thr_yield", 0, "");
    check(sched_yield() == 0);
    expect("pthread_yield", "thr_yield", 0, "");
    check(old_pthread_yield() == 0);
    struct timespec interval;
    check(sched_rr_get_interval(0, &interval) == 0);
    expect("sched_rr_get_interval", "thr_get_rr_interval", 0, "");
    check(sched_rr_get_interval(-1, &interval) == -1 && errno == EINVAL);
    expect("sched_rr_get_interval", "thr_get_rr_interval", 0, "");
}

static void concurrency(void) {
    int levels[] = {5, -1, 0};
    for (int index = 0; index < 3; index++) {
        int rval = pthread_setconcurrency(levels[index]);
        expect("pthread_setconcurrency", "thr_setconcurrency", 0, "dd", levels[index], rval);
        check(rval == (levels[index] < 0 ? EINVAL : 0));
        rval = pthread_getconcurrency();
        expect("pthread_getconcurrency", "thr_getconcurrency", 0, "d", rval);
        check(rval == (index < 2 ? 5 : 0));
    }
}

static volatile sig_atomic_t delivered;
static void *volatile delivered_value;

static void on_signal(int signal, siginfo_t *info, void *context) {
    (void)context;
    delivered = signal;
    delivered_value = info->si_value.sival_ptr;
}

static void signals(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    check(sigaction(SIGUSR1, &action, NULL) == 0);
    int numbers[] = {0, SIGUSR1, 1000};
    for (int index = 0; index < 3; index++) {
        int rval = pthread_kill(me, numbers[index]);
        expect("pthread_kill", "thr_kill", 0, "tdd", me, numbers[index], rval);
        check(rval == (index < 2 ? 0 : EINVAL));
    }
    check(delivered == SIGUSR1);

    union sigval value = {.sival_ptr = (void *)0x123456789abc};
    delivered = 0;
    for (int index = 1; index < 3; index++) {
        int rval = pthread_sigqueue(me, numbers[index], value);
        expect("pthread_sigqueue", "thr_sigqueue", 0, "tdxd", me, numbers[index], value.sival_ptr, rval);
        check(rval == (index < 2 ? 0 : EINVAL));
    }
    check(delivered == SIGUSR1 && delivered_value == value.sival_ptr);

    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    struct { int how; sigset_t *set, *old; int wanted; } masks[] = {
        {SIG_BLOCK, &set, &old, 0},
        {SIG_SETMASK, NULL, &old, 0},
        {SIG_UNBLOCK, &set, NULL, 0},
        {77, &set, &old, EINVAL},
    };
    for (int index = 0; index < 4; index++) {
        int rval = pthread_sigmask(masks[index].how, masks[index].set, masks[index].old);
        expect("pthread_sigmask", "thr_sigsetmask", 0, "dxxd", masks[index].how, masks[index].set, masks[index].old, rval);
        check(rval == masks[index].wanted);
    }
}

static void scheduling(void) {
    struct { int policy, priority, wanted; } settings[] = {{SCHED_OTHER, 0, 0}, {SCHED_FIFO, 0, EINVAL}, {99, 1, EINVAL}};
    for (int index = 0; index < 3; index++) {
        struct sched_param param = {.sched_priority = settings[index].priority};
        int policy = settings[index].policy;
        int rval = pthread_setschedparam(me, policy, &param);
        expect("pthread_setschedparam", "thr_setscheduler", 0, "tddd", me, policy, param.sched_priority, rval);
        check(rval == settings[index].wanted);
    }
    int policy = -1;
    struct sched_param param = {.sched_priority = -1};
    int rval = pthread_getschedparam(me, &policy, &param);
    expect("pthread_getschedparam", "thr_getscheduler", 0, "tddd", me, policy, param.sched_priority, rval);
    check(rval == 0 && policy == SCHED_OTHER && param.sched_priority == 0);
    for (int priority = 0; priority < 2; priority++) {
        rval = pthread_setschedprio(me, priority);
        expect("pthread_setschedprio", "thr_setprio", 0, "tdd", me, priority, rval);
        check(rval == (priority ? EINVAL : 0));
    }
    /* With the privilege, a priority that is not 0. */
    param.sched_priority = 2;
    rval = pthread_setschedparam(me, SCHED_RR, &param);
    expect("pthread_setschedparam", "thr_setscheduler", 0, "tddd", me, SCHED_RR, 2, rval);
    if (rval != 0) return;
    rval = pthread_setschedprio(me, 3);
    expect("pthread_setschedprio", "thr_setprio", 0, "tdd", me, 3, rval);
    rval = pthread_getschedparam(me, &policy, &param);
    expect("pthread_getschedparam", "thr_getscheduler", 0, "tddd", me, SCHED_RR, 3, rval);
    check(policy == SCHED_RR && param.sched_priority == 3);
    param.sched_priority = 0;
    rval = pthread_setschedparam(me, SCHED_OTHER, &param);
    expect("pthread_setschedparam", "thr_setscheduler", 0, "tddd", me, SCHED_OTHER, 0, rval);
}

static void cancellation(void) {
    int old = -1, *volatile none = NULL;
    struct { int given, *old, was, wanted; } states[] = {
        {PTHREAD_CANCEL_DISABLE, &old, PTHREAD_CANCEL_ENABLE, 0},
        {PTHREAD_CANCEL_ENABLE, &old, PTHREAD_CANCEL_DISABLE, 0},
        {PTHREAD_CANCEL_ENABLE, none, 0, 0},
        {99, &old, 0, EINVAL},
    };
    for (int index = 0; index < 4; index++) {
        int rval = pthread_setcancelstate(states[index].given, states[index].old);
        expect(
            "pthread_setcancelstate", "thr_setcancelstate", 0, "ddd", states[index].given, states[index].was, rval
        );
        check(rval == states[index].wanted);
    }
    /* The same numbers: deferred is 0 as enabled is, asynchronous is 1 as disabled is. */
    for (int index = 0; index < 4; index++) {
        int rval = pthread_setcanceltype(states[index].given, states[index].old);
        expect("pthread_setcanceltype", "thr_setcanceltype", 0, "ddd", states[index].given, states[index].was, rval);
        check(rval == states[index].wanted);
    }
    expect("pthread_testcancel", "thr_testcancel", 0, "");
    pthread_testcancel();
}

static void set_name(const char *name, unsigned long first, unsigned long second, int wanted) {
    int rval = pthread_setname_np(me, at_the_edge(name, strlen(name) + 1));
    expect("pthread_setname_np", "thr_setname", 0, "txxd", me, first, second, rval);
    check(rval == wanted);
}

static void names(void) {
    set_name("", 0, 0, 0);
    set_name("ab", 0x6162000000000000, 0, 0);
    set_name("12345678", 0x3132333435363738, 0, 0);
    set_name("123456789abcdef", 0x3132333435363738, 0x3961626364656600, 0);
    set_name("123456789abcdefg", 0x3132333435363738, 0x3961626364656667, ERANGE);
    set_name("\377\200", 0xff80000000000000, 0, 0);
}

static void set_affinity(const void *set, size_t size, unsigned long word, int wanted) {
    int rval = pthread_setaffinity_np(me, size, at_the_edge(set, size));
    expect("pthread_setaffinity_np", "thr_setaffinity", 0, "tzxd", me, size, word, rval);
    check(rval == wanted);
}

static void affinity(void) {
    cpu_set_t own, empty;
    CPU_ZERO(&empty);
    check(sched_getaffinity(0, sizeof own, &own) == 0);
    unsigned long word, byte;
    memcpy(&word, &own, sizeof word);
    set_affinity(&own, sizeof own, word, 0);
    set_affinity(&empty, sizeof empty, 0, EINVAL);
    /* A set of fewer bytes than a word; nothing behind it is read. */
    byte = word & 0xff;
    set_affinity(&own, 1, byte, byte ? 0 : EINVAL);
    set_affinity(&own, sizeof own, word, 0);
}

int main(void) {
    identity();
    yields();
    concurrency();
    signals();
    scheduling();
    cancellation();
    names();
    affinity();
    return done();
}
