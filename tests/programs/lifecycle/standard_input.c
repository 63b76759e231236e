/*
 * Finds libc's variable `stdin` in each way, and prints whether it is that.
 *
 *     standard_input LIBRARY
 *
 * The library is this file built with -shared -nostdlib -DLIBRARY: its reference has no version. The program is linked with another
 * one of these.
 */
#define _GNU_SOURCE
#include <stdio.h>

#ifdef LIBRARY

FILE **unversioned_stdin(void) { return &stdin; }

#else

#include <dlfcn.h>

FILE **unversioned_stdin(void);

static void *libcs;

static void found(const char *way, void *variable) {
    FILE **file = variable;
    printf("%s: %s, %s\n", way, file == libcs ? "libc's" : "another", file && *file == *(FILE **)libcs ? "the same" : "not the same");
}

int main(int count, char **arguments) {
    void *library = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    if (!library || !libc || !(libcs = dlvsym(libc, "stdin", "GLIBC_2.2.5"))) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    found("by dlsym", dlsym(RTLD_DEFAULT, "stdin"));
    found("by dlvsym", dlvsym(RTLD_DEFAULT, "stdin", "GLIBC_2.2.5"));
    found("by dlsym, of the next", dlsym(RTLD_NEXT, "stdin"));
    found("by a library that was opened", ((FILE * *(*)(void)) dlsym(library, "unversioned_stdin"))());
    // This one was relocated before a preloaded library.
    printf("by a library that was linked: %s\n", *unversioned_stdin() == *(FILE **)libcs ? "the same" : "not the same");
    return 0;
}

#endif
