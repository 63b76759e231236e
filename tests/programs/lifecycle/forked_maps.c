// A process that loads a library before or after it forks: `forked_maps none | before | after`. The parent has recorded
// before. The child records, loads the library if it is to, and ends; with `before` it is killed. Prints `child PID`.

#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

static void load(void) {
    if (!dlopen("libm.so.6", RTLD_NOW))
        abort();
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    pairs(1);
    if (strcmp(argv[1], "before") == 0)
        load();
    pid_t child = fork();
    if (child == 0) {
        pairs(1);
        if (strcmp(argv[1], "before") == 0)
            kill(getpid(), SIGKILL);
        if (strcmp(argv[1], "after") == 0)
            load();
        exit(0);
    }
    printf("child %d\n", child);
    return waitpid(child, NULL, 0) == child ? 0 : 3;
}
