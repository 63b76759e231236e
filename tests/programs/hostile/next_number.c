// Makes a recorded call, and prints the number that the next file gets.

#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>

#include "../check.h"

int main(void) {
    sem_t semaphore;
    CHECK(sem_init(&semaphore, 0, 0) == 0 && sem_post(&semaphore) == 0);
    printf("%d\n", open("/dev/null", O_RDONLY));
    return 0;
}
