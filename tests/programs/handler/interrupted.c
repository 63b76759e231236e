// A handler of records is interrupted by a signal handler that leaves it by a jump, and makes processes; the thread that it was
// called in goes on to lock a mutex five times after each. Compiled as the handler with -DHANDLER.

#include "../check.h"
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#ifdef HANDLER

#include "../../../threadt/include/threadt.h"

THREADT_HANDLER

static _Atomic unsigned locks, processes;

int threadt_handler_init(const char *parameters)
{
    locks = processes = 0;
    return atoi(parameters);
}

static void make_process(int executes)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (executes)
            execl("/bin/true", "true", NULL);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    processes++;
}

void threadt_handler_event(const struct threadt_record *record)
{
    if (record->event1 == 2 && record->event2 == 2 && record->which == 1)
        locks++;
    else if (record->event1 == 4 && record->event2 == 4)
        raise(SIGUSR1);
    else if (record->event1 == 3 && record->event2 == 2)
        make_process(0);
    else if (record->event1 == 3 && record->event2 == 3)
        make_process(1);
}

void threadt_handler_fini(void)
{
    dprintf(1, "locks %u processes %u\n", locks, processes);
}

#else

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sigjmp_buf environment;

static void jump(int signal)
{
    (void)signal;
    siglongjmp(environment, 1);
}

static void lock_five_times(void)
{
    for (int round = 0; round < 5; round++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
}

int main(void)
{
    sem_t semaphore;
    signal(SIGUSR1, jump);
    CHECK(!sem_init(&semaphore, 0, 0));
    for (volatile int round = 0; round < 20; round++) {
        if (sigsetjmp(environment, 1) == 0)
            sem_post(&semaphore);
        lock_five_times();
    }
    pthread_cond_signal(&condition);
    lock_five_times();
    pthread_cond_broadcast(&condition);
    lock_five_times();
    return 0;
}

#endif
