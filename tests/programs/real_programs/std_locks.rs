//! What Rust's standard library waits by: `std_locks`. In each part a thread sleeps until main wakes it, and prints `NAME LWP` then.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, Once, RwLock, mpsc};
use std::thread;
use std::time::Duration;

/// The calling thread's directory in /proc.
fn own_task() -> String {
    fs::read_link("/proc/thread-self").unwrap().to_str().unwrap().to_owned()
}

/// Starts a thread that sleeps in `sleep`, lets `wake` wake it, and prints its LWP.
fn part(name: &str, sleep: impl FnOnce() + Send + 'static, wake: impl FnOnce(&thread::Thread)) {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        sender.send(own_task()).unwrap();
        sleep();
    });
    let task = receiver.recv().unwrap();
    let state = || fs::read_to_string(format!("/proc/{task}/stat")).unwrap().rsplit(") ").next().unwrap().as_bytes()[0];
    // It may wait for something else before.
    let mut asleep = 0;
    while asleep < 10 {
        thread::sleep(Duration::from_millis(1));
        asleep = if state() == b'S' { asleep + 1 } else { 0 };
    }
    wake(thread.thread());
    thread.join().unwrap();
    println!("{name} {}", task.rsplit('/').next().unwrap());
}

fn main() {
    let mutex = Arc::new(Mutex::new(0));
    let held = mutex.lock().unwrap();
    let shared = Arc::clone(&mutex);
    part("Mutex", move || *shared.lock().unwrap() += 1, |_| drop(held));

    let rwlock = Arc::new(RwLock::new(0));
    let held = rwlock.read().unwrap();
    let shared = Arc::clone(&rwlock);
    part("RwLock::write", move || *shared.write().unwrap() += 1, |_| drop(held));
    let held = rwlock.write().unwrap();
    let shared = Arc::clone(&rwlock);
    part("RwLock::read", move || assert_eq!(*shared.read().unwrap(), 1), |_| drop(held));

    let condition = Arc::new((Mutex::new(false), Condvar::new()));
    let shared = Arc::clone(&condition);
    part(
        "Condvar",
        move || drop(shared.1.wait_while(shared.0.lock().unwrap(), |ready| !*ready).unwrap()),
        |_| {
            *condition.0.lock().unwrap() = true;
            condition.1.notify_one();
        },
    );

    static ONCE: Once = Once::new();
    static BEGUN: AtomicBool = AtomicBool::new(false);
    static MAY_END: AtomicBool = AtomicBool::new(false);
    let routine = thread::spawn(|| {
        ONCE.call_once(|| {
            BEGUN.store(true, SeqCst);
            while !MAY_END.load(SeqCst) {
                thread::sleep(Duration::from_millis(1));
            }
        });
    });
    while !BEGUN.load(SeqCst) {
        thread::sleep(Duration::from_millis(1));
    }
    part("Once", || ONCE.call_once(|| unreachable!()), |_| {
        MAY_END.store(true, SeqCst);
        routine.join().unwrap();
    });

    part("park", thread::park, |thread| thread.unpark());

    let (sender, receiver) = mpsc::channel();
    part("mpsc", move || assert_eq!(receiver.recv(), Ok(5)), |_| sender.send(5).unwrap());
}
