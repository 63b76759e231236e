// A process that loads a library before or after it forks: `forked_maps none | before | again | after`. The parent has recorded
// before; with `again` it has forked another child before it loads the library. The child records, loads the library if it is to, and
// ends; with `before` and `again` it is killed. Prints `child PID`.

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
    int is_again = strcmp(argv[1], "again") == 0, is_before = is_again || strcmp(argv[1], "before") == 0;
    pid_t earlier = is_again ? fork() : -1;
    if (earlier == 0)
        _exit(0);
    if (is_again && waitpid(earlier, NULL, 0) != earlier)
        return 3;
    if (is_before)
        load();
    pid_t child = fork();
    if (child == 0) {
        pairs(1);
        if (is_before)
            kill(getpid(), SIGKILL);
        if (strcmp(argv[1], "after") == 0)
            load();
        exit(0);
    }
    printf("child %d\n", child);
    return waitpid(child, NULL, 0) == child ? 0 : 3;
}
