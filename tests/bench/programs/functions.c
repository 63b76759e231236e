// Times a function that is compiled with -finstrument-functions: `functions TURNS` prints the nanoseconds of wall time that one
// call of it takes, and the process's peak memory in KiB. Nothing else of this file is instrumented; natively the two functions
// that the compiler calls are those of the C library, which are empty.
#define NOT_INSTRUMENTED __attribute__((no_instrument_function))
NOT_INSTRUMENTED static inline long nanoseconds(void);
NOT_INSTRUMENTED static inline long peak_memory(void);
NOT_INSTRUMENTED static inline void print_figures(double figure, long peak);
#include "figures.h"

// Not inlined: the compiler would instrument the place where it is inlined, and read its address there.
__attribute__((noinline, noclone)) static long next(long value) {
    return value + 1;
}

NOT_INSTRUMENTED int main(int argc, char **argv) {
    long turns = argc == 2 ? atol(argv[1]) : 0;
    if (turns < 1) {
        fprintf(stderr, "usage: functions TURNS\n");
        return 2;
    }
    next(0); // The first call finds the library, or the C library.
    long began = nanoseconds();
    for (long i = 0; i < turns; i = next(i))
        ;
    print_figures((double)(nanoseconds() - began) / turns, peak_memory());
    return 0;
}
