/* What C++20 waits by: in each part a thread sleeps until main wakes it; `NAME LWP` is printed of it. */
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <future>
#include <latch>
#include <semaphore>
#include <string>
#include <thread>
#include <unistd.h>

static char state(pid_t lwp) {
    std::string path = "/proc/self/task/" + std::to_string(lwp) + "/stat";
    char text[512];
    FILE *file = fopen(path.c_str(), "r");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    std::string stat(text, size);
    size_t end = stat.rfind(") ");
    return end == std::string::npos ? '?' : stat[end + 2];
}

static void part(const char *name, auto sleep, auto wake) {
    std::atomic<pid_t> lwp = 0;
    std::thread thread([&] {
        lwp = gettid();
        sleep();
    });
    for (int asleep = 0; asleep < 10; asleep = lwp && state(lwp) == 'S' ? asleep + 1 : 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    wake();
    thread.join();
    printf("%s %d\n", name, (int)lwp);
}

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
