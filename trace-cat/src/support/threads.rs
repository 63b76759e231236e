//! Runs work in several threads.

use std::thread;

use log::warn;

/// Does `work` in `count` threads, this one included, or in as many as the system allows. Returns when all have ended.
pub fn run_on_threads(count: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        for number in 1..count {
            if let Err(error) = thread::Builder::new().spawn_scoped(scope, &work) {
                warn!("{number} threads and no more: {error}");
                break;
            }
        }
        work();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn all_threads_work() {
        let all = Barrier::new(3);
        run_on_threads(3, || _ = all.wait());
        run_on_threads(0, || ());
    }
}
