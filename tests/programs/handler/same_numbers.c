// In a PID namespace of its own: threads, one after the other, and then a child, most of which have the number that another one had.
// Each makes calls. Begins when its file `changed` is there, and prints how many there were and how many numbers.

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"

#define COUNT 40

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int numbers[COUNT + 1];

static void call(void) {
    for (int i = 0; i < 3; i++) {
        CHECK(!pthread_mutex_lock(&mutex));
        CHECK(!pthread_mutex_unlock(&mutex));
    }
}

static void *call_as_thread(void *number) {
    *(int *)number = (int)syscall(SYS_gettid);
    call();
    return NULL;
}

// Lets the next thread or process have the number 1000, if it is free.
static void begin_again(void) {
    FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "w");
    CHECK(file && fprintf(file, "999") > 0 && !fclose(file));
}

int main(void) {
    printf("ready\n");
    fflush(stdout);
    while (access("changed", F_OK))
        usleep(1000);
    call();
    for (int i = 0; i < COUNT; i++) {
        pthread_t thread;
        begin_again();
        CHECK(!pthread_create(&thread, NULL, call_as_thread, &numbers[i]));
        CHECK(!pthread_join(thread, NULL));
        // Until the kernel has given up its number.
        while (!syscall(SYS_tgkill, getpid(), numbers[i], 0))
            usleep(100);
    }
    begin_again();
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        call();
        _exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child);
    numbers[COUNT] = child;
    int same = 0;
    for (int i = 1; i <= COUNT; i++)
        same += numbers[i] == numbers[0];
    printf("same %d\n", same);
    return 0;
}
