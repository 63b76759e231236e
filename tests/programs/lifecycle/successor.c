// Has the process ID of an earlier process whose files are still there: `successor PREPARED TRACE`.
//
// Moves PREPARED/tr, PREPARED/trinfo and PREPARED/trbuf, as far as they are there, into TRACE under the names that
// this process's own files are to have, before its first recorded call. Prints its number as in the names.

#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>

#include "calls.h"

static void place(const char *prepared, const char *kind, const char *trace, const char *suffix) {
    char from[4096], to[4096];
    snprintf(from, sizeof from, "%s/%s", prepared, kind);
    snprintf(to, sizeof to, "%s/%s.%07x%s", trace, kind, getpid(), suffix);
    if (rename(from, to) && errno != ENOENT) {
        perror(to);
        exit(2);
    }
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    char suffix[8];
    snprintf(suffix, sizeof suffix, ".%03x", getpid() & 0xfff);
    place(argv[1], "tr", argv[2], suffix);
    place(argv[1], "trinfo", argv[2], "");
    place(argv[1], "trbuf", argv[2], "");
    pairs(3);
    printf("%07x%s\n", getpid(), suffix);
    return 0;
}
