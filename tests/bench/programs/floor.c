// The least that a recorder of text can cost: `floor TURNS BYTES FILE [WRITES]` locks and unlocks a free mutex, reads the clock twice,
// and writes BYTES bytes a turn to FILE by write(2), in blocks as large as the library's buffers (144 KiB). Nothing is
// encoded: the text is there. With WRITES it makes so many writes a turn instead, of BYTES together, and opens, examines and
// closes the file for each. Prints the nanoseconds of a turn and the peak memory in KiB.
#include "figures.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 144 * 1024 };

static void write_block(int file, const char *text, long length) {
    if (write(file, text, length) != length) {
        perror("floor: write");
        exit(1);
    }
}

static void write_alone(const char *path, const char *text, long length, long at) {
    struct stat status;
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) || pwrite(file, text, length, at) != length || close(file)) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv) {
    static char text[BLOCK];
    int complete = argc == 4 || argc == 5;
    long turns = complete ? atol(argv[1]) : 0, bytes = complete ? atol(argv[2]) : 0, writes = argc == 5 ? atol(argv[4]) : 0;
    if (turns < 1 || writes < 0 || writes > bytes || bytes < 1 || bytes > BLOCK) {
        fprintf(stderr, "usage: floor TURNS BYTES FILE [WRITES]\n");
        return 2;
    }
    int file = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) {
        perror(argv[3]);
        return 1;
    }
    memset(text, '0', sizeof text);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    volatile long clock;
    long filled = 0, at = 0, began = nanoseconds();
    for (long i = 0; i < turns; i++) {
        pthread_mutex_lock(&mutex);
        clock = nanoseconds();
        clock = nanoseconds();
        pthread_mutex_unlock(&mutex);
        for (long write = 0; write < writes; write++, at += bytes / writes)
            write_alone(argv[3], text, bytes / writes, at);
        if (writes > 0)
            continue;
        filled += bytes;
        if (filled > BLOCK - bytes) {
            write_block(file, text, filled);
            filled = 0;
        }
    }
    long ended = nanoseconds();
    (void)clock;
    print_figures((double)(ended - began) / turns, peak_memory());
    return 0;
}
