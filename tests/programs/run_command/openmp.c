/* A barrier of two OpenMP threads. */
#include <stdio.h>

int main(void) {
#pragma omp parallel num_threads(2)
    {
#pragma omp barrier
    }
    puts("done");
    return 0;
}
