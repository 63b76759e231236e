// Children of a process that has recorded nothing: as many as the argument says lock and unlock a mutex at the same time.

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 0;
    atomic_int *ready = mmap(NULL, sizeof *ready, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ready == MAP_FAILED)
        return 3;
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        if (child < 0)
            return 3;
        if (child == 0) {
            pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
            atomic_fetch_add(ready, 1);
            while (*ready != count)
                sched_yield();
            _exit(pthread_mutex_lock(&mutex) || pthread_mutex_unlock(&mutex));
        }
    }
    int status;
    for (int i = 0; i < count; i++)
        if (wait(&status) < 0 || status)
            return 3;
    return 0;
}
