//! Several threads wait for one lock of Rust's standard library: `lock_queue`. Main has it until all are asleep; then each has it for
//! a moment. Prints main's LWP.

use std::fs;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

static LOCK: Mutex<u64> = Mutex::new(0);

/// The calling thread's directory in /proc.
fn own_task() -> String {
    fs::read_link("/proc/thread-self").unwrap().to_str().unwrap().to_owned()
}

fn main() {
    println!("{}", own_task().rsplit('/').next().unwrap());
    let held = LOCK.lock().unwrap();
    let waiters: Vec<_> = (0..3).map(|_| {
        let (sender, receiver) = mpsc::channel();
        let waiter = thread::spawn(move || {
            sender.send(own_task()).unwrap();
            *LOCK.lock().unwrap() += 1;
        });
        let stat = format!("/proc/{}/stat", receiver.recv().unwrap());
        // It may wait for something else before.
        let mut asleep = 0;
        while asleep < 10 {
            thread::sleep(Duration::from_millis(1));
            let is_asleep = fs::read_to_string(&stat).unwrap().rsplit(") ").next().unwrap().starts_with('S');
            asleep = if is_asleep { asleep + 1 } else { 0 };
        }
        waiter
    }).collect();
    drop(held);
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    assert_eq!(*LOCK.lock().unwrap(), 3);
}
