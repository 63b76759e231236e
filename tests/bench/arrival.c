/* Reads records from standard input as they arrive and prints how old they were then: median, 99th percentile and most, in
 * milliseconds, separated by tabs. The wall clock must be that of the records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1 << 22 };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    static char text[1 << 20];
    double *ages = malloc(MOST * sizeof *ages);
    size_t filled = 0, count = 0;
    ssize_t length;

    while (ages && (length = read(0, text + filled, sizeof text - 1 - filled)) > 0) {
        struct timespec now;
        char *line = text, *end;
        clock_gettime(CLOCK_REALTIME, &now);
        filled += length;
        text[filled] = 0;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            char *colon;
            long seconds = strtol(line, &colon, 10), nanoseconds = strtol(colon + 1, NULL, 10);
            if (count < MOST)
                ages[count++] = (now.tv_sec - seconds) * 1e3 + (now.tv_nsec - nanoseconds) / 1e6;
        }
        filled -= line - text;
        memmove(text, line, filled);
    }
    if (!count)
        return 1;
    qsort(ages, count, sizeof *ages, by_size);
    printf("%.1f\t%.1f\t%.1f\n", ages[count / 2], ages[count * 99 / 100], ages[count - 1]);
    return 0;
}
