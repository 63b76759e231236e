//! Whether another thread goes on: whoever waits for one that a signal handler has interrupted may be what the handler waits for.

use core::ffi::CStr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::open::read_proc;
use super::time::time_used_by;

/// How often in a row a thread has to be found asleep, without having used the processor, to be taken for one that does not go on.
const LOOKS: u32 = 5;
/// The same where it is not known whether the thread sleeps or waits for a processor or a disk.
const LOOKS_WITHOUT_PROC: u32 = 100;

/// The thread that was found not to go on last, and the processor time that it had used.
static SLEEPER: AtomicU64 = AtomicU64::new(0);
static SLEEPER_USED: AtomicU64 = AtomicU64::new(0);

/// What was observed of a thread, time after time.
#[derive(Default)]
pub struct Progress {
    /// The processor time that it had used, nanoseconds.
    used: u64,
    /// How often it had used no more than the time before.
    looks: u32,
}

impl Progress {
    /// Observes the thread `lwp` once more, a while after the last time. `true` if it does not go on; that is noted.
    pub fn has_stopped(&mut self, lwp: u32) -> bool {
        // Where the kernel cannot be asked the thread is waited for.
        let Ok(used) = time_used_by(lwp) else { return false };
        if used != self.used {
            *self = Progress { used, looks: 0 };
            return false;
        }
        self.looks += 1;
        let has_stopped = match state_of(lwp) {
            // It sleeps, or is stopped by a signal or a debugger.
            Some(b'S' | b'T' | b't') => self.looks >= LOOKS,
            // It waits for a processor or a disk.
            Some(_) => {
                self.looks = 0;
                false
            }
            None => self.looks >= LOOKS_WITHOUT_PROC,
        };
        if has_stopped {
            SLEEPER_USED.store(used, Relaxed);
            SLEEPER.store(lwp.into(), Relaxed);
        }
        has_stopped
    }
}

/// Whether the thread was noted as one that does not go on, and has not used the processor since.
pub fn sleeps_since_noted(lwp: u32) -> bool {
    // ORDERING: Relaxed; of two words that do not belong together the comparison fails, and the thread is observed anew.
    SLEEPER.load(Relaxed) == u64::from(lwp) && time_used_by(lwp) == Ok(SLEEPER_USED.load(Relaxed))
}

/// The letter by which `/proc` shows what the thread does.
#[cold]
#[inline(never)]
fn state_of(lwp: u32) -> Option<u8> {
    let (mut path, mut text) = ([0; 40], [0; 48]);
    let mut number = itoa::Buffer::new();
    let bytes = b"/proc/self/task/".iter().chain(number.format(lwp).as_bytes()).chain(b"/stat");
    path.iter_mut().zip(bytes).for_each(|(place, &byte)| *place = byte);
    let length = read_proc(CStr::from_bytes_until_nul(&path).ok()?, &mut text).ok()?;
    // The name, in parentheses, has 15 bytes at most.
    let text = text.get(..length)?;
    let after_name = text.iter().rposition(|&byte| byte == b')')?;
    text.get(after_name + 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{sleep, thread_id};

    #[test]
    fn only_a_thread_that_sleeps_does_not_go_on() {
        let observe = |lwp| {
            let mut progress = Progress::default();
            (0..3 * LOOKS).any(|_| {
                sleep(1_000_000);
                progress.has_stopped(lwp)
            })
        };
        let (send, receive) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            send.send(thread_id()).unwrap();
            let _ = ended.recv();
        });
        let lwp = receive.recv().unwrap();
        while !observe(lwp) {}
        assert!(sleeps_since_noted(lwp));
        drop(end);
        sleeper.join().unwrap();
        assert!(!sleeps_since_noted(lwp));
        let me = thread_id();
        assert!(!std::thread::scope(|scope| {
            let observer = scope.spawn(|| observe(me));
            while !observer.is_finished() {
                std::hint::spin_loop();
            }
            observer.join().unwrap()
        }));
    }
}
