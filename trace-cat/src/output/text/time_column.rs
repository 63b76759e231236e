//! The column of the time.

use spec::record::NANOS_PER_SECOND;

use crate::options::TimeStyle;
use crate::support::local_time::{DateTime, LocalTime};

/// How times are shown, and the times of earlier lines on which that depends.
#[derive(Clone, Copy, Debug)]
pub struct TimeColumn {
    time: TimeStyle,
    /// The time that is 0 for [`TimeStyle::Rel`], that of the last line for [`TimeStyle::Delta`].
    since: Option<u64>,
    /// For [`TimeStyle::Rel`]: the time that is 0 is still to be printed, before the first line.
    has_header: bool,
    /// For [`TimeStyle::Abs`], the second of the last line, and its local time.
    second: Option<(u64, LocalTime)>,
    /// How many lines so far were headings: a date, or the time that is 0.
    pub headings: u64,
}

/// Columns of seconds, the sign included, that every line has.
const SECONDS_WIDTH: usize = 3;
/// Columns of a time whose seconds are not wider.
const USUAL_WIDTH: usize = SECONDS_WIDTH + 10;

impl TimeColumn {
    /// The column of the first line, whose time is 0 for [`TimeStyle::Rel`].
    pub fn new(time: TimeStyle) -> TimeColumn {
        TimeColumn { time, since: None, has_header: false, second: None, headings: 0 }
    }

    /// Makes `origin` the time that is 0 for [`TimeStyle::Rel`]. A line before the first one has it.
    pub fn begin(&mut self, origin: u64) {
        if self.time == TimeStyle::Rel {
            (self.since, self.has_header) = (Some(origin), true);
        }
    }

    /// Notes the time of a line without appending it: another thread writes the line.
    pub fn note_line(&mut self, time: u64) {
        self.has_header = false;
        match self.time {
            TimeStyle::Rel => drop(self.since.get_or_insert(time)),
            TimeStyle::Delta => self.since = Some(time),
            TimeStyle::Abs => drop(self.second(time)),
        }
    }

    /// The local time, and that of the line before. They have no fraction of a second.
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

    /// Appends a line with the date if the style is [`TimeStyle::Abs`] and the date differs from that of the last line; and
    /// before the first line one with the time that [`begin`](TimeColumn::begin) was given.
    pub fn put_date(&mut self, time: u64, out: &mut Vec<u8>) {
        if let Some(origin) = self.since.filter(|_| std::mem::take(&mut self.has_header)) {
            out.extend_from_slice(format!("times since {}\n", DateTime(origin)).as_bytes());
            self.headings += 1;
        }
        if self.time != TimeStyle::Abs {
            return;
        }
        let (now, before) = self.second(time);
        let day = |local: LocalTime| (local.year, local.month, local.day, local.offset);
        if before.map(day) != Some(day(now)) {
            out.extend_from_slice(now.date().as_bytes());
            out.push(b'\n');
            self.headings += 1;
        }
    }

    /// Appends the time. Returns how many columns more than usual it takes, as a long time since the line before does.
    pub fn put_time(&mut self, time: u64, out: &mut Vec<u8>) -> usize {
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
        if self.time == TimeStyle::Delta { out.len() - start - USUAL_WIDTH } else { 0 }
    }
}

/// Appends nanoseconds as seconds, with `sign` directly before the first digit.
fn seconds(time: u64, sign: u8, out: &mut Vec<u8>) {
    let seconds = time / NANOS_PER_SECOND;
    if seconds < 10 {
        out.extend_from_slice(&[b' ', sign, b'0' + seconds as u8]);
    } else {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(seconds);
        out.resize(out.len() + SECONDS_WIDTH.saturating_sub(digits.len() + 1), b' ');
        out.push(sign);
        out.extend_from_slice(digits.as_bytes());
    }
    fraction(time % NANOS_PER_SECOND, out);
}

/// Appends a point and nine digits.
fn fraction(nanoseconds: u64, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    // The first of the ten digits is a 1, which keeps the zeros.
    let digits = digits.format((NANOS_PER_SECOND + nanoseconds) as u32).as_bytes();
    let mut text: [u8; 10] = *digits.first_chunk().expect("ten digits");
    text[0] = b'.';
    out.extend_from_slice(&text);
}
