// Comes to a deadlock, or to what looks like one, prints `ready` before that, and stays. Argument:
//
// once: the routine of pthread_once calls pthread_once for the same control.
// fork: the parent forks while it holds a mutex, and the child locks that.
// shared: the same with an rwlock that both processes share, so that the child waits for the parent.
// woken: main waits for a condition while it holds another mutex. A thread takes the condition's mutex, signals, and wants the other one.
// processes: parent and child each have one of two mutexes that both share, and want the other one.
// routines: the routines of two controls each call pthread_once for the other control, after thousands of other calls.
// limit: main waits for a condition until a limit, while it holds another mutex. A thread takes the condition's mutex and wants the other one.
// cancelled: a thread waits for a condition. Main takes the mutex of that, cancels the thread and joins it.
// jump: two threads each wait for the other's mutex, until a signal handler leaves the wait of main's by a jump. Then main posts a semaphore,
//     prints `left`, and does nothing else.

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../check.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t third = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static pthread_once_t control = PTHREAD_ONCE_INIT, other_control = PTHREAD_ONCE_INIT;
static sem_t posted;
// Guarded by `second`.
static int has_second;
static sigjmp_buf before;
static volatile sig_atomic_t is_about_to_lock;

static void say(const char *text) { CHECK(write(STDOUT_FILENO, text, strlen(text)) == (ssize_t)strlen(text)); }

static void routine(void) {
    say("ready\n");
    CHECK(!pthread_once(&control, routine));
}

static void make_calls(void) {
    for (int i = 0; i < 5000; i++)
        CHECK(!pthread_mutex_lock(&third) && !pthread_mutex_unlock(&third));
}

static void second_routine(void);

static void first_routine(void) {
    make_calls();
    CHECK(pthread_barrier_wait(&both) <= 0);
    CHECK(!pthread_once(&other_control, second_routine));
}

static void second_routine(void) {
    make_calls();
    CHECK(pthread_barrier_wait(&both) <= 0);
    CHECK(!pthread_once(&control, first_routine));
}

static void *run_second(void *unused) {
    CHECK(!pthread_once(&other_control, second_routine));
    return unused;
}

static void *signal_and_lock(void *unused) {
    CHECK(!pthread_mutex_lock(&second));
    CHECK(!pthread_cond_signal(&cond));
    say("ready\n");
    CHECK(!pthread_mutex_lock(&first));
    return unused;
}

static void *lock_in_order(void *unused) {
    CHECK(!pthread_mutex_lock(&second));
    has_second = 1;
    say("ready\n");
    CHECK(!pthread_mutex_lock(&first));
    return unused;
}

static void *wait_for_cond(void *unused) {
    CHECK(!pthread_mutex_lock(&second) && !sem_post(&posted));
    for (;;)
        CHECK(!pthread_cond_wait(&cond, &second));
    return unused;
}

static void *lock_both(void *unused) {
    CHECK(!pthread_mutex_lock(&second));
    CHECK(!sem_post(&posted));
    CHECK(!pthread_mutex_lock(&first));
    return unused;
}

static void leave(int number) { siglongjmp(before, number); }

// Interrupts main when that sleeps in the lock call which it is about to make.
static void *interrupt_main(void *main_thread) {
    char name[64], text[512], state = 0;
    snprintf(name, sizeof name, "/proc/self/task/%d/stat", (int)getpid());
    while (state != 'S') {
        int is_ready = is_about_to_lock, file = open(name, O_RDONLY | O_CLOEXEC);
        ssize_t size = read(file, text, sizeof text - 1);
        CHECK(file >= 0 && size > 0 && !close(file));
        text[size] = 0;
        const char *end = strrchr(text, ')');
        CHECK(end && end[1] == ' ');
        state = is_ready ? end[2] : 0;
    }
    CHECK(!pthread_kill(*(pthread_t *)main_thread, SIGALRM));
    return NULL;
}

static void stay(void) {
    for (;;)
        pause();
}

int main(int count, char **arguments) {
    CHECK(count == 2 && !sem_init(&posted, 0, 0));
    const char *mode = arguments[1];
    pthread_t thread;
    if (!strcmp(mode, "once")) {
        CHECK(!pthread_once(&control, routine));
    } else if (!strcmp(mode, "fork")) {
        CHECK(!pthread_mutex_lock(&first));
        pid_t parent = getpid(), child = fork();
        CHECK(child >= 0);
        if (!child) {
            // The child does not outlive its parent.
            CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL) && getppid() == parent);
            say("ready\n");
            CHECK(!pthread_mutex_lock(&first));
        }
        CHECK(waitpid(child, NULL, 0) == child);
    } else if (!strcmp(mode, "shared")) {
        pthread_rwlockattr_t attributes;
        CHECK(!pthread_rwlockattr_init(&attributes));
        CHECK(!pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
        pthread_rwlock_t *lock = mmap(NULL, sizeof *lock, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(lock != MAP_FAILED && !pthread_rwlock_init(lock, &attributes) && !pthread_rwlock_wrlock(lock));
        pid_t parent = getpid(), child = fork();
        CHECK(child >= 0);
        if (!child) {
            CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL) && getppid() == parent);
            say("ready\n");
            CHECK(!pthread_rwlock_wrlock(lock));
        }
    } else if (!strcmp(mode, "woken")) {
        CHECK(!pthread_mutex_lock(&first) && !pthread_mutex_lock(&second));
        CHECK(!pthread_create(&thread, NULL, signal_and_lock, NULL));
        CHECK(!pthread_cond_wait(&cond, &second));
    } else if (!strcmp(mode, "processes")) {
        pthread_mutexattr_t attributes;
        CHECK(!pthread_mutexattr_init(&attributes));
        CHECK(!pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
        pthread_mutex_t *locks = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        sem_t *child_has_one = (sem_t *)(locks + 2), *parent_has_one = child_has_one + 1;
        CHECK(locks != MAP_FAILED && !pthread_mutex_init(&locks[0], &attributes));
        CHECK(!pthread_mutex_init(&locks[1], &attributes));
        CHECK(!sem_init(child_has_one, 1, 0) && !sem_init(parent_has_one, 1, 0));
        pid_t parent = getpid(), child = fork();
        CHECK(child >= 0);
        if (!child) {
            CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL) && getppid() == parent);
            CHECK(!pthread_mutex_lock(&locks[1]) && !sem_post(child_has_one));
            while (sem_wait(parent_has_one))
                CHECK(errno == EINTR);
            CHECK(!pthread_mutex_lock(&locks[0]));
        }
        CHECK(!pthread_mutex_lock(&locks[0]) && !sem_post(parent_has_one));
        while (sem_wait(child_has_one))
            CHECK(errno == EINTR);
        say("ready\n");
        CHECK(!pthread_mutex_lock(&locks[1]));
    } else if (!strcmp(mode, "routines")) {
        CHECK(!pthread_barrier_init(&both, NULL, 2) && !pthread_create(&thread, NULL, run_second, NULL));
        say("ready\n");
        CHECK(!pthread_once(&control, first_routine));
    } else if (!strcmp(mode, "limit")) {
        CHECK(!pthread_mutex_lock(&first) && !pthread_mutex_lock(&second));
        CHECK(!pthread_create(&thread, NULL, lock_in_order, NULL));
        while (!has_second) {
            struct timespec limit;
            CHECK(!clock_gettime(CLOCK_REALTIME, &limit));
            limit.tv_sec++;
            pthread_cond_timedwait(&cond, &second, &limit);
        }
    } else if (!strcmp(mode, "cancelled")) {
        CHECK(!pthread_create(&thread, NULL, wait_for_cond, NULL));
        while (sem_wait(&posted))
            CHECK(errno == EINTR);
        CHECK(!pthread_mutex_lock(&second) && !pthread_cancel(thread));
        say("ready\n");
        CHECK(!pthread_join(thread, NULL));
    } else {
        CHECK(!strcmp(mode, "jump"));
        CHECK(!pthread_mutex_lock(&first));
        CHECK(!pthread_create(&thread, NULL, lock_both, NULL));
        while (sem_wait(&posted))
            CHECK(errno == EINTR);
        CHECK(signal(SIGALRM, leave) != SIG_ERR);
        pthread_t self = pthread_self(), interrupter;
        CHECK(!pthread_create(&interrupter, NULL, interrupt_main, &self));
        if (!sigsetjmp(before, 1)) {
            is_about_to_lock = 1;
            CHECK(!pthread_mutex_lock(&second));
        }
        CHECK(!sem_post(&posted));
        say("left\n");
    }
    stay();
}
