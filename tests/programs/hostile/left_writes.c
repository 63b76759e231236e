// Leaves writes by siglongjmp: `left_writes JUMPS LIMIT MODE`.
//
// A thread posts and locks at full speed, each record written at once or by the buffer. A timer's handler leaves whatever
// it interrupted by siglongjmp, JUMPS times. MODE: `own`, the handler runs on the thread's stack; `alternate`, on an
// alternate one. With LIMIT the process may have so many descriptors. Prints the number of open descriptors before and
// after, how many of the host's own opens failed, and how many posts returned and happened.

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "../lifecycle/calls.h"

static sigjmp_buf back;
static volatile sig_atomic_t armed;
static volatile long jumps;

static void leave(int signal) {
    (void)signal;
    if (armed) {
        armed = 0;
        jumps++;
        siglongjmp(back, 1);
    }
}

static int count(void) {
    DIR *directory = opendir("/proc/self/fd");
    int entries = 0;
    if (!directory)
        return -1;
    while (readdir(directory))
        entries++;
    closedir(directory);
    return entries - 3;
}

int main(int argc, char **argv) {
    static char alternate[64 * 1024];
    static sem_t semaphore;
    static volatile long finished, failed;
    if (argc != 4)
        return 2;
    long wanted = atol(argv[1]);
    struct rlimit limit = {(rlim_t)atol(argv[2]), (rlim_t)atol(argv[2])};
    if (limit.rlim_cur && setrlimit(RLIMIT_NOFILE, &limit))
        return 2;
    struct sigaction action = {.sa_handler = leave};
    if (strcmp(argv[3], "alternate") == 0) {
        stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
        action.sa_flags = SA_ONSTACK;
        if (sigaltstack(&stack, NULL))
            return 2;
    }
    sem_init(&semaphore, 0, 0);
    sem_post(&semaphore);
    finished = 1;
    int before = count();
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 400}, {0, 400}}, none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
    sigsetjmp(back, 1);
    while (jumps < wanted) {
        armed = 1;
        for (int i = 0; i < 5000 && jumps < wanted; i++) {
            sem_post(&semaphore);
            finished++;
        }
        armed = 0;
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            failed++;
        else
            close(fd);
    }
    setitimer(ITIMER_REAL, &none, NULL);
    armed = 0;
    // As many as fill the buffer once more.
    for (int i = 0; i < 5000; i++) {
        sem_post(&semaphore);
        finished++;
    }
    int posted;
    sem_getvalue(&semaphore, &posted);
    printf("%d %d %ld %ld %d\n", before, count(), failed, finished, posted);
    return 0;
}
