//! Pools of threads: rayon's and tokio's. Their workers sleep until main has work for them, and contend for a lock then.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crates::{await_sleep, own_task};

/// How many workers a pool has.
const WORKERS: usize = 4;

/// Prints `NAME LWP` of each worker.
fn print(name: &str, tasks: &[String]) {
    for task in tasks {
        println!("{name} {}", task.rsplit('/').next().unwrap());
    }
}

fn rayon() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(WORKERS).build().unwrap();
    let tasks = pool.broadcast(|_| own_task());
    tasks.iter().for_each(|task| await_sleep(task));
    let hot = Mutex::new(0);
    pool.broadcast(|_| {
        let mut count = hot.lock().unwrap(); // hot in rayon
        thread::sleep(Duration::from_millis(10));
        *count += 1;
    });
    assert_eq!(*hot.lock().unwrap(), WORKERS);
    print("rayon", &tasks);
}

fn tokio() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).build().unwrap();
    // A task keeps its worker until all have one.
    let barrier = Arc::new(std::sync::Barrier::new(WORKERS));
    let hot = Arc::new(Mutex::new(0));
    let spawn = |is_hot: bool| {
        let (barrier, hot) = (Arc::clone(&barrier), Arc::clone(&hot));
        runtime.spawn(async move {
            barrier.wait();
            if is_hot {
                let mut count = hot.lock().unwrap(); // hot in tokio
                thread::sleep(Duration::from_millis(10));
                *count += 1;
            }
            own_task()
        })
    };
    let of_all = |is_hot: bool| {
        let all: Vec<_> = (0..WORKERS).map(|_| spawn(is_hot)).collect();
        all.into_iter().map(|task| runtime.block_on(task).unwrap()).collect::<Vec<_>>()
    };
    let tasks = of_all(false);
    tasks.iter().for_each(|task| await_sleep(task));
    of_all(true);
    assert_eq!(*hot.lock().unwrap(), WORKERS);
    print("tokio", &tasks);

    // Tasks that wait for tokio's own lock let their worker do something else.
    let shared = Arc::new(tokio::sync::Mutex::new(0));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let shared = Arc::clone(&shared);
            runtime.spawn(async move {
                for _ in 0..100 {
                    let mut count = shared.lock().await;
                    tokio::task::yield_now().await;
                    *count += 1;
                }
            })
        })
        .collect();
    tasks.into_iter().for_each(|task| runtime.block_on(task).unwrap());
    assert_eq!(*runtime.block_on(shared.lock()), 800);
}

fn main() {
    rayon();
    tokio();
}
