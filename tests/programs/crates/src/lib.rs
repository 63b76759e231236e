//! Threads that sleep until another one wakes them.

use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The calling thread's directory in /proc.
pub fn own_task() -> String {
    fs::read_link("/proc/thread-self").unwrap().to_str().unwrap().to_owned()
}

/// Returns when a thread has slept for a while. It may wait for something else before.
pub fn await_sleep(task: &str) {
    let state = || fs::read_to_string(format!("/proc/{task}/stat")).unwrap().rsplit(") ").next().unwrap().as_bytes()[0];
    let mut asleep = 0;
    while asleep < 10 {
        thread::sleep(Duration::from_millis(1));
        asleep = if state() == b'S' { asleep + 1 } else { 0 };
    }
}

/// Starts a thread that sleeps in `sleep`, lets `wake` wake it, and prints `NAME LWP` of it.
pub fn part(name: &str, sleep: impl FnOnce() + Send + 'static, wake: impl FnOnce()) {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || {
        sender.send(own_task()).unwrap();
        sleep();
    });
    let task = receiver.recv().unwrap();
    await_sleep(&task);
    wake();
    thread.join().unwrap();
    println!("{name} {}", task.rsplit('/').next().unwrap());
}
