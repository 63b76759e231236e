//! Whether another thread goes on: whoever waits for one that a signal handler has interrupted may be what the handler waits for.

use core::ffi::CStr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::decimal::decimal;
use super::open::read_proc;
use super::stat_line::stat_field;
use super::time::{monotonic, time_used_by};

/// How often in a row a thread has to be found asleep, without having used the processor, to be taken for one that does not go on.
const LOOKS: u32 = 5;
/// How much more often a thread has to be found asleep than not to be taken for one that does something else, where it has used the processor
/// a little in between: it waits for events, time after time.
const DOZES: u32 = 50;
/// The same as the first where it is not known whether the thread sleeps or waits for a processor or a disk.
const LOOKS_WITHOUT_PROC: u32 = 100;

/// For how much of its own processor time, in nanoseconds, a thread has to be seen, and how much of that in user mode, to be taken
/// for one that computes: none of this library's work takes so long there.
const OBSERVED: u64 = 300_000_000;
const COMPUTED: u64 = 200_000_000;

/// The thread that was found not to go on last, the processor time that it had used, and when that was.
static SLEEPER: AtomicU64 = AtomicU64::new(0);
static SLEEPER_USED: AtomicU64 = AtomicU64::new(0);
static SLEEPER_NOTED: AtomicU64 = AtomicU64::new(0);

/// A thread that uses the processor for less than this part of the time, and so many nanoseconds, still counts as asleep.
const AWAKE_PART: u64 = 4;
const AWAKE: u64 = 1_000_000;

/// What was observed of a thread, time after time.
#[derive(Default)]
pub struct Progress {
    /// How much more often it was found asleep than not, while it used the processor a little.
    dozes: u32,
    /// The processor time that it had used, nanoseconds.
    used: u64,
    /// How often it had used no more than the time before.
    looks: u32,
    /// The processor time that it had used at some time, and how much of that in user mode.
    before: Option<[u64; 2]>,
}

/// How a thread gets on that was meant to do some work of this library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// It may be at work.
    GoesOn,
    /// It does not go on, for now.
    Stopped,
    /// It does something else: it has left the work by a jump, or a signal handler has interrupted it that computes.
    Computes,
}

impl Progress {
    /// Observes the thread `lwp` once more, a while after the last time. That it has stopped is noted.
    pub fn observe(&mut self, lwp: u32) -> Pace {
        // Where the kernel cannot be asked the thread is waited for.
        let Ok(used) = time_used_by(lwp) else { return Pace::GoesOn };
        if used != self.used {
            (self.used, self.looks) = (used, 0);
            if self.has_dozed(lwp) {
                note_sleeper(lwp, used);
                return Pace::Stopped;
            }
            return if self.has_computed(lwp) { Pace::Computes } else { Pace::GoesOn };
        }
        self.looks += 1;
        let has_stopped = match Observed::of(lwp).map(|observed| observed.sleeps()) {
            Some(true) => self.looks >= LOOKS,
            // It waits for a processor or a disk.
            Some(false) => {
                self.looks = 0;
                false
            }
            None => self.looks >= LOOKS_WITHOUT_PROC,
        };
        if has_stopped {
            note_sleeper(lwp, used);
            return Pace::Stopped;
        }
        Pace::GoesOn
    }

    fn has_dozed(&mut self, lwp: u32) -> bool {
        let sleeps = Observed::of(lwp).is_some_and(|observed| observed.sleeps());
        self.dozes = if sleeps { self.dozes + 1 } else { self.dozes.saturating_sub(1) };
        self.dozes >= DOZES
    }

    fn has_computed(&mut self, lwp: u32) -> bool {
        if self.before.is_some_and(|[used, _]| self.used < used + OBSERVED) {
            return false;
        }
        let Some(in_user_mode) = Observed::of(lwp).map(|observed| observed.in_user_mode) else { return false };
        let before = self.before.replace([self.used, in_user_mode]);
        before.is_some_and(|[_, before]| in_user_mode >= before + COMPUTED)
    }
}

fn note_sleeper(lwp: u32, used: u64) {
    SLEEPER_NOTED.store(monotonic(), Relaxed);
    SLEEPER_USED.store(used, Relaxed);
    SLEEPER.store(lwp.into(), Relaxed);
}

/// For how many nanoseconds the thread has hardly used the processor since it was noted as one that does not go on; `None` if it was not, or
/// goes on.
pub fn asleep_since_noted(lwp: u32) -> Option<u64> {
    // ORDERING: Relaxed; words that do not belong together show another thread's time, and this one is observed anew, or goes without a record.
    if SLEEPER.load(Relaxed) != u64::from(lwp) {
        return None;
    }
    let used = time_used_by(lwp).ok()?.checked_sub(SLEEPER_USED.load(Relaxed))?;
    let asleep = monotonic().saturating_sub(SLEEPER_NOTED.load(Relaxed));
    (used <= AWAKE + asleep / AWAKE_PART).then_some(asleep)
}

/// What `/proc` shows of a thread.
struct Observed {
    /// The letter of its state, `R` or `S` for example.
    state: u8,
    /// The processor time that it has used in user mode, nanoseconds.
    in_user_mode: u64,
}

/// The unit of the times in `/proc`, nanoseconds (USER_HZ, include/asm-generic/param.h).
const TICK: u64 = 10_000_000;

impl Observed {
    /// It waits for something else than a processor or a disk, or is stopped by a signal or a debugger.
    fn sleeps(&self) -> bool {
        matches!(self.state, b'S' | b'T' | b't')
    }

    #[cold]
    #[inline(never)]
    fn of(lwp: u32) -> Option<Observed> {
        let (mut path, mut text) = ([0; 40], [0; 256]);
        let mut number = itoa::Buffer::new();
        let bytes = b"/proc/self/task/".iter().chain(number.format(lwp).as_bytes()).chain(b"/stat");
        path.iter_mut().zip(bytes).for_each(|(place, &byte)| *place = byte);
        let length = read_proc(CStr::from_bytes_until_nul(&path).ok()?, &mut text).ok()?;
        Observed::in_stat(text.get(..length)?)
    }

    fn in_stat(text: &[u8]) -> Option<Observed> {
        const STATE: usize = 3;
        const TICKS_IN_USER_MODE: usize = 14;
        let state = *stat_field(text, STATE)?.first()?;
        let ticks = decimal(stat_field(text, TICKS_IN_USER_MODE)?.iter());
        Some(Observed { state, in_user_mode: ticks * TICK })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{process_id, sleep, thread_exists, thread_id};

    #[test]
    fn what_proc_shows_of_a_thread_is_found_behind_its_name() {
        let of = |text: &[u8]| Observed::in_stat(text).map(|observed| (observed.state, observed.in_user_mode));
        let text = b"4711 (a) b (c) R 1 2 3 4 5 6 7 8 9 10 123 45 0 0 20 0 2 0 8";
        assert_eq!(of(text), Some((b'R', 1_230_000_000)));
        assert_eq!(of(b"4711 (abc) R 1 2 3"), None);
        assert_eq!(of(b""), None);
    }

    #[test]
    fn only_a_thread_that_sleeps_does_not_go_on() {
        let observe = |lwp| {
            let mut progress = Progress::default();
            (0..3 * LOOKS).any(|_| {
                sleep(1_000_000);
                progress.observe(lwp) == Pace::Stopped
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
        let first = asleep_since_noted(lwp).unwrap();
        sleep(1_000_000);
        assert!(asleep_since_noted(lwp).unwrap() >= first + 1_000_000);
        drop(end);
        sleeper.join().unwrap();
        // The kernel removes it a little later.
        while thread_exists(process_id(), lwp) {
            sleep(1_000_000);
        }
        assert_eq!(asleep_since_noted(lwp), None);
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
