// Locks by wrappers: a template that is not inlined, which a function calls that is inlined into its callers. The main thread holds
// the mutex until the other one waits for it, once for each of two functions.

#include <mutex>
#include <sched.h>
#include <thread>

#include "../check.h"

namespace wrapper {
template <typename T> class Guarded {
  public:
    template <typename F> __attribute__((noinline)) void with(F &&change) {
        std::lock_guard<std::mutex> guard(mutex);
        change(value);
    }
    bool is_waited_for() { return __atomic_load_n(&mutex.native_handle()->__data.__lock, __ATOMIC_RELAXED) == 2; }
    void lock() { mutex.lock(); }
    void unlock() { mutex.unlock(); }

  private:
    T value{};
    std::mutex mutex;
};
} // namespace wrapper

static wrapper::Guarded<long> counter;
static int steps;

struct Adder {
    long more;
    void operator()(long &value) const { value += more; }
};

static inline __attribute__((always_inline)) void add_inlined(long more) {
    counter.with(Adder{more}); // add_inlined
}

__attribute__((noinline)) static void first_use() {
    add_inlined(1); // first_use
    asm volatile("");
}

__attribute__((noinline)) static void second_use() {
    add_inlined(2); // second_use
    asm volatile("");
}

// A debugger stops at the call.
template <int number> __attribute__((noinline)) static void initialise(pthread_mutex_t *mutex) {
    CHECK(!pthread_mutex_init(mutex, nullptr));
    CHECK(!pthread_mutex_destroy(mutex));
}

static inline __attribute__((always_inline)) void middle(pthread_mutex_t *mutex) {
    initialise<7>(mutex);
    asm volatile("");
}

__attribute__((noinline)) static void outer() {
    pthread_mutex_t mutex;
    middle(&mutex);
    asm volatile("");
}

static void take_step() { __atomic_add_fetch(&steps, 1, __ATOMIC_SEQ_CST); }

static void await_step(int step) {
    while (__atomic_load_n(&steps, __ATOMIC_SEQ_CST) < step)
        sched_yield();
}

int main() {
    std::thread thread([] {
        await_step(1);
        first_use();
        take_step();
        await_step(3);
        second_use();
    }); // main
    for (int round = 0; round < 2; round++) {
        counter.lock();
        take_step();
        while (!counter.is_waited_for())
            sched_yield();
        counter.unlock();
        if (round == 0)
            await_step(2);
    }
    thread.join();
    outer();
}
