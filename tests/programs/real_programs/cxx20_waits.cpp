/* What C++20 waits by: in each part a thread sleeps until main wakes it; `NAME LWP` is printed of it. */
#include <atomic>
#include <barrier>
#include <future>
#include <latch>
#include <semaphore>

#include "part.h"

int main() {
    std::atomic<int> value = 3;
    part("atomic", [&] { value.wait(3); }, [&] { value = 4; value.notify_one(); });
    std::atomic<bool> flag = false;
    part("atomic_of_a_byte", [&] { flag.wait(false); }, [&] { flag = true; flag.notify_all(); });
    std::counting_semaphore<7> semaphore(0);
    part("counting_semaphore", [&] { semaphore.acquire(); }, [&] { semaphore.release(); });
    std::latch latch(1);
    part("latch", [&] { latch.wait(); }, [&] { latch.count_down(); });
    std::barrier barrier(2);
    part("barrier", [&] { barrier.arrive_and_wait(); }, [&] { barrier.arrive_and_wait(); });
    std::promise<int> promise;
    auto future = promise.get_future();
    part("future", [&] { future.wait(); }, [&] { promise.set_value(1); });
}
