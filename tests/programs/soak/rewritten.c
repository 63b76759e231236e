// Records with several threads while another process rewrites the buffers that it has mapped, as a forked child in a
// sandbox could. Arguments: the seed, how many bytes a slot has, and the path of a file that must not change.
//
// Whatever the other process writes, this one must end by itself, with its own memory as it was.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"

enum { THREADS = 4, GENERATIONS = 12, PAGE = 4096, SLOTS_OFFSET = PAGE + 4096 * 64 };
enum { CANARY_SIZE = 1 << 20, CANARIES = 16 };

static int calls = 3000;
static uint64_t state;
static sem_t posted;
static unsigned char *canaries[CANARIES];

static uint64_t below(uint64_t limit) {
    state += 0x9e3779b97f4a7c15;
    uint64_t word = state;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return (word ^ word >> 31) % limit;
}

// Numbers that words of the buffers may have, or almost.
static uint64_t number(void) {
    uint64_t sizes[] = {0, 1, 4096, 8192, 144 * 1024, 64 * 1024, 1 << 20, 0x7fffffff, 0xffffffff, 192, 200};
    uint64_t low = sizes[below(11)] + below(3) - 1, high = sizes[below(11)] + below(3) - 1;
    switch (below(5)) {
    case 0:
        return below(UINT64_MAX);
    case 1:
        return low;
    case 2:
        return (uint64_t)canaries[below(CANARIES)] + below(CANARY_SIZE);
    default:
        return (low & 0xffffffff) | high << 32;
    }
}

// Rewrites words of the mapped buffers until the process is killed.
static void rewrite(const char *path, size_t slot_size, const char *target) {
    struct stat victim;
    CHECK(stat(target, &victim) == 0);
    for (uint64_t round = 0;; round++) {
        int fd = open(path, O_RDWR);
        struct stat buffers;
        if (fd < 0 || fstat(fd, &buffers) || buffers.st_size <= SLOTS_OFFSET)
            _exit(0);
        unsigned char *map = mmap(NULL, buffers.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        CHECK(map != MAP_FAILED);
        close(fd);
        uint64_t slots = (buffers.st_size - SLOTS_OFFSET) / slot_size;
        for (int i = 0; i < 2000; i++) {
            unsigned char *slot = map + SLOTS_OFFSET + below(slots) * slot_size;
            switch (below(16)) {
            case 0: // The header of the file, behind what says whose it is.
                *(uint64_t *)(map + 64 + 8 * below((PAGE - 64) / 8)) = number();
                break;
            case 1: // What stands there of a record file.
                *(uint64_t *)(map + PAGE + 8 * below(4096 * 8)) = number();
                break;
            case 2: // Text.
                *(uint64_t *)(slot + PAGE + 8 * below((slot_size - PAGE) / 8)) = number();
                break;
            case 3: // A path, and the file that it leads to as that which the process has made.
                strcpy((char *)slot + 1024, target);
                for (int entry = 0; entry < 4096; entry++) {
                    uint64_t *words = (uint64_t *)(map + PAGE + 64 * entry);
                    words[0] = victim.st_ino;
                    words[1] = victim.st_dev;
                }
                break;
            case 4:
                *(uint32_t *)(slot + 4 * below(16)) = number();
                break;
            default:
                *(uint64_t *)(slot + 8 * below(PAGE / 4 / 8)) = number();
            }
            if (below(8) == 0)
                usleep(below(20));
        }
        munmap(map, buffers.st_size);
    }
}

static void handle(int number) {
    (void)number;
    sem_post(&posted);
}

static void *record(void *unused) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < calls; i++)
        if (pthread_mutex_lock(&own) || pthread_mutex_unlock(&own))
            abort();
    return unused;
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    const char *directory = getenv("THR_TRACE_DIR");
    state = strtoull(argv[1], NULL, 10);
    if (getenv("THR_TRACE_BUF"))
        calls = 200;
    for (int i = 0; i < CANARIES; i++) {
        canaries[i] = mmap(NULL, CANARY_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(canaries[i] != MAP_FAILED);
        memset(canaries[i], 'c', CANARY_SIZE);
    }
    sem_init(&posted, 0, 0);
    record(NULL);
    char path[4096];
    snprintf(path, sizeof path, "%s/trbuf.%07x", directory, getpid());
    // Not by fork(), whose hook gives the child private memory: this child has the mapping as well.
    pid_t parent = getpid(), child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    CHECK(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (syscall(SYS_getppid) != parent)
            _exit(0);
        rewrite(path, strtoull(argv[2], NULL, 10), argv[3]);
    }
    signal(SIGALRM, handle);
    struct itimerval timer = {{0, 2000}, {0, 2000}};
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    for (int generation = 0; generation < GENERATIONS; generation++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, record, NULL) == 0);
        record(NULL);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
    }
    for (int i = 0; i < CANARIES; i++)
        for (int at = 0; at < CANARY_SIZE; at++)
            CHECK(canaries[i][at] == 'c');
    puts("done");
    return 7;
}
