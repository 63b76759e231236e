/* Runs a command; writes to standard error how many milliseconds that took and, behind a tab, its peak memory in KiB. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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
    fprintf(stderr, "%.3f\t%ld\n", (end.tv_sec - start.tv_sec) * 1e3 + (end.tv_nsec - start.tv_nsec) / 1e6, usage.ru_maxrss);
    return status != 0;
}
