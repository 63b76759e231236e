// Names before and after an exec, in a vfork child, in two processes, and in a library that is closed. Compiled as that library
// with -DLIBRARY.

#include "../../../threadt/include/threadt.h"
#include "../check.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>

#ifdef LIBRARY

void library_mark(int value);

void library_mark(int value)
{
    threadt_mark("in a library", value);
}

#else

static void wait_for(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

int main(int count, char **arguments)
{
    CHECK(count > 1);
    if (!strcmp(arguments[1], "executed")) {
        threadt_mark("after the exec", 2);
        threadt_mark("in both", 2);
    } else if (!strcmp(arguments[1], "exec")) {
        threadt_mark("before the exec", 1);
        threadt_mark("in both", 1);
        execl("/proc/self/exe", "conditions", "executed", NULL);
        return 1;
    } else if (!strcmp(arguments[1], "vfork")) {
        threadt_mark("in the parent", 1);
        pid_t child = vfork();
        if (child == 0) {
            threadt_mark("in the child", 1);
            _exit(0);
        }
        wait_for(child);
        threadt_mark("in the parent", 2);
    } else if (!strcmp(arguments[1], "fork")) {
        pid_t child = fork();
        threadt_mark("in both", child == 0 ? 1 : 2);
        if (child > 0)
            wait_for(child);
    } else {
        for (int round = 0; round < 3; round++) {
            void *library = dlopen(arguments[1], RTLD_NOW);
            CHECK(library);
            void (*mark)(int) = (void (*)(int))dlsym(library, "library_mark");
            mark(round);
            mark(round);
            CHECK(!dlclose(library));
        }
    }
    return 0;
}

#endif
