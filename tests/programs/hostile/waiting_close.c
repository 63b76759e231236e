// A thread closes a stream by a call that goes on for long when the number is closed already, while another one records: `waiting_close HOW`.
//
// HOW is `pclose`, which waits for the command, or `fclose` of a socket with SO_LINGER, which waits until the other end has read. Prints how often the
// thread that records has slept for that.

#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "../instruction.h"
#include "sleeps.h"

enum { RECORDS = 100 };

static int ends[2], peer = -1;

// A command that waits until the writing end of the pipe is closed.
static FILE *open_command(void) {
    char command[64];
    CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0);
    snprintf(command, sizeof command, "read line <&%d", ends[0]);
    return popen(command, "w");
}

// A socket whose other end reads nothing yet.
static FILE *open_socket(void) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct linger linger = { .l_onoff = 1, .l_linger = 100 };
    static char unread[1 << 16];
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), own = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    CHECK(connect(own, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK((peer = accept(listener, NULL, NULL)) >= 0);
    CHECK(setsockopt(own, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    while (send(own, unread, sizeof unread, MSG_DONTWAIT) > 0)
        ;
    return fdopen(own, "w");
}

// Lets the call return.
static void end_waiting(void) {
    char unused[1 << 16];
    if (peer < 0)
        CHECK(close(ends[1]) == 0);
    else
        while (read(peer, unused, sizeof unused) > 0)
            ;
}

static void *close_stream(void *stream) {
    CHECK((peer < 0 ? pclose(stream) : fclose(stream)) != -1);
    return NULL;
}

int main(int argc, char **argv) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    CHECK(argc == 2);
    FILE *stream = strcmp(argv[1], "pclose") == 0 ? open_command() : open_socket();
    CHECK(stream);
    int number = fileno(stream);
    CHECK(pthread_create(&thread, NULL, close_stream, stream) == 0);
    while (by_instruction(SYS_fcntl, number, F_GETFD, 0) >= 0)
        usleep(100);
    long before = sleeps();
    for (int i = 0; i < RECORDS; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    printf("%ld\n", sleeps() - before);
    end_waiting();
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}
