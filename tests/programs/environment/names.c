/*
 * Names: the program replaces its command line by a title, as servers do; its first thread gets a name by prctl and by
 * syscall; it names another thread, and makes a child with a title of its own.
 */
#define _GNU_SOURCE
#include "../check.h"
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void use(void) {
    CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
}

static void *worker(void *argument) {
    pthread_barrier_wait(&barrier);
    use();
    return argument;
}

/* Writes a title over the arguments, which the kernel has put one behind the other. */
static void set_title(char **arguments, int count, const char *title) {
    char *last = arguments[count - 1];
    size_t room = (size_t)(last + strlen(last) - arguments[0]);
    CHECK(strlen(title) < room);
    memset(arguments[0], 0, room);
    strcpy(arguments[0], title);
}

int main(int count, char **arguments) {
    pthread_t thread;
    use();
    set_title(arguments, count, "names: main process");
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, worker, NULL) == 0);
    CHECK(pthread_setname_np(thread, "by-another") == 0);
    pthread_barrier_wait(&barrier);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(prctl(PR_SET_NAME, "a-name-that-is-too-long") == 0);
    use();
    CHECK(syscall(SYS_prctl, PR_SET_NAME, "by-syscall") == 0);
    CHECK(prctl(PR_SET_NAME, (char *)1) == -1);
    use();
    pid_t child = fork();
    if (child == 0) {
        use();
        set_title(arguments, 1, "names: child");
        use();
        return 0;
    }
    CHECK(waitpid(child, NULL, 0) == child);
    return 0;
}
