//! Local time, by TZ or the system's setting. libc converts it: a crate for time zones would be a second copy of its data.

use std::fmt;

use spec::record::NANOS_PER_SECOND;

/// A local time, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    pub year: i32,
    pub month: i32,
    pub day: i32,
    pub hour: i32,
    pub minute: i32,
    pub second: i32,
    /// Seconds east of Greenwich.
    pub offset: i64,
}

impl LocalTime {
    /// The local time of a second since the Epoch.
    pub fn at(second: u64) -> LocalTime {
        let time = second as libc::time_t;
        // SAFETY: all bytes zero is a valid tm.
        let mut tm: libc::tm = unsafe { std::mem::zeroed() };
        // SAFETY: places for a time_t and a tm. Nobody changes the environment meanwhile.
        unsafe {
            libc::localtime_r(&time, &mut tm);
        }
        LocalTime {
            year: tm.tm_year.saturating_add(1900),
            month: tm.tm_mon + 1,
            day: tm.tm_mday,
            hour: tm.tm_hour,
            minute: tm.tm_min,
            second: tm.tm_sec,
            offset: tm.tm_gmtoff,
        }
    }

    /// `2026-11-20 +0100`.
    pub fn date(&self) -> String {
        let LocalTime { year, month, day, offset, .. } = *self;
        let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
        format!("{year:04}-{month:02}-{day:02} {sign}{:02}{:02}", minutes / 60, minutes % 60)
    }
}

/// A point in time, nanoseconds since the Epoch, as date and time of day: `2026-11-21 04:59:00.544763329`.
pub struct DateTime(pub u64);

impl fmt::Display for DateTime {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LocalTime { year, month, day, hour, minute, second, .. } = LocalTime::at(self.0 / NANOS_PER_SECOND);
        let nanoseconds = self.0 % NANOS_PER_SECOND;
        write!(out, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{nanoseconds:09}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_time_has_nine_digits_below_the_second() {
        // No time zone is more than a day off.
        let text = DateTime(1_795_174_740 * NANOS_PER_SECOND + 5).to_string();
        assert!(text.starts_with("2026-11-2") && text.ends_with(".000000005") && text.len() == 29, "{text}");
    }

    #[test]
    fn zones_east_and_west() {
        let mut local = LocalTime { year: 2026, month: 1, day: 2, hour: 3, minute: 4, second: 5, offset: 5400 };
        assert_eq!(local.date(), "2026-01-02 +0130");
        local.offset = -12_600;
        assert_eq!(local.date(), "2026-01-02 -0330");
    }
}
