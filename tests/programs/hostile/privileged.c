// Ten pairs: `privileged secure|ordinary`. Fails unless it is linked to the library and has the rights that its argument names.

#include <string.h>
#include <sys/auxv.h>

#include "../lifecycle/calls.h"

int main(int argc, char **argv) {
    if (argc != 2 || (strcmp(argv[1], "secure") == 0) != (getauxval(AT_SECURE) != 0))
        return 2;
    char line[8192];
    int loaded = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        loaded |= strstr(line, "libthreadt.so") != NULL;
    pairs(10);
    return loaded ? 0 : 3;
}
