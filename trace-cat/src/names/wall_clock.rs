//! A moment as the local wall clock showed it.

use spec::record::SECOND;

/// `time`, nanoseconds since the Epoch, as date and time of day where we are: `2026-11-21 04:59:00.544763329`.
pub fn wall_clock(time: u64) -> String {
    let seconds = (time / SECOND) as libc::time_t;
    // SAFETY: all bytes zero is a valid tm.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: localtime_r reads and writes the places it is given, and fails only for years beyond an int.
    unsafe { libc::localtime_r(&seconds, &mut parts) };
    let libc::tm { tm_year, tm_mon, tm_mday, tm_hour, tm_min, tm_sec, .. } = parts;
    format!(
        "{:04}-{:02}-{tm_mday:02} {tm_hour:02}:{tm_min:02}:{tm_sec:02}.{:09}",
        tm_year + 1900,
        tm_mon + 1,
        time % SECOND
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_nine_digits_below_the_second() {
        // Whatever the time zone: none is a year off.
        let text = wall_clock(1_795_174_740 * SECOND + 5);
        assert!(text.starts_with("2026-11-2") && text.ends_with(".000000005") && text.len() == 29, "{text}");
        assert_eq!(wall_clock(u64::MAX).len(), 29);
    }
}
