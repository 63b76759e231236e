/* What oneTBB waits by: in each part a thread sleeps until main wakes it; `NAME LWP` is printed of it. */
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/queuing_mutex.h>
#include <oneapi/tbb/rw_mutex.h>
#include <oneapi/tbb/spin_mutex.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include "part.h"

/* Adds in all threads under a lock, which sleeps or spins. */
template <class Lock> static void add_under(const char *name) {
    Lock lock;
    int sum = 0;
    tbb::parallel_for(0, 1000, [&](int) {
        typename Lock::scoped_lock held(lock);
        sum++;
    });
    printf("%s %d\n", name, sum);
}

int main(int argc, char **) {
    if (argc > 1) {
        tbb::task_arena arena(4);
        arena.execute([] {
            add_under<tbb::mutex>("mutex");
            add_under<tbb::spin_mutex>("spin_mutex");
            add_under<tbb::queuing_mutex>("queuing_mutex");
        });
        return 0;
    }
    tbb::mutex mutex;
    mutex.lock();
    part("mutex", [&] { tbb::mutex::scoped_lock lock(mutex); }, [&] { mutex.unlock(); }); // mutex
    tbb::rw_mutex rw_mutex;
    rw_mutex.lock_shared();
    part("rw_mutex::lock", [&] { tbb::rw_mutex::scoped_lock lock(rw_mutex); }, [&] { rw_mutex.unlock_shared(); }); // rw_mutex::lock
    rw_mutex.lock();
    part("rw_mutex::lock_shared", [&] { tbb::rw_mutex::scoped_lock lock(rw_mutex, false); }, [&] { rw_mutex.unlock(); }); // rw_mutex::lock_shared
    /* Its one worker sleeps when there is nothing to do. */
    tbb::task_arena arena(2, 1);
    auto task = [&](std::atomic<pid_t> &lwp) { arena.enqueue([&] { lwp = gettid(); }); };
    std::atomic<pid_t> worker(0);
    task(worker);
    await_sleep(worker);
    std::atomic<pid_t> again(0);
    task(again);
    await_sleep(again);
    printf("arena %d\n", (int)again);
}
