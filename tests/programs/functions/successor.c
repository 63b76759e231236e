// A library for `successors`, with the function NAME, which calls a local one, LOCAL.

__attribute__((noinline)) static void LOCAL(void) {
    __asm__ volatile("");
}

void NAME(void) {
    LOCAL();
    __asm__ volatile("");
}
