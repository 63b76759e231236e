// Shows its open descriptors after some calls, closes all of them but the first three, and goes on.

#define _GNU_SOURCE
#include <dirent.h>
#include <unistd.h>

#include "calls.h"

static void *work(void *argument) {
    pairs(1000);
    return argument;
}

static void show(void) {
    DIR *directory = opendir("/proc/self/fd");
    if (!directory)
        exit(2);
    for (struct dirent *entry; (entry = readdir(directory));)
        printf("%s ", entry->d_name);
    printf("\n");
    closedir(directory);
}

static void run_thread(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL))
        exit(2);
}

int main(void) {
    show();
    pairs(1000);
    run_thread();
    show();
    if (close_range(3, ~0U, 0))
        return 2;
    pairs(1000);
    run_thread();
    show();
    return 0;
}
