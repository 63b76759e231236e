//! The column of the time.

use spec::record::NANOS_PER_SECOND;

use crate::options::TimeStyle;
use crate::support::local_time::LocalTime;

/// How times are shown, and what that needs to know of the lines before.
#[derive(Clone, Copy, Debug)]
pub struct TimeColumn {
    time: TimeStyle,
    /// The time of the first line for [`TimeStyle::Rel`], of the last for [`TimeStyle::Delta`].
    since: Option<u64>,
    /// For [`TimeStyle::Abs`], the last second that was shown, and its local time.
    second: Option<(u64, LocalTime)>,
}

/// Digits of seconds that have their place without moving what follows.
const SECONDS: usize = 3;
/// What a time takes with these.
const USUAL: usize = SECONDS + 10;

impl TimeColumn {
    /// Nothing was shown yet.
    pub fn new(time: TimeStyle) -> TimeColumn {
        TimeColumn { time, since: None, second: None }
    }

    /// Another line has this time, which is shown elsewhere.
    pub fn pass(&mut self, time: u64) {
        match self.time {
            TimeStyle::Rel => drop(self.since.get_or_insert(time)),
            TimeStyle::Delta => self.since = Some(time),
            TimeStyle::Abs => drop(self.second(time)),
        }
    }

    /// The local time, and that of the line before.
    fn second(&mut self, time: u64) -> (LocalTime, Option<LocalTime>) {
        let second = time / NANOS_PER_SECOND;
        let before = self.second;
        let now = match before {
            Some((known, local)) if known == second => local,
            _ => LocalTime::at(second),
        };
        self.second = Some((second, now));
        (now, before.map(|(_, local)| local))
    }

    /// Appends a line with the date, if it is wanted and has changed since the last line.
    pub fn date(&mut self, time: u64, out: &mut Vec<u8>) {
        if self.time != TimeStyle::Abs {
            return;
        }
        let (now, before) = self.second(time);
        let day = |local: LocalTime| (local.year, local.month, local.day, local.offset);
        if before.map(day) != Some(day(now)) {
            out.extend_from_slice(now.date().as_bytes());
            out.push(b'\n');
        }
    }

    /// Appends the time; returns how many columns more than usual it takes because the line before is long ago.
    pub fn put(&mut self, time: u64, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        match self.time {
            TimeStyle::Rel => {
                let since = *self.since.get_or_insert(time);
                seconds(time.saturating_sub(since), b' ', out);
            }
            TimeStyle::Delta => {
                let since = self.since.replace(time).unwrap_or(time);
                seconds(time.saturating_sub(since), b'+', out);
            }
            TimeStyle::Abs => {
                if let Some((_, LocalTime { hour, minute, second, .. })) = self.second {
                    let two = |number: i32| [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
                    let ([a, b], [c, d], [e, f]) = (two(hour), two(minute), two(second));
                    out.extend_from_slice(&[a, b, b':', c, d, b':', e, f]);
                }
                fraction(time % NANOS_PER_SECOND, out);
            }
        }
        if self.time == TimeStyle::Delta { out.len() - start - USUAL } else { 0 }
    }
}

/// A number of nanoseconds as seconds, with `sign` directly before it.
fn seconds(time: u64, sign: u8, out: &mut Vec<u8>) {
    let whole = time / NANOS_PER_SECOND;
    if whole < 10 {
        out.extend_from_slice(&[b' ', sign, b'0' + whole as u8]);
    } else {
        let mut digits = itoa::Buffer::new();
        let whole = digits.format(whole);
        out.resize(out.len() + SECONDS.saturating_sub(whole.len() + 1), b' ');
        out.push(sign);
        out.extend_from_slice(whole.as_bytes());
    }
    fraction(time % NANOS_PER_SECOND, out);
}

/// A point and nine digits.
fn fraction(nanoseconds: u64, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    // Ten digits, of which the first is a 1 that keeps the zeros.
    let digits = digits.format((NANOS_PER_SECOND + nanoseconds) as u32).as_bytes();
    let mut text: [u8; 10] = *digits.first_chunk().expect("ten digits");
    text[0] = b'.';
    out.extend_from_slice(&text);
}
