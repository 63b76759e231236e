// Forks while workers run at full speed: `storm FILE FORKS SEED`.
//
// Three threads fork, FORKS children between them. A child locks and unlocks an rwlock of its own as often as chance
// wants, forks a child that does the same if chance wants that, and ends by exit, _exit or SIGKILL. Prints for each
// `child PID PARENT PAIRS END`, END being the exit status or minus the signal, and returns 0 from main with the workers still
// running.

#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "work.h"

enum { FORKERS = 3 };

static atomic_long left;
static uint64_t seed;

// splitmix64 of the seed and a number that is used once.
static uint64_t chance(uint64_t number) {
    uint64_t word = seed + number * 0x9e3779b97f4a7c15;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

static void fork_one(uint64_t number);

static void live(uint64_t number, unsigned pairs, int end) {
    pthread_rwlock_t own = PTHREAD_RWLOCK_INITIALIZER;
    for (unsigned i = 0; i < pairs; i++) {
        pthread_rwlock_rdlock(&own);
        pthread_rwlock_unlock(&own);
    }
    if (chance(3 * number + 2) % 4 == 0)
        fork_one(number * 1000003 + 1);
    if (end < 0)
        raise(-end);
    if (end == 21)
        exit(end);
    _exit(end);
}

static void fork_one(uint64_t number) {
    // At times more than a buffer has room for.
    unsigned pairs = chance(3 * number) % (chance(3 * number + 1) % 8 ? 40 : 1500);
    static const int ends[] = {21, 22, -SIGKILL};
    int end = ends[chance(3 * number + 1) % 3];
    pid_t child = fork();
    if (child == 0)
        live(number, pairs, end);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    int ended = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    if (ended != end)
        abort();
    dprintf(1, "child %d %d %u %d\n", child, getpid(), pairs, ended);
}

static void *forks(void *argument) {
    long number;
    while ((number = atomic_fetch_sub(&left, 1)) > 0)
        fork_one(number);
    return argument;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    left = atol(argv[2]);
    seed = strtoull(argv[3], NULL, 10);
    turns = INT32_MAX;
    if (announce(argv[1]))
        return 2;
    pthread_t worker, forkers[FORKERS];
    for (intptr_t i = 0; i < AT_ONCE; i++)
        if (pthread_create(&worker, NULL, work, (void *)i))
            return 2;
    for (int i = 0; i < FORKERS; i++)
        if (pthread_create(&forkers[i], NULL, forks, NULL))
            return 2;
    for (int i = 0; i < FORKERS; i++)
        if (pthread_join(forkers[i], NULL))
            return 2;
    return 0;
}
