// A thread whose system calls from elsewhere than libc go to the program, as emulators ask for: `dispatched BEFORE BLOCKED`. It
// makes BEFORE pairs, BLOCKED ones while its byte says that calls go to the program, and BEFORE again when it does not; then a
// child as many. Ends with 7, or 77 where the kernel knows nothing of that.

#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../check.h"
#include "../lifecycle/calls.h"

enum { SET_DISPATCH = 59, OFF = 0, ON = 1, ALLOW = 0, BLOCK = 1 };

static volatile char selector = ALLOW;
static unsigned long start, end;

static int find_libc(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size, (void)unused;
    for (int i = 0; i < object->dlpi_phnum && strstr(object->dlpi_name, "/libc.so"); i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
            start = object->dlpi_addr + part->p_vaddr;
            end = start + part->p_memsz;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    int before = atoi(argv[1]), blocked = atoi(argv[2]);
    dl_iterate_phdr(find_libc, NULL);
    pairs(before);
    if (prctl(SET_DISPATCH, ON, start, end - start, &selector))
        return 77;
    selector = BLOCK;
    pairs(blocked);
    CHECK(prctl(SET_DISPATCH, 5, 0, 0, 0) == -1);
    pairs(blocked);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pairs(before);
        _exit(7);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    selector = ALLOW;
    pairs(before);
    CHECK(prctl(SET_DISPATCH, OFF, 0, 0, 0) == 0);
    selector = BLOCK;
    pairs(before);
    return 7;
}
