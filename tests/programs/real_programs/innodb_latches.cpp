/* Locks that have the names of InnoDB's in MariaDB (storage/innobase/include/srw_lock.h) and their words in the same places; they are made for this
 * test, and lock no more than it needs. In each part a thread sleeps until main wakes it; `NAME LWP` is printed of it. */
#include <linux/futex.h>
#include <sys/syscall.h>

#include <climits>

#include "part.h"

/* No function: InnoDB's own call syscall(2), too. */
#define FUTEX(word, operation, value) syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0)

/* 0: free; 1: locked; 2: others wait. */
template <bool spinloop> struct srw_mutex_impl {
    std::atomic<uint32_t> word{0};

    [[gnu::always_inline]] inline void wait() { FUTEX(word, FUTEX_WAIT_PRIVATE, 2); }
    [[gnu::noinline]] void wait_and_lock() {
        while (word.exchange(2)) wait();
    }
    void wr_lock() {
        uint32_t free = 0;
        if (!word.compare_exchange_strong(free, 1)) wait_and_lock();
    }
    void wr_unlock() {
        if (word.exchange(0) == 2) FUTEX(word, FUTEX_WAKE_PRIVATE, INT_MAX);
    }
};

template <bool spinloop> struct ssux_lock_impl {
    srw_mutex_impl<spinloop> writer;
    std::atomic<uint32_t> readers{0};
    static constexpr uint32_t WRITER = 1u << 31;

    [[gnu::noinline]] void wr_wait() {
        for (uint32_t now; (now = readers) != WRITER;) FUTEX(readers, FUTEX_WAIT_PRIVATE, now);
    }
    [[gnu::noinline]] void rd_wait() {
        while (readers & WRITER) {
            uint32_t locked = 1;
            writer.word.compare_exchange_strong(locked, 2);
            if (readers & WRITER) writer.wait();
        }
        readers++;
    }
    void wr_lock() {
        writer.wr_lock();
        if (readers.fetch_add(WRITER)) wr_wait();
    }
    void wr_unlock() {
        readers = 0;
        writer.wr_unlock();
    }
    void rd_unlock() {
        if (readers.fetch_sub(1) == WRITER + 1) FUTEX(readers, FUTEX_WAKE_PRIVATE, 1);
    }
};

int main() {
    srw_mutex_impl<false> mutex;
    mutex.wr_lock();
    part("mutex", [&] { mutex.wr_lock(); mutex.wr_unlock(); }, [&] { mutex.wr_unlock(); });
    ssux_lock_impl<true> lock;
    lock.wr_lock();
    part("wr_lock", [&] { lock.wr_lock(); lock.wr_unlock(); }, [&] { lock.wr_unlock(); });
    lock.wr_lock();
    part("rd_lock", [&] { lock.rd_wait(); lock.rd_unlock(); }, [&] { lock.wr_unlock(); });
    lock.rd_wait();
    part("wr_wait", [&] { lock.wr_lock(); lock.wr_unlock(); }, [&] { lock.rd_unlock(); });
}
