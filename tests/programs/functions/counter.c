// Another tool behind the library: counts functions that are entered and left, and prints how many at the end.
#include <stdatomic.h>
#include <stdio.h>

static atomic_long entered, left;

void __cyg_profile_func_enter(void *function, void *call_site) {
    (void)function, (void)call_site;
    entered++;
}

void __cyg_profile_func_exit(void *function, void *call_site) {
    (void)function, (void)call_site;
    left++;
}

__attribute__((destructor)) static void print(void) {
    printf("entered %ld, left %ld\n", entered, left);
}
