// What the C++ standard library makes of threads: prints what each part found.

#include <chrono>
#include <condition_variable>
#include <future>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

// Numbers through a queue with one producer and three consumers.
static long queue_sum() {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<int> queue;
    bool closed = false;
    long sum = 0;
    std::vector<std::thread> consumers;
    for (int i = 0; i < 3; i++)
        consumers.emplace_back([&] {
            std::unique_lock lock(mutex);
            for (;;) {
                // The time limit is there to be waited with, not to run out.
                changed.wait_for(lock, 1h, [&] { return closed || !queue.empty(); });
                if (queue.empty())
                    return;
                sum += queue.back();
                queue.pop_back();
            }
        });
    for (int number = 1; number <= 5000; number++) {
        std::lock_guard lock(mutex);
        queue.push_back(number);
        changed.notify_one();
    }
    {
        std::lock_guard lock(mutex);
        closed = true;
        changed.notify_all();
    }
    for (auto &consumer : consumers)
        consumer.join();
    return sum;
}

// A wait that nobody ends.
static bool times_out() {
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    return !never.wait_for(lock, 20ms, [] { return false; });
}

static long shared_reads() {
    std::shared_mutex mutex;
    long value = 0;
    std::vector<std::future<long>> readers;
    std::thread writer([&] {
        for (int i = 0; i < 1000; i++) {
            std::unique_lock lock(mutex);
            value++;
        }
    });
    for (int i = 0; i < 3; i++)
        readers.push_back(std::async(std::launch::async, [&] {
            long last = 0, backwards = 0;
            for (int turn = 0; turn < 1000; turn++) {
                std::shared_lock lock(mutex);
                backwards += value < last;
                last = value;
            }
            return backwards;
        }));
    long backwards = 0;
    for (auto &reader : readers)
        backwards += reader.get();
    writer.join();
    return value * 10 + backwards;
}

// The first two callers throw; the third does it.
static int once_with_exceptions() {
    std::once_flag flag;
    int calls = 0, caught = 0;
    for (int i = 0; i < 5; i++) {
        try {
            std::call_once(flag, [&] {
                if (++calls < 3)
                    throw std::runtime_error("not yet");
            });
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    return calls * 10 + caught;
}

static int recursive_depth() {
    std::recursive_timed_mutex mutex;
    int depth = 0;
    while (depth < 5 && mutex.try_lock_for(1s))
        depth++;
    for (int i = 0; i < depth; i++)
        mutex.unlock();
    return depth;
}

int main() {
    std::cout << "queue " << queue_sum() << "\n"
              << "timeout " << times_out() << "\n"
              << "shared " << shared_reads() << "\n"
              << "once " << once_with_exceptions() << "\n"
              << "recursive " << recursive_depth() << "\n";
    return 3;
}
