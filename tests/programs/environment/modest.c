// A little of several categories: `modest [chdir DIRECTORY | pause]`.
//
// Two mutex pairs come first. Then `chdir` changes the working directory, and `pause` prints a line and waits for the end of
// its life. The other calls are a condition wait, a recursive mutex, a semaphore and a spin lock.

#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int notified;

static void *teller(void *argument) {
    pthread_mutex_lock(&mutex);
    notified = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    return argument;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    if (argc == 3 && strcmp(argv[1], "chdir") == 0 && chdir(argv[2]))
        return 2;
    if (argc == 2 && strcmp(argv[1], "pause") == 0) {
        puts("paused");
        fflush(stdout);
        pause();
    }

    pthread_t thread;
    pthread_mutex_lock(&mutex);
    if (pthread_create(&thread, NULL, teller, NULL))
        return 2;
    while (!notified)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);

    pthread_mutexattr_t attributes;
    pthread_mutex_t recursive;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    pthread_mutex_lock(&recursive);
    pthread_mutex_unlock(&recursive);

    sem_t semaphore;
    sem_init(&semaphore, 0, 1);
    sem_wait(&semaphore);
    sem_post(&semaphore);

    pthread_spinlock_t spin;
    pthread_spin_init(&spin, 0);
    pthread_spin_lock(&spin);
    pthread_spin_unlock(&spin);

    puts("done");
    fputs("nothing to complain of\n", stderr);
    return 9;
}
