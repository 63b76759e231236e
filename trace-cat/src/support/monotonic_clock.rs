//! The clocks of the initial time namespace, whatever namespace this program is in.

use std::fs;
use std::sync::LazyLock;

use rustix::time::{ClockId, clock_gettime};
use spec::info::ClockShifts;

/// `CLOCK_MONOTONIC`, nanoseconds: the clock that the processes' offsets are for, whatever namespace they are in.
pub fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64).saturating_add_signed(-shifts().monotonic)
}

/// Whether a process that has this start time by `/proc/PID/stat` is the one for which another start time was `recorded`.
pub fn is_start_time(shown: u64, recorded: u64) -> bool {
    shifts().is_start_time(shown, recorded)
}

fn shifts() -> ClockShifts {
    static SHIFTS: LazyLock<ClockShifts> = LazyLock::new(|| {
        fs::read("/proc/self/timens_offsets").ok().and_then(|text| ClockShifts::parse(&text)).unwrap_or_default()
    });
    *SHIFTS
}
