//! Points in time as a person writes them: `+1.5s`, `12:00:05.25`, `2026-11-21 12:00:05`, `1795174740.544763329`.

use std::mem::zeroed;
use std::time::{SystemTime, UNIX_EPOCH};

use spec::record::NANOS_PER_SECOND;

use crate::support::local_time::LocalTime;

const HOUR: u64 = 3600 * NANOS_PER_SECOND;

/// A point in time, as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePoint {
    /// Nanoseconds after the first record.
    After(u64),
    /// Nanoseconds since the Epoch.
    At(u64),
    /// Nanoseconds since midnight, local time, on the day of the first record or the next one.
    OfDay(u64),
    /// Year, month from 1, day, and nanoseconds since midnight, local time.
    OfDate(i32, i32, i32, u64),
    /// The time at which the command began.
    Now,
}

impl TimePoint {
    /// Parses a point in time. The error is a message that lists the possible forms.
    pub fn parse(text: &str) -> Result<TimePoint, String> {
        let parsed = || {
            if text == "now" {
                return Some(TimePoint::Now);
            }
            if let Some(duration) = text.strip_prefix('+') {
                return duration_of(duration).map(TimePoint::After);
            }
            match text.split_once(['T', ' ']) {
                Some((date, time)) => {
                    date_of(date).zip(time_of(time)).map(|((y, m, d), time)| TimePoint::OfDate(y, m, d, time))
                }
                None if text.contains('-') => {
                    date_of(text).map(|(year, month, day)| TimePoint::OfDate(year, month, day, 0))
                }
                // Two numbers with a colon are a time of day, unless the first is as long as the seconds of a record.
                None if text.find(':').is_some_and(|colon| colon < 9) => time_of(text).map(TimePoint::OfDay),
                // So few digits are hardly meant for the first three years after the Epoch: those have an @ before them.
                None if (1..9).contains(&text.bytes().take_while(u8::is_ascii_digit).count()) => None,
                None => fixed(&text.trim_start_matches('@').replace(':', "."), NANOS_PER_SECOND).map(TimePoint::At),
            }
        };
        parsed().ok_or_else(|| {
            let tip = match duration_of(text) {
                Some(_) => format!("\n\n  tip: from the start is '+{text}'"),
                None => String::new(),
            };
            format!(
                "a time is +1.5s (from the start; also ms, us, ns, m, h), 12:00:05.25, \"2026-11-21 12:00:05\", now, or seconds since \
                 the Epoch{tip}"
            )
        })
    }

    /// In nanoseconds since the Epoch, in a trace whose first record is at `start`.
    pub fn resolve(self, start: u64) -> u64 {
        match self {
            TimePoint::After(nanoseconds) => start.saturating_add(nanoseconds),
            TimePoint::At(nanoseconds) => nanoseconds,
            TimePoint::Now => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64),
            TimePoint::OfDate(year, month, day, nanoseconds) => on_day(year, month, day, nanoseconds),
            TimePoint::OfDay(nanoseconds) => {
                let LocalTime { year, month, day, .. } = LocalTime::at(start / NANOS_PER_SECOND);
                let today = on_day(year, month, day, nanoseconds);
                // The trace may run over midnight.
                if today.saturating_add(12 * HOUR) >= start { today } else { on_day(year, month, day + 1, nanoseconds) }
            }
        }
    }
}

/// The time that is this many nanoseconds after midnight, local time. The day may be after the month's last one.
fn on_day(year: i32, month: i32, day: i32, nanoseconds: u64) -> u64 {
    // SAFETY: all zeros are a valid tm; its pointer to a zone's name may be null.
    let mut tm: libc::tm = unsafe { zeroed() };
    (tm.tm_year, tm.tm_mon, tm.tm_mday) = (year - 1900, month - 1, day);
    (tm.tm_hour, tm.tm_min, tm.tm_isdst) =
        ((nanoseconds / HOUR) as i32, (nanoseconds / NANOS_PER_SECOND % 3600 / 60) as i32, -1);
    tm.tm_sec = (nanoseconds / NANOS_PER_SECOND % 60) as i32;
    // SAFETY: mktime reads and writes the tm that it is given.
    let seconds = unsafe { libc::mktime(&mut tm) };
    u64::try_from(seconds).unwrap_or(0).saturating_mul(NANOS_PER_SECOND).saturating_add(nanoseconds % NANOS_PER_SECOND)
}

/// A number with up to nine digits after its point, in units of `unit`, truncated to nanoseconds.
fn fixed(text: &str, unit: u64) -> Option<u64> {
    let (integer, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(integer) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let fraction = u128::from(fraction.parse::<u64>().ok()?) * u128::from(unit) / scale;
    integer.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(fraction as u64)
}

/// A duration with its unit, in nanoseconds. The error is a message that shows examples.
pub fn duration(text: &str) -> Result<u64, String> {
    let parsed = duration_of(text).filter(|_| text.ends_with(|last: char| last.is_ascii_alphabetic()));
    parsed.ok_or_else(|| "a duration is a number with a unit: 1ms, 2.5us, 800ns, 1s".to_owned())
}

fn duration_of(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(|byte: char| byte.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "" | "s" => NANOS_PER_SECOND,
        "ms" => 1_000_000,
        "us" => 1_000,
        "ns" => 1,
        "m" | "min" => 60 * NANOS_PER_SECOND,
        "h" => HOUR,
        _ => return None,
    };
    fixed(number, unit)
}

fn date_of(text: &str) -> Option<(i32, i32, i32)> {
    let mut fields = text.splitn(3, '-').map(|field| field.parse::<u16>().ok().map(i32::from));
    let (year, month, day) = (fields.next()??, fields.next()??, fields.next()??);
    let is_leap_year = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i32::from(is_leap_year),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    ((1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=days).contains(&day))
        .then_some((year, month, day))
}

fn time_of(text: &str) -> Option<u64> {
    let mut fields = text.splitn(3, ':');
    let (hours, minutes, seconds) = (fields.next()?, fields.next()?, fields.next().unwrap_or("0"));
    let (hours, minutes) = (hours.parse::<u8>().ok()?, minutes.parse::<u8>().ok()?);
    let seconds = fixed(seconds, NANOS_PER_SECOND)?;
    let valid = hours < 24 && minutes < 60 && seconds < 60 * NANOS_PER_SECOND;
    valid.then(|| u64::from(hours) * HOUR + u64::from(minutes) * 60 * NANOS_PER_SECOND + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form() {
        for (text, point) in [
            ("+1.5s", TimePoint::After(1_500_000_000)),
            ("now", TimePoint::Now),
            ("+2", TimePoint::After(2_000_000_000)),
            ("+0.25ms", TimePoint::After(250_000)),
            ("+7us", TimePoint::After(7_000)),
            ("+12ns", TimePoint::After(12)),
            ("+1.5m", TimePoint::After(90_000_000_000)),
            ("+1h", TimePoint::After(HOUR)),
            ("12:00:05.25", TimePoint::OfDay(12 * HOUR + 5_250_000_000)),
            ("23:59:59.000000001", TimePoint::OfDay(24 * HOUR - NANOS_PER_SECOND + 1)),
            ("7:30", TimePoint::OfDay(7 * HOUR + HOUR / 2)),
            ("2026-11-21", TimePoint::OfDate(2026, 11, 21, 0)),
            ("2028-02-29", TimePoint::OfDate(2028, 2, 29, 0)),
            ("2026-11-21T00:00:01", TimePoint::OfDate(2026, 11, 21, NANOS_PER_SECOND)),
            ("2026-11-21 23:59", TimePoint::OfDate(2026, 11, 21, 24 * HOUR - 60 * NANOS_PER_SECOND)),
            ("1795174740", TimePoint::At(1_795_174_740_000_000_000)),
            ("@12", TimePoint::At(12 * NANOS_PER_SECOND)),
            ("@1795174740.5", TimePoint::At(1_795_174_740_500_000_000)),
            ("1795174740:544763329", TimePoint::At(1_795_174_740_544_763_329)),
        ] {
            assert_eq!(TimePoint::parse(text), Ok(point), "{text}");
        }
    }

    #[test]
    fn durations_have_a_unit() {
        for (text, nanoseconds) in
            [("1ms", 1_000_000), ("2.5us", 2500), ("0ns", 0), ("1.000000001s", NANOS_PER_SECOND + 1)]
        {
            assert_eq!(duration(text), Ok(nanoseconds), "{text}");
        }
        for text in ["5", "", "ms", "1 ms", "-1ms", "+1ms", "1msec", "1e3us", "99999999999s"] {
            assert!(duration(text).unwrap_err().contains("2.5us"), "{text}");
        }
    }

    #[test]
    fn other_texts_are_errors() {
        for text in [
            "",
            "+",
            "+s",
            "+1x",
            "+1.2.3s",
            "+-1s",
            "-1s",
            "24:00",
            "12:60",
            "12",
            "1.4",
            "12:00:60",
            "2026-13-01",
            "2026-02-31",
            "2026-02-29",
            "2100-02-29",
            "2026-04-31 12:00",
            "2026-11-00",
            "2026-1",
            "x",
            "1.0123456789",
            "é",
        ] {
            assert!(TimePoint::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn days_are_those_of_the_trace() {
        let noon = TimePoint::OfDate(2026, 11, 21, 12 * HOUR).resolve(0);
        let start = noon + 11 * HOUR + HOUR / 2;
        assert_eq!(TimePoint::After(5).resolve(noon), noon + 5);
        assert_eq!(TimePoint::OfDay(12 * HOUR).resolve(noon + 5), noon);
        assert_eq!(TimePoint::OfDay(23 * HOUR + 5).resolve(start), noon + 11 * HOUR + 5);
        // Half past midnight is an hour after the start, not 23 hours before it.
        assert_eq!(TimePoint::OfDay(HOUR / 2).resolve(start), start + HOUR);
    }
}
