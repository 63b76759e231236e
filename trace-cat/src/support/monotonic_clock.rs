//! The clock of the records' times.

use std::fs;
use std::sync::LazyLock;

use rustix::time::{ClockId, clock_gettime};
use spec::info::monotonic_shift;

/// `CLOCK_MONOTONIC` of the initial time namespace, nanoseconds: the clock that the processes' offsets are for, whatever
/// namespace they or this program are in.
pub fn monotonic() -> u64 {
    static SHIFT: LazyLock<i64> = LazyLock::new(|| {
        fs::read("/proc/self/timens_offsets").ok().and_then(|text| monotonic_shift(&text)).unwrap_or(0)
    });
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64).saturating_add_signed(-*SHIFT)
}
