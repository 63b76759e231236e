// Records, and executes itself, which records nothing until the file `go` appears, and then until `stop` does, and once after that: `executes`.
// `executes TIMES`: so often one after the other, recording at once and for some milliseconds each time.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../check.h"

static void record(void) {
    static pthread_key_t key;
    static int has_key;
    if (!has_key) {
        CHECK(pthread_key_create(&key, NULL) == 0);
        has_key = 1;
    }
    CHECK(pthread_setspecific(key, &key) == 0);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "second")) {
        int times = atoi(argv[1]);
        for (int i = 0; i < 20; i++) {
            record();
            usleep(100);
        }
        char left[16];
        snprintf(left, sizeof left, "%d", times - 1);
        if (times > 0)
            execl(argv[0], argv[0], left, NULL);
        puts("done");
        return 0;
    }
    if (argc == 1) {
        record();
        execl(argv[0], argv[0], "second", NULL);
        return 1;
    }
    puts("second");
    fflush(stdout);
    while (access("go", F_OK))
        usleep(1000);
    for (int is_last = 0; !is_last; usleep(1000)) {
        is_last = !access("stop", F_OK);
        record();
    }
    return 0;
}
