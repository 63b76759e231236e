/* Prints a line for each SIGUSR1 that it gets. Ends at SIGUSR2, and after a minute in any case; with an argument also a
   tenth of a second after the first SIGUSR1. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t count;

static void on_signal(int signal) {
    if (signal == SIGUSR2) {
        _exit(9);
    }
    char line[32];
    int length = snprintf(line, sizeof line, "signal %d\n", (int)++count);
    if (write(1, line, (size_t)length) != length) {
        _exit(1);
    }
}

int main(int argc, char **argv) {
    (void)argv;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    if (write(1, "ready\n", 6) != 6) {
        return 1;
    }
    for (int rounds = 0, after = 0; rounds < 6000 && after < 10; rounds++) {
        struct timespec pause = {.tv_nsec = 10000000};
        nanosleep(&pause, NULL);
        after += argc > 1 && count > 0;
    }
    return 3;
}
