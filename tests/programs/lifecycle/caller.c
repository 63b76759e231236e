// Compiled as a shared object: functions that print which object has called them, and do nothing else. Compiled as a program:
// calls them.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#ifdef INTERPOSER
static int print_caller(const char *function, void *caller) {
    Dl_info info;
    const char *name = dladdr(caller, &info) ? strrchr(info.dli_fname, '/') : NULL;
    printf("%s: %s\n", function, name ? name + 1 : "unknown");
    return 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
    (void)mutex;
    return print_caller("pthread_mutex_lock", __builtin_return_address(0));
}

int pthread_rwlock_rdlock(pthread_rwlock_t *rwlock) {
    (void)rwlock;
    return print_caller("pthread_rwlock_rdlock", __builtin_return_address(0));
}

int pthread_spin_lock(pthread_spinlock_t *spin) {
    (void)spin;
    return print_caller("pthread_spin_lock", __builtin_return_address(0));
}

int sem_post(sem_t *sem) {
    (void)sem;
    return print_caller("sem_post", __builtin_return_address(0));
}
#else
int main(void) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
    pthread_spinlock_t spin;
    sem_t sem;
    sem_init(&sem, 0, 0);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    // No call is the last thing that main does: the compiler would jump.
    int failed = pthread_mutex_lock(&mutex) | pthread_rwlock_rdlock(&rwlock) | pthread_spin_lock(&spin);
    failed |= sem_post(&sem);
    return failed != 0;
}
#endif
