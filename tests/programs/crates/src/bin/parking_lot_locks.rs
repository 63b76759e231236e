//! What parking_lot waits by. In each part a thread sleeps until main wakes it.

use std::sync::{Arc, mpsc};
use std::thread;

use crates::part;
use parking_lot::{Condvar, Mutex, Once, ReentrantMutex, RwLock};

fn main() {
    let mutex = Arc::new(Mutex::new(0));
    let held = mutex.lock();
    let shared = Arc::clone(&mutex);
    part("Mutex", move || *shared.lock() += 1, || drop(held));

    let mutex = Arc::new(ReentrantMutex::new(0));
    let held = mutex.lock();
    let shared = Arc::clone(&mutex);
    part("ReentrantMutex", move || assert_eq!(*shared.lock(), 0), || drop(held));

    let rwlock = Arc::new(RwLock::new(0));
    let held = rwlock.read();
    let shared = Arc::clone(&rwlock);
    part("RwLock::write", move || *shared.write() += 1, || drop(held));
    let held = rwlock.write();
    let shared = Arc::clone(&rwlock);
    part("RwLock::read", move || assert_eq!(*shared.read(), 1), || drop(held));
    let held = rwlock.upgradable_read();
    let shared = Arc::clone(&rwlock);
    part("RwLock::upgradable_read", move || assert_eq!(*shared.upgradable_read(), 1), || drop(held));

    let condition = Arc::new((Mutex::new(false), Condvar::new()));
    let shared = Arc::clone(&condition);
    part(
        "Condvar",
        move || shared.1.wait_while(&mut shared.0.lock(), |ready| !*ready),
        || {
            *condition.0.lock() = true;
            condition.1.notify_one();
        },
    );

    static ONCE: Once = Once::new();
    let (begun, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel();
    let routine = thread::spawn(move || {
        ONCE.call_once(|| {
            begun.send(()).unwrap();
            may_end.recv().unwrap();
        })
    });
    has_begun.recv().unwrap();
    part(
        "Once",
        || ONCE.call_once(|| unreachable!()),
        || {
            end.send(()).unwrap();
            routine.join().unwrap();
        },
    );
}
