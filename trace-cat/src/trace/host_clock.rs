//! What the trinfos of a host show of its clock: lines `clock_error NS STATE PENDING LEAD SECONDS:NANOSECONDS`.

use spec::info;

/// One line: what was known of the clock at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockSample {
    state: ClockState,
    /// The most by which the wall clock was wrong, as the kernel knew it, nanoseconds.
    error: Option<u64>,
    /// What is to be added to the times of records for the true time, as far as the host knew it, nanoseconds.
    correction: i64,
}

/// What is known of a host's clock. The order is from the worst to the best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClockState {
    /// The trace has nothing about it.
    #[default]
    Unknown,
    /// The kernel was not asked, because a seccomp filter could have killed for the question.
    NotAsked,
    /// The kernel refused to answer.
    Refused,
    Unsynchronized,
    Synchronized,
}

impl ClockState {
    /// As in a trinfo, and in the table of hosts.
    pub fn name(self) -> &'static str {
        match self {
            ClockState::Unknown => "unknown",
            ClockState::NotAsked => "not_asked",
            ClockState::Refused => "refused",
            ClockState::Unsynchronized => "unsynchronized",
            ClockState::Synchronized => "synchronized",
        }
    }

    fn parse(name: &str) -> ClockState {
        let states = [ClockState::NotAsked, ClockState::Refused, ClockState::Unsynchronized, ClockState::Synchronized];
        states.into_iter().find(|state| state.name() == name).unwrap_or_default()
    }
}

/// What is known of a clock by all samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostClock {
    samples: Vec<ClockSample>,
}

impl HostClock {
    /// Adds the lines of a trinfo. `offset` is that of the clock of its directory: what is added to CLOCK_MONOTONIC.
    pub fn add(&mut self, trinfo: &[u8], offset: i64) {
        let lines = info::lines(trinfo).filter(|(key, _)| *key == b"clock_error");
        self.samples.extend(lines.filter_map(|(_, value)| sample(str::from_utf8(value).ok()?, offset)));
    }

    /// Adds the samples of another directory of the host.
    pub fn add_all(&mut self, other: &HostClock) {
        self.samples.extend_from_slice(&other.samples);
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    pub fn state(&self) -> ClockState {
        // Who was synchronised once and lost it has no bound for what follows.
        self.samples.iter().map(|sample| sample.state).min().unwrap_or_default()
    }

    /// What is to be added to CLOCK_MONOTONIC for the true time: in the middle between the least and the greatest sample.
    pub fn correction(&self) -> Option<i64> {
        let least = self.samples.iter().map(|sample| sample.correction).min()?;
        let greatest = self.samples.iter().map(|sample| sample.correction).max()?;
        Some(least.midpoint(greatest))
    }

    /// The most by which corrected times are wrong, as the host knew it; `None` if it is not known. Of a clock that is not
    /// synchronised the kernel's bound shows nothing: it ends at 16 seconds.
    pub fn error(&self) -> Option<u64> {
        let correction = self.correction().filter(|_| self.state() == ClockState::Synchronized)?;
        let error = |sample: &ClockSample| Some(sample.error?.saturating_add(sample.correction.abs_diff(correction)));
        self.samples.iter().map(error).collect::<Option<Vec<u64>>>()?.into_iter().max()
    }
}

/// A line that is damaged is none. Without the time behind it, it may be incomplete.
fn sample(value: &str, offset: i64) -> Option<ClockSample> {
    let words: Vec<&str> = value.split(' ').collect();
    let [error, state, pending, lead, time] = words[..] else { return None };
    let (seconds, nanoseconds) = time.split_once(':')?;
    seconds.parse::<u64>().ok().filter(|_| nanoseconds.len() == 9 && nanoseconds.parse::<u32>().is_ok())?;
    let pending: i64 = if pending == "-" { 0 } else { pending.parse().ok()? };
    let correction = offset.checked_add(lead.parse::<i64>().ok()?)?.checked_add(pending)?;
    Some(ClockSample { state: ClockState::parse(state), error: error.parse().ok(), correction })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(lines: &[&str]) -> HostClock {
        let mut clock = HostClock::default();
        clock.add(format!("format 1\n{}\nlost 0\n", lines.join("\n")).as_bytes(), 1_000_000);
        clock
    }

    #[test]
    fn the_error_of_all_samples_is_within_the_bound() {
        let start = "clock_error 500 synchronized 10 -20 0000000005:000000000";
        let end = "clock_error 700 synchronized 0 30 0000000006:000000000";
        let both = clock(&[start, end]);
        assert_eq!(
            (both.state(), both.correction(), both.error()),
            (ClockState::Synchronized, Some(1_000_010), Some(720))
        );
        assert_eq!((clock(&[start]).correction(), clock(&[start]).error()), (Some(999_990), Some(500)));
    }

    #[test]
    fn without_synchronisation_there_is_no_bound() {
        let start = "clock_error 500 synchronized 10 -20 0000000005:000000000";
        for (line, state) in [
            ("clock_error 16000000000 unsynchronized 0 0 0000000006:000000000", ClockState::Unsynchronized),
            ("clock_error - not_asked - 0 0000000006:000000000", ClockState::NotAsked),
            ("clock_error - refused - 0 0000000006:000000000", ClockState::Refused),
            ("clock_error 5 some_day 0 0 0000000006:000000000", ClockState::Unknown),
        ] {
            let both = clock(&[start, line]);
            assert_eq!((both.state(), both.error()), (state, None), "{line}");
        }
        assert_eq!(
            (clock(&[]).state(), clock(&[]).correction(), clock(&[]).error()),
            (ClockState::Unknown, None, None)
        );
    }

    #[test]
    fn an_incomplete_line_is_no_sample() {
        let line = "clock_error 500 synchronized 10 -20 0000000005:000000000";
        for length in 0..line.len() {
            assert_eq!(clock(&[&line[..length]]), HostClock::default(), "{length}");
        }
    }
}
