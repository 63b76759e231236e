// Threads, their signal handlers, and forked children record marks with names that they make: the name of a mark with the
// value 17 is "n17". The text of each is overwritten at once.

#include "../../../threadt/include/threadt.h"

#include "../check.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>

static int names;
static atomic_int next;

static void mark(void)
{
    char text[24];
    int number = atomic_fetch_add(&next, 1) % names;
    int length = 1;
    text[0] = 'n';
    for (int power = 100000; power; power /= 10)
        if (number >= power || power == 1)
            text[length++] = '0' + number / power % 10;
    text[length] = 0;
    threadt_mark(text, number);
    memset(text, '!', sizeof text);
}

static void handle(int signal)
{
    (void)signal;
    mark();
}

static void *work(void *argument)
{
    for (int round = 0; round < 2 * names; round++) {
        mark();
        if (round % 7 == 0)
            raise(SIGUSR1);
    }
    return argument;
}

static void run(void)
{
    pthread_t threads[3];
    for (int index = 0; index < 3; index++)
        CHECK(!pthread_create(&threads[index], NULL, work, NULL));
    for (int index = 0; index < 3; index++)
        CHECK(!pthread_join(threads[index], NULL));
}

int main(int count, char **arguments)
{
    CHECK(count == 2);
    names = atoi(arguments[1]);
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_NODEFER};
    CHECK(!sigaction(SIGUSR1, &action, NULL));
    run();
    for (int child = 0; child < 2; child++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            if (child)
                run();
            else
                mark();
            return 0;
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    return 0;
}
