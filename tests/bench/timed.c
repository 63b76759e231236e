/*
 * Runs a command; writes to standard error how many milliseconds that took, its peak memory in KiB, and how many milliseconds of
 * processor time it took, with tabs between.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double milliseconds(struct timeval time)
{
    return time.tv_sec * 1e3 + time.tv_usec / 1e3;
}

int main(int argc, char **argv)
{
    struct timespec start, end;
    struct rusage usage;
    int status = 0;
    pid_t child;

    if (argc < 2)
        return 2;
    clock_gettime(CLOCK_MONOTONIC, &start);
    child = fork();
    if (child == 0) {
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) != child)
        return 1;
    clock_gettime(CLOCK_MONOTONIC, &end);
    fprintf(stderr, "%.3f\t%ld\t%.3f\n", (end.tv_sec - start.tv_sec) * 1e3 + (end.tv_nsec - start.tv_nsec) / 1e6,
            usage.ru_maxrss, milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime));
    return status != 0;
}
