/*
 * Writes a trace into the working directory: interleaved FILES RECORDS GROUPS.
 *
 * FILES files of RECORDS records, lock, lock and unlock in turn, 20 to 99 ns apart. The files are made in GROUPS groups, one
 * after the other in time; within a group, each record goes to a file chosen at random.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PER_PROCESS = 4096, BUFFER = 1 << 16 };

struct file {
    long left;
    size_t filled, size;
    char *buffer;
};

static void flush(struct file *file, long number)
{
    char name[32];
    int fd;

    snprintf(name, sizeof name, "tr.%07lx.%03lx", 1 + number / PER_PROCESS, number % PER_PROCESS);
    fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || write(fd, file->buffer, file->filled) != (ssize_t)file->filled) {
        perror(name);
        exit(1);
    }
    close(fd);
    file->filled = 0;
}

int main(int argc, char **argv)
{
    static const char *const events[] = { "02:02:1:0x559469ed90a0", "02:02:2:0", "02:04:0:0x559469ed90a0" };
    uint64_t seed = 88172645463325252, time = 1795174740000000000;
    long files, records, groups, first, group;

    if (argc != 4) {
        fprintf(stderr, "usage: %s FILES RECORDS GROUPS\n", argv[0]);
        return 2;
    }
    files = atol(argv[1]);
    records = atol(argv[2]);
    groups = atol(argv[3]);
    for (group = first = 0; group < groups; group++) {
        long last = files * (group + 1) / groups, count = last - first, open = count, number;
        struct file *all = calloc(count, sizeof *all);
        long *choice = calloc(count, sizeof *choice);

        for (number = 0; number < count; number++) {
            all[number].left = records;
            all[number].size = count > 64 ? 128 + BUFFER / 16 : BUFFER;
            all[number].buffer = malloc(all[number].size);
            choice[number] = number;
        }
        while (open > 0) {
            struct file *file;
            long place;

            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            place = (seed >> 20) % open;
            number = choice[place];
            file = &all[number];
            time += 20 + (seed >> 40) % 80;
            file->filled += sprintf(file->buffer + file->filled, "%010lu:%09lu:%07ld:%07ld:0x7fc5de3f86c0:%s:0:0:0:0\n",
                                    (unsigned long)(time / 1000000000), (unsigned long)(time % 1000000000),
                                    first + number, 1 + (first + number) / PER_PROCESS, events[file->left % 3]);
            if (--file->left == 0)
                choice[place] = choice[--open];
            if (file->left == 0 || file->filled + 128 > file->size)
                flush(file, first + number);
        }
        for (number = 0; number < count; number++)
            free(all[number].buffer);
        free(all);
        free(choice);
        first = last;
    }
    return 0;
}
