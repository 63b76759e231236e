// A server's workers: children that become another user, all at the same time.
//
//   workers UID COUNT
//
// The parent makes 10 pairs of lock and unlock; each child makes 10 before it becomes the user UID, and 10 as that user. Ends
// with 7.

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "../lifecycle/calls.h"

int main(int argc, char **arguments) {
    CHECK(argc == 3);
    uid_t uid = (uid_t)atoi(arguments[1]);
    int count = atoi(arguments[2]);
    int *ready = mmap(NULL, sizeof *ready, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(ready != MAP_FAILED);
    pairs(10);
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            pairs(10);
            // Without sleeping, so that two go on at the same moment.
            __atomic_add_fetch(ready, 1, __ATOMIC_SEQ_CST);
            while (__atomic_load_n(ready, __ATOMIC_SEQ_CST) < count)
                ;
            CHECK(setuid(uid) == 0);
            pairs(10);
            exit(0);
        }
    }
    for (int i = 0; i < count; i++) {
        int status;
        CHECK(wait(&status) > 0 && status == 0);
    }
    return 7;
}
