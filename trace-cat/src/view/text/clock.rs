//! The column of the time.

use spec::record::SECOND;

use crate::args::Time;
use crate::local_time::Local;

/// How times are shown, and what that needs to know of the lines before.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    time: Time,
    /// The time of the first line for [`Time::Rel`], of the last for [`Time::Delta`].
    since: Option<u64>,
    /// For [`Time::Abs`], the last second that was shown, and its local time.
    second: Option<(u64, Local)>,
}

/// Digits of seconds that have their place without moving what follows.
const SECONDS: usize = 3;

impl Clock {
    /// Nothing was shown yet.
    pub fn new(time: Time) -> Clock {
        Clock { time, since: None, second: None }
    }

    /// Appends a line with the date, if it is wanted and has changed since the last line.
    pub fn date(&mut self, time: u64, out: &mut Vec<u8>) {
        if self.time != Time::Abs {
            return;
        }
        let second = time / SECOND;
        let before = self.second.map(|(_, local)| local);
        if self.second.is_none_or(|(known, _)| known != second) {
            self.second = Some((second, Local::at(second)));
        }
        let Some((_, now)) = self.second else { return };
        let day = |local: Local| (local.year, local.month, local.day, local.offset);
        if before.map(day) != Some(day(now)) {
            out.extend_from_slice(now.date().as_bytes());
            out.push(b'\n');
        }
    }

    /// Appends the time; returns how many columns it takes.
    pub fn put(&mut self, time: u64, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        match self.time {
            Time::Rel => {
                let since = *self.since.get_or_insert(time);
                seconds(time.saturating_sub(since), b' ', out);
            }
            Time::Delta => {
                let since = self.since.replace(time).unwrap_or(time);
                seconds(time.saturating_sub(since), b'+', out);
            }
            Time::Abs => {
                if let Some((_, Local { hour, minute, second, .. })) = self.second {
                    for (number, end) in [(hour, b':'), (minute, b':'), (second, b'.')] {
                        out.extend_from_slice(&[b'0' + (number / 10) as u8, b'0' + (number % 10) as u8, end]);
                    }
                }
                nanoseconds(time % SECOND, out);
            }
        }
        out.len() - start
    }
}

/// A number of nanoseconds as seconds, with `sign` directly before it.
fn seconds(time: u64, sign: u8, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let whole = digits.format(time / SECOND);
    out.resize(out.len() + SECONDS.saturating_sub(whole.len() + 1), b' ');
    out.push(sign);
    out.extend_from_slice(whole.as_bytes());
    out.push(b'.');
    nanoseconds(time % SECOND, out);
}

/// Nine digits.
fn nanoseconds(number: u64, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    // Ten digits, of which the first is a 1 that keeps the zeros.
    out.extend_from_slice(&digits.format(SECOND + number).as_bytes()[1..]);
}
