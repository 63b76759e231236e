// Calls at every stage of a process and of a thread, each on a mutex of its own: `stages return|quick_exit`.
//
// Prints a line for each stage: its name, the address of its mutex, and how often the mutex is locked there.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <pthread.h>
#include <thread>

struct Stage {
    const char *name;
    int pairs;
    pthread_mutex_t mutex;
    void run() {
        for (int i = 0; i < pairs; i++)
            if (pthread_mutex_lock(&mutex) || pthread_mutex_unlock(&mutex))
                abort();
    }
};

#define STAGE(name, pairs) static Stage name = {#name, pairs, PTHREAD_MUTEX_INITIALIZER}
STAGE(before_main, 1);
STAGE(static_object, 2);
STAGE(in_thread, 3);
STAGE(thread_object, 4);
STAGE(key_destructor, 5);
STAGE(main_object, 6);
STAGE(at_exit, 7);
STAGE(at_quick, 8);
STAGE(after_main, 9);

__attribute__((constructor)) static void constructor() { before_main.run(); }
__attribute__((destructor)) static void destructor() { after_main.run(); }

struct Object {
    Stage *stage;
    ~Object() { stage->run(); }
};

static Object object{&static_object};
static pthread_key_t key;

// Sets its key again, so that it is called PTHREAD_DESTRUCTOR_ITERATIONS times: four.
static void destroy(void *value) {
    key_destructor.run();
    pthread_setspecific(key, value);
}

static void work() {
    thread_local Object own{&thread_object};
    (void)&own;
    in_thread.run();
    pthread_setspecific(key, &key);
}

int main(int argc, char **argv) {
    bool quick = argc == 2 && !strcmp(argv[1], "quick_exit");
    thread_local Object own{&main_object};
    (void)&own;
    atexit([] { at_exit.run(); });
    at_quick_exit([] { at_quick.run(); });
    pthread_key_create(&key, destroy);
    std::thread(work).join();
    for (Stage *stage : {&before_main, &in_thread, &thread_object})
        printf("%s %p %d\n", stage->name, (void *)&stage->mutex, stage->pairs);
    printf("%s %p %d\n", key_destructor.name, (void *)&key_destructor.mutex, 4 * key_destructor.pairs);
    for (Stage *stage : {&static_object, &main_object, &at_exit, &after_main})
        printf("%s %p %d\n", stage->name, (void *)&stage->mutex, quick ? 0 : stage->pairs);
    printf("%s %p %d\n", at_quick.name, (void *)&at_quick.mutex, quick ? at_quick.pairs : 0);
    fflush(stdout);
    if (quick)
        quick_exit(0);
    return 0;
}
