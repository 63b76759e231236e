// Uses a mutex of a class and one of a library.

#include <mutex>
#include <thread>

extern "C" void use_library(void);

namespace app {
template <typename T> struct Queue {
    T value{};
    std::mutex mutex;
    __attribute__((noinline)) void push(T more) {
        std::lock_guard<std::mutex> guard(mutex); // push
        value += more;
    }
};
static Queue<long> queue;
} // namespace app

int main() {
    std::thread thread([] { app::queue.push(1); });
    app::queue.push(2);
    thread.join();
    use_library();
}
