/* What Abseil waits by: in each part a thread sleeps until main wakes it; `NAME LWP` is printed of it. */
#include <absl/synchronization/blocking_counter.h>
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>

#include "part.h"

int main() {
    absl::Mutex mutex;
    mutex.Lock();
    part("Mutex", [&] { absl::MutexLock lock(&mutex); }, [&] { mutex.Unlock(); }); // Mutex::Lock
    mutex.Lock();
    part("Mutex::ReaderLock", [&] { absl::ReaderMutexLock lock(&mutex); }, [&] { mutex.Unlock(); }); // Mutex::ReaderLock
    bool ready = false;
    part(
        "Mutex::Await",
        [&] {
            absl::MutexLock lock(&mutex);
            mutex.Await(absl::Condition(&ready)); // Mutex::Await
        },
        [&] {
            absl::MutexLock lock(&mutex);
            ready = true;
        });
    absl::CondVar condition;
    bool signalled = false;
    part(
        "CondVar",
        [&] {
            absl::MutexLock lock(&mutex);
            while (!signalled) condition.Wait(&mutex); // CondVar
        },
        [&] {
            absl::MutexLock lock(&mutex);
            signalled = true;
            condition.Signal();
        });
    absl::Notification notification;
    part("Notification", [&] { notification.WaitForNotification(); }, [&] { notification.Notify(); }); // Notification
    absl::BlockingCounter counter(1);
    part("BlockingCounter", [&] { counter.Wait(); }, [&] { counter.DecrementCount(); }); // BlockingCounter
}
