/* Prints a line for each SIGUSR1 that it gets, and the names of some others. Ends at SIGUSR2, and after a minute in any case;
   with an argument also a tenth of a second after the first SIGUSR1. (A shell is no such program: dash forgets what
   arrives while it begins a command.) */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t count;

static void print(const char *text) {
    ssize_t length = (ssize_t)strlen(text);
    if (write(1, text, (size_t)length) != length) {
        _exit(1);
    }
}

static void on_signal(int signal) {
    char line[32];
    switch (signal) {
    case SIGHUP:
        return print("HUP\n");
    case SIGINT:
        return print("INT\n");
    case SIGQUIT:
        return print("QUIT\n");
    case SIGTERM:
        return print("TERM\n");
    case SIGUSR2:
        print("end\n");
        _exit(9);
    }
    snprintf(line, sizeof line, "signal %d\n", (int)++count);
    print(line);
}

int main(int argc, char **argv) {
    (void)argv;
    struct sigaction action = {.sa_handler = on_signal};
    sigfillset(&action.sa_mask);
    const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        sigaction(signals[i], &action, NULL);
    }
    print("ready\n");
    for (int rounds = 0, after = 0; rounds < 6000 && after < 10; rounds++) {
        struct timespec pause = {.tv_nsec = 10000000};
        nanosleep(&pause, NULL);
        after += argc > 1 && count > 0;
    }
    return 3;
}
