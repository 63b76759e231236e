// A thread under a filter that has its opens answered by another thread, which needs a lock for that: `asked PAIRS`. The lock is
// free when the thread opens a file.
//
// Ends by SIGALRM if they wait for each other.

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "../check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t installed;
static int listener;

static int install(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static void *ask(void *count) {
    listener = install();
    CHECK(listener >= 0);
    sem_post(&installed);
    for (int i = 0; i < atoi(count); i++)
        CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
    CHECK(openat(AT_FDCWD, "/dev/null", O_RDONLY) >= 0);
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    sem_init(&installed, 0, 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, ask, argv[1]) == 0);
    sem_wait(&installed);
    struct seccomp_notif question = {0};
    CHECK(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question) == 0);
    CHECK(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
    struct seccomp_notif_resp answer = {.id = question.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    CHECK(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return 7;
}
