// What a child costs: `forks KIND THREADS TURNS` prints the nanoseconds of processor time that a child takes, its parent's
// included, as the mean of TURNS children of a process that has THREADS threads, and the peak memory. KIND is what the
// child does: `begins` it ends by a system call, `ends` by _exit, `records` by _exit after it has locked and unlocked a
// mutex.
#include "figures.h"
#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t begun;
static pthread_mutex_t kept = PTHREAD_MUTEX_INITIALIZER;

static void *live(void *argument) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
    pthread_barrier_wait(&begun);
    pthread_mutex_lock(&kept);
    pthread_mutex_unlock(&kept);
    return argument;
}

static void child(const char *kind) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    if (!strcmp(kind, "begins"))
        syscall(SYS_exit_group, 0);
    if (!strcmp(kind, "records")) {
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
    }
    _exit(0);
}

// Of this process and of its children that have ended, nanoseconds.
static long processor_time(void) {
    long sum = 0;
    struct rusage usage;
    for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++)
        if (!getrusage(who, &usage))
            sum += (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000L +
                   (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000L;
    return sum;
}

int main(int argc, char **argv) {
    long threads = argc == 4 ? atol(argv[2]) : 0, turns = argc == 4 ? atol(argv[3]) : 0;
    if (threads < 1 || turns < 1 || !strstr(" begins ends records ", argv[1])) {
        fprintf(stderr, "usage: forks begins|ends|records THREADS TURNS\n");
        return 2;
    }
    pthread_mutex_lock(&kept);
    pthread_attr_t attribute;
    pthread_attr_init(&attribute);
    pthread_attr_setstacksize(&attribute, 64 * 1024);
    pthread_barrier_init(&begun, NULL, threads);
    pthread_t *ids = calloc(threads, sizeof *ids);
    for (long i = 1; i < threads; i++)
        start(&ids[i], &attribute, live, NULL);
    pthread_barrier_wait(&begun);
    long before = processor_time();
    for (long turn = 0; turn < turns; turn++) {
        pid_t pid = fork();
        if (pid == 0)
            child(argv[1]);
        int status;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
            fprintf(stderr, "fork: %s\n", strerror(errno));
            return 1;
        }
    }
    long took = processor_time() - before;
    pthread_mutex_unlock(&kept);
    for (long i = 1; i < threads; i++)
        pthread_join(ids[i], NULL);
    print_figures((double)took / turns, peak_memory());
    return 0;
}
