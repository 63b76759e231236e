// Makes small versions of 300 pictures with four threads. Each result is noted in a log, on a server two milliseconds away.
//
// What is wrong: the log's lock is held until the server has answered, so the four threads wait in a queue for the server.
// Four threads take about as long as one would: a convoy.

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define PICTURES 300
#define WORKERS 4

static pthread_mutex_t next_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int next_picture;
static char last_line[80];

// The log's server answers after two milliseconds.
static void send_to_server(const char *line) {
    (void)line;
    usleep(2000);
}

static void write_log(int picture, unsigned size) {
    pthread_mutex_lock(&log_lock);
    snprintf(last_line, sizeof last_line, "picture %d: %u bytes", picture, size);
    send_to_server(last_line);
    pthread_mutex_unlock(&log_lock);
}

static unsigned shrink(int picture) {
    unsigned size = (unsigned)picture;
    for (int pixel = 0; pixel < 100000; pixel++)
        size = size * 16807 + 11;
    return size % 65536;
}

static void *work(void *unused) {
    for (;;) {
        pthread_mutex_lock(&next_lock);
        int picture = next_picture++;
        pthread_mutex_unlock(&next_lock);
        if (picture >= PICTURES)
            return unused;
        write_log(picture, shrink(picture));
    }
}

int main(void) {
    pthread_t workers[WORKERS];
    for (int worker = 0; worker < WORKERS; worker++)
        pthread_create(&workers[worker], NULL, work, NULL);
    for (int worker = 0; worker < WORKERS; worker++)
        pthread_join(workers[worker], NULL);
    printf("%d pictures\n", PICTURES);
    return 0;
}
