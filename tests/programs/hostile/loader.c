// Loads and unloads a library again and again: `loader LIBRARY ROUNDS [deep]`, with RTLD_DEEPBIND if deep.

#define _GNU_SOURCE
#include <dlfcn.h>

#include "../lifecycle/calls.h"

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    for (int round = 0; round < atoi(argv[2]); round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | (argc > 3 ? RTLD_DEEPBIND : 0));
        void (*call)(void) = NULL;
        if (library)
            *(void **)&call = dlsym(library, "plugin_call");
        if (!call) {
            puts(dlerror());
            return 3;
        }
        call();
        pairs(1);
        if (dlclose(library) || dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD))
            return 4;
        dlerror();
    }
    // A hook must not leave an error of its own behind, nor clear the program's.
    dlsym(RTLD_DEFAULT, "no_such_function");
    pairs(1);
    const char *error = dlerror();
    pairs(1);
    return error && !dlerror() ? 0 : 5;
}
