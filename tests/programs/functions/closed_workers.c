// Opens each of the libraries whose paths are given, lets it work, and closes it.

#include <dlfcn.h>

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW);
        int (*work)(void) = library ? (int (*)(void))dlsym(library, "work") : 0;
        if (!work || work() || dlclose(library))
            return 3;
    }
    return 0;
}
