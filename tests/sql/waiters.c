/* Threads that wait for mutexes, a condition, a read-write lock, a semaphore, a barrier and each other; `killed` leaves waits and holds
 * open, `forks` forks with a lock held, `returns` does neither. A second argument is the number of rounds. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 3

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER, limited = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t start;
static sem_t tokens;
static int count, rounds = 300;

static void lock_for_a_while(int round)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    if (pthread_mutex_timedlock(&limited, &until) == 0) {
        if (round % 3 == 0)
            usleep(30);
        pthread_mutex_unlock(&limited);
    }
}

static void *work(void *argument)
{
    long number = (long)argument;
    pthread_barrier_wait(&start);
    for (int round = 0; round < rounds; round++) {
        pthread_mutex_lock(&queue);
        if (round % 50 == 7)
            usleep(300);
        count++;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&queue);
        pthread_rwlock_rdlock(&table);
        pthread_rwlock_unlock(&table);
        if (round % 10 == number) {
            pthread_rwlock_wrlock(&table);
            usleep(50);
            pthread_rwlock_unlock(&table);
        }
        lock_for_a_while(round);
        sem_post(&tokens);
        if (pthread_mutex_trylock(&queue) == 0)
            pthread_mutex_unlock(&queue);
    }
    return NULL;
}

static void *consume(void *argument)
{
    pthread_mutex_lock(&queue);
    while (count < WORKERS * rounds)
        pthread_cond_wait(&filled, &queue);
    pthread_mutex_unlock(&queue);
    for (int round = 0; round < WORKERS * rounds; round++)
        sem_wait(&tokens);
    return argument;
}

static void *wait_for_ever(void *argument)
{
    pthread_mutex_lock(&limited);
    pthread_mutex_lock(&queue);
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t threads[WORKERS + 1], stuck;
    if (argc > 2)
        rounds = atoi(argv[2]);
    sem_init(&tokens, 0, 0);
    pthread_barrier_init(&start, NULL, WORKERS);
    for (long number = 0; number < WORKERS; number++)
        pthread_create(&threads[number], NULL, work, (void *)number);
    pthread_create(&threads[WORKERS], NULL, consume, NULL);
    for (int number = 0; number <= WORKERS; number++)
        pthread_join(threads[number], NULL);
    if (argc > 1 && strcmp(argv[1], "killed") == 0) {
        pthread_mutex_lock(&queue);
        pthread_create(&stuck, NULL, wait_for_ever, NULL);
        usleep(150000);
        raise(SIGKILL);
    }
    for (int child = 0; argc > 1 && strcmp(argv[1], "forks") == 0 && child < 4; child++) {
        pthread_mutex_lock(&queue);
        if (fork() == 0) {
            pthread_mutex_unlock(&queue);
            if (child == 2)
                execl("/bin/true", "true", (char *)NULL);
            _exit(0);
        }
        pthread_mutex_unlock(&queue);
        wait(NULL);
    }
    return 0;
}
