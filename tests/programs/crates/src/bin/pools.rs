//! Pools of threads: rayon's and tokio's. Their workers sleep until main has work for them, and contend for a lock then: the first one keeps
//! it until all others wait.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;

use crates::{await_sleep, own_task};

/// How many workers a pool has.
const WORKERS: usize = 4;

/// Prints `NAME LWP` of each worker.
fn print(name: &str, tasks: &[String]) {
    for task in tasks {
        println!("{name} {}", task.rsplit('/').next().unwrap());
    }
}

/// Waits until each of the tasks but the calling one is about to lock, and sleeps.
fn await_others(tasks: &[String], arrived: &AtomicUsize) {
    while arrived.load(SeqCst) < tasks.len() {
        thread::yield_now();
    }
    let own = own_task();
    tasks.iter().filter(|task| **task != own).for_each(|task| await_sleep(task));
}

fn rayon() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(WORKERS).build().unwrap();
    let tasks = pool.broadcast(|_| own_task());
    tasks.iter().for_each(|task| await_sleep(task));
    let (hot, arrived) = (Mutex::new(0), AtomicUsize::new(0));
    pool.broadcast(|_| {
        arrived.fetch_add(1, SeqCst);
        let mut count = hot.lock().unwrap(); // hot in rayon
        if *count == 0 {
            await_others(&tasks, &arrived);
        }
        *count += 1;
    });
    assert_eq!(*hot.lock().unwrap(), WORKERS);
    print("rayon", &tasks);
}

fn tokio() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).build().unwrap();
    // A task keeps its worker until all have one.
    let barrier = Arc::new(std::sync::Barrier::new(WORKERS));
    let hot = Arc::new((Mutex::new(0), AtomicUsize::new(0)));
    let spawn = |tasks: Option<Arc<Vec<String>>>| {
        let (barrier, hot) = (Arc::clone(&barrier), Arc::clone(&hot));
        runtime.spawn(async move {
            barrier.wait();
            if let Some(tasks) = tasks {
                let (hot, arrived) = &*hot;
                arrived.fetch_add(1, SeqCst);
                let mut count = hot.lock().unwrap(); // hot in tokio
                if *count == 0 {
                    await_others(&tasks, arrived);
                }
                *count += 1;
            }
            own_task()
        })
    };
    let of_all = |tasks: Option<Arc<Vec<String>>>| {
        let all: Vec<_> = (0..WORKERS).map(|_| spawn(tasks.clone())).collect();
        all.into_iter().map(|task| runtime.block_on(task).unwrap()).collect::<Vec<_>>()
    };
    let tasks = Arc::new(of_all(None));
    tasks.iter().for_each(|task| await_sleep(task));
    of_all(Some(Arc::clone(&tasks)));
    assert_eq!(*hot.0.lock().unwrap(), WORKERS);
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
