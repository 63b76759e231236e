//! The time at which recording stops, one for all threads: earlier records are kept, and later ones are only counted.
//!
//! Were threads to stop one by one, a release would be missing where the acquisition that it made possible is there. So
//! whoever stops the recording proposes a time a little ahead, makes all threads pass a barrier and then looks at the
//! clock. If the time is still ahead, no record that was made without regard to it has a later stamp: the time is
//! settled. Otherwise a later one is proposed. A record with a stamp later than a proposed time waits for it to be
//! settled, by doing the same. So nobody depends on the thread that began, which a signal handler's jump may take away.

use core::sync::atomic::Ordering::{AcqRel, Acquire};

use super::slot_table;
use crate::clock;
use crate::process_state::PROCESS;
use crate::sys::diagnostics::{Warning, warn};
use crate::sys::{self, Errno, observable_step};

/// How far ahead the first proposal is, and the last ones.
const AHEAD_NS: u64 = 100_000;
const AHEAD_MAX_NS: u64 = 20_000_000;

/// How often a thread waits for the stop time, up to `AHEAD_MAX_NS` each time: a clock that has gone back must not keep it for long.
const WAITS_MAX: u32 = 50;

/// A proposed or settled time, nanoseconds since the Epoch (the process may move to a time namespace with another clock), whose low bits are
/// replaced by the cause and whether it is settled.
#[derive(Clone, Copy)]
struct StopTime(u64);

const SETTLED: u64 = 1;
const CAUSE_AT: u32 = 1;
const LOW_BITS: u64 = 0x3ff;

impl StopTime {
    fn current() -> Option<StopTime> {
        // ORDERING: Acquire, so that the slot's words, read afterwards, are as they were left before the time was settled.
        match PROCESS.stop_time.load(Acquire) {
            0 => None,
            word => Some(StopTime(word)),
        }
    }

    fn new(time: u64, cause: Errno) -> StopTime {
        StopTime(time & !LOW_BITS | (cause.0 as u64) << CAUSE_AT & LOW_BITS)
    }

    /// The last time that is kept, nanoseconds since the Epoch.
    fn time(self) -> u64 {
        self.0 | LOW_BITS
    }

    fn cause(self) -> Errno {
        Errno(((self.0 & LOW_BITS) >> CAUSE_AT) as i32)
    }

    fn is_settled(self) -> bool {
        self.0 & SETTLED != 0
    }
}

/// The time now, as records have it.
fn now() -> u64 {
    clock::since_epoch(clock::now_fenced())
}

/// Proposes a time, unless there is one: recording stops because of `cause`. The caller settles it by [`settle`] before
/// it makes the next record.
pub fn propose(cause: Errno) {
    observable_step();
    let proposed = StopTime::new(now() + AHEAD_NS, cause);
    let _ = PROCESS.stop_time.compare_exchange(0, proposed.0, AcqRel, Acquire);
}

/// Settles a time that has been proposed, and reports it on stderr. Does nothing otherwise.
pub fn settle() {
    let mut ahead = AHEAD_NS;
    while let Some(proposed) = StopTime::current().filter(|time| !time.is_settled()) {
        slot_table::set_write_through(true);
        // ORDERING: a thread that took no notice of the proposal, because it had read the stop time or its flush
        // threshold before, passes the barrier after that, and has stamped its record before. So the stamp is not later
        // than the clock is after the barrier.
        sys::barrier();
        observable_step();
        let now = now();
        let next = match now <= proposed.time() {
            true => StopTime(proposed.0 | SETTLED),
            false => StopTime::new(now + ahead, proposed.cause()),
        };
        observable_step();
        let _ = PROCESS.stop_time.compare_exchange(proposed.0, next.0, AcqRel, Acquire);
        if next.is_settled() {
            report(next.cause());
        }
        ahead = (2 * ahead).min(AHEAD_MAX_NS);
    }
}

fn report(cause: Errno) {
    let reason: &[u8] = match cause.0 {
        libc::ENOSPC => b"the file system of the trace has less than 1 GiB free, or 5 % if that is less",
        _ => b"the trace has reached THR_TRACE_MAX",
    };
    warn(Warning::Stopped, &[reason, b"; recording stops"]);
}

/// The errno of the reason why recording stops or has stopped, if it does.
pub fn stopped() -> Option<Errno> {
    StopTime::current().map(StopTime::cause)
}

/// The errno of the reason why a record with the stamp `time`, nanoseconds since the Epoch, is not kept, if it is not.
pub fn refusal(time: u64) -> Option<Errno> {
    loop {
        observable_step();
        let stop = StopTime::current().filter(|stop| time > stop.time())?;
        if stop.is_settled() {
            return Some(stop.cause());
        }
        settle();
    }
}

/// Waits until the stop time has passed, so that this thread makes no further record for which there has to be room.
pub fn outlast() {
    for _ in 0..WAITS_MAX {
        let Some(stop) = StopTime::current() else { return };
        let now = now();
        if now <= stop.time() {
            sys::sleep((stop.time() - now + 1).min(AHEAD_MAX_NS) as i64);
        } else if stop.is_settled() {
            return;
        } else {
            settle();
        }
    }
}
