//! A thread that is created below generic, inlined and recursive functions, closures and calls through a trait: `stacks`.

use std::thread;

trait Job {
    fn start(&self, depth: u32) -> u32;
}

struct Recursive<F>(F);

impl<F: Fn() -> u32> Job for Recursive<F> {
    #[inline(never)]
    fn start(&self, depth: u32) -> u32 {
        // What comes after the call keeps it from being a jump.
        1 + if depth > 0 { self.start(depth - 1) } else { (self.0)() }
    }
}

#[inline(always)]
fn inlined<const N: u32>(job: &dyn Job) -> u32 {
    job.start(N) + 1
}

#[inline(never)]
fn generic<T: Into<u32>>(value: T) -> u32 {
    thread::spawn(|| 1).join().unwrap() + value.into()
}

fn main() {
    let jobs: Vec<Box<dyn Job>> = vec![Box::new(Recursive(|| generic(7u8) + 1))];
    let sum: u32 = jobs.iter().map(|job| inlined::<2>(&**job)).sum();
    assert_eq!(sum, 13);
}
