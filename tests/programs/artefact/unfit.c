// A shared library that no program could preload without noticing: it breaks the rules of tests/artefact one by one.
// Built with -shared -fPIC -Wl,-z,execstack,-z,notext,-z,lazy,-rpath,/unfit,--no-as-needed -lm.

#include <stdlib.h>

// More than what the linker has in reserve for libraries, by the model that may allocate on first use.
__thread char unfit_memory[256];

char *unfit_address(void) {
    return unfit_memory;
}

// An allocation.
void *unfit_allocation(void) {
    return malloc(1);
}

// A message that is put together for a panic.
void unfit_panic(void) __asm__("_RNvNtCs0_4core9panicking13assert_failed");
void unfit_panic(void) {
}

// A pointer amid the code, which the linker has to write there.
__asm__(".text\nunfit_pointer: .quad unfit_address\n");
