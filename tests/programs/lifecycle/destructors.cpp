// Threads that are cancelled, or leave by pthread_exit, below C++ frames: destructors run, and catch (...) sees it pass.

#include <cstdio>
#include <cstring>
#include <functional>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t ready, never;
static pthread_t main_thread;

struct Witness {
    const char *what;
    ~Witness() {
        std::printf("%s destroyed\n", what);
    }
};

struct Lock {
    Lock() {
        pthread_mutex_lock(&mutex);
    }
    ~Lock() {
        // Fails if the wait did not give the mutex back.
        std::printf("unlock %d\n", pthread_mutex_unlock(&mutex));
    }
};

static void in_cond_wait() {
    Witness witness{"cond_wait"};
    Lock lock;
    sem_post(&ready);
    for (;;)
        pthread_cond_wait(&cond, &mutex);
}

static void in_sem_wait() {
    Witness witness{"sem_wait"};
    sem_post(&ready);
    sem_wait(&never);
}

static void in_join() {
    Witness witness{"join"};
    sem_post(&ready);
    pthread_join(main_thread, nullptr);
}

static void in_sleep() {
    Witness witness{"sleep"};
    sem_post(&ready);
    sleep(3600);
}

static void in_exit() {
    Witness witness{"exit"};
    sem_post(&ready);
    pthread_exit(PTHREAD_CANCELED);
}

static void in_once() {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    Witness witness{"once"};
    pthread_once(&once, [] {
        Witness inner{"once's routine"};
        sem_post(&ready);
        sem_wait(&never);
    });
}

static void *work(void *function) {
    try {
        reinterpret_cast<void (*)()>(function)();
    } catch (...) {
        std::puts("passed by");
        throw;
    }
    return nullptr;
}

int main() {
    main_thread = pthread_self();
    sem_init(&ready, 0, 0);
    sem_init(&never, 0, 0);
    for (void (*function)() : {in_cond_wait, in_sem_wait, in_join, in_sleep, in_exit, in_once}) {
        pthread_t thread;
        void *result;
        if (pthread_create(&thread, nullptr, work, reinterpret_cast<void *>(function)))
            return 2;
        sem_wait(&ready);
        usleep(20000);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        std::printf("cancelled %d\n", result == PTHREAD_CANCELED);
    }
    return 0;
}
