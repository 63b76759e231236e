// Children, one after the other, that lock a mutex ten times and end by `_exit`. Prints the PID of each.

#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

int main(void) {
    pairs(1);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            pairs(10);
            _exit(0);
        }
        if (waitpid(child, NULL, 0) != child)
            return 3;
        printf("%d\n", child);
    }
    return 0;
}
