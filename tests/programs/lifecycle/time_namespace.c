// Moves to a time namespace whose clocks are a day and an hour ahead, and takes turns with a partner that stays.
//
// Arguments: HOW PAIRS. First prints the partner's process ID. Then it takes turns, moves, takes turns, makes PAIRS pairs of
// lock and unlock, and takes turns again. A turn is a post that the partner waits for, and a post of the partner that it
// waits for itself. HOW it moves:
//
//   fork, clone      a child in the namespace goes on, made by fork or by the system call
//   exec             becomes itself by exec (Linux 6.0 and newer move then)
//   setns, syscall   moves itself, by that function
//   inline           moves itself by an inlined system call
//
// Returns 7; 77 where the kernel or the user's rights have no time namespaces.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../instruction.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

enum { DONE = 7, NO_NAMESPACE = 77, TURNS = 3 };

struct shared {
    sem_t there, back;
};

static struct shared *shared;

static void must(int is_true) {
    if (!is_true)
        _exit(3);
}

static void take_turns(void) {
    for (int i = 0; i < TURNS; i++)
        must(sem_post(&shared->there) == 0 && sem_wait(&shared->back) == 0);
}

static pid_t start_partner(void) {
    pid_t partner = fork();
    must(partner >= 0);
    if (partner == 0) {
        for (int i = 0; i < 3 * TURNS; i++)
            must(sem_wait(&shared->there) == 0 && sem_post(&shared->back) == 0);
        _exit(0);
    }
    return partner;
}

static void make_namespace(void) {
    if (unshare(CLONE_NEWTIME))
        _exit(NO_NAMESPACE);
    int file = open("/proc/self/timens_offsets", O_WRONLY);
    must(file >= 0 && dprintf(file, "monotonic 86400 0\nboottime 3600 0\n") > 0 && close(file) == 0);
}

static void wait_for(pid_t child, int status) {
    int ended;
    must(waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == status);
}

static void move_by_child(pid_t child, pid_t partner) {
    must(child >= 0);
    if (child) {
        wait_for(child, DONE);
        wait_for(partner, 0);
        exit(DONE);
    }
}

int main(int argc, char **argv) {
    must(argc >= 3);
    int is_moved = argc > 3, file = open("shared", O_RDWR | O_CREAT, 0600);
    must(file >= 0 && ftruncate(file, sizeof *shared) == 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    must(shared != MAP_FAILED && close(file) == 0);
    const char *how = argv[1];
    pid_t partner = is_moved ? atoi(argv[3]) : 0;
    if (!is_moved) {
        must(sem_init(&shared->there, 1, 0) == 0 && sem_init(&shared->back, 1, 0) == 0);
        // The namespace is for later children only.
        partner = start_partner();
        dprintf(1, "%d\n", partner);
        take_turns();
        make_namespace();
        int namespace = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
        must(namespace >= 0);
        if (strcmp(how, "fork") == 0) {
            move_by_child(fork(), partner);
        } else if (strcmp(how, "clone") == 0) {
            move_by_child(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), partner);
        } else if (strcmp(how, "exec") == 0) {
            char text[16];
            snprintf(text, sizeof text, "%d", partner);
            execl("/proc/self/exe", argv[0], how, argv[2], text, NULL);
            _exit(3);
        } else if (strcmp(how, "setns") == 0) {
            must(setns(namespace, CLONE_NEWTIME) == 0);
        } else if (strcmp(how, "syscall") == 0) {
            must(syscall(SYS_setns, namespace, CLONE_NEWTIME) == 0);
        } else if (strcmp(how, "inline") == 0) {
            must(by_instruction(SYS_setns, namespace, CLONE_NEWTIME, 0) == 0);
        } else {
            must(0);
        }
    }
    take_turns();
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < atoi(argv[2]); i++)
        must(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_unlock(&mutex) == 0);
    take_turns();
    if (strcmp(how, "fork") != 0 && strcmp(how, "clone") != 0)
        wait_for(partner, 0);
    return DONE;
}
