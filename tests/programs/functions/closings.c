// Opens and closes a library 600 times, and calls a function each time: `closings LIBRARY`.

#include <dlfcn.h>
#include "../check.h"

static int called;

__attribute__((noinline)) static void call(void) {
    called++;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    for (int i = 0; i < 600; i++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        CHECK(library);
        CHECK(!dlclose(library));
        call();
    }
    return called != 600;
}
