//! How much each value of `--for` would have written of what was recorded.
//!
//! The beginning of each thread's text is read, and stands for all of it.

use std::io;

use indicatif::DecimalBytes;
use spec::tables::FUTEX;
use spec::{Event, Level};

use crate::calls::pairing::{CallKey, OpenCalls};
use crate::calls::wait_rules::{WaitRule, wait_rules};
use crate::options::{FLIGHT_RING, Purpose, Recording, RecordingLevel, is_unnoticed};
use crate::record::columns;
use crate::record::event_table::EventTable;
use crate::trace::record_text::RecordText;

/// How much of a trace is read at most, bytes; each text has its share.
const SAMPLE_MAX: u64 = 128 << 20;
/// How much of a text is read at least, if it has that much.
const SAMPLE_OF_TEXT: u64 = 256 << 10;
/// By how many bytes a return address is longer than the 0 that stands there without THR_TRACE_DETAIL.
const ADDRESS_EXCESS: u64 = 13;
/// From this size of the trace on, in bytes, sizes are printed also if nobody has asked.
const PRINTED_FROM: u64 = 1 << 20;

/// Bytes that the values of `--for` would have written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurposeSizes {
    contention: u64,
    timeline: u64,
    everything: u64,
    flight: u64,
}

/// Whether a call is recorded at level blocked.
#[derive(Clone, Copy, Debug, Default)]
enum BlockedRule {
    #[default]
    Always,
    Never,
    /// If it waited.
    Waited,
    /// If this column of its first record is not 0.
    NotZero(u8),
}

impl BlockedRule {
    fn of(event: &Event) -> BlockedRule {
        // A recursive mutex's unlock does not tell of waiters; they are rare.
        let named = |name| {
            let columns = event.kinds[0].columns;
            let index = columns.iter().position(|column| column.is_some_and(|column| column.name == name));
            index.map_or(BlockedRule::Never, |index| BlockedRule::NotZero(index as u8))
        };
        match event.kinds[0].level {
            Level::Always => BlockedRule::Always,
            Level::Never => BlockedRule::Never,
            Level::Blocked => BlockedRule::Waited,
            Level::Failed => named("rval"),
            // How many a futex has woken is in its result.
            Level::Waiters if event.category == FUTEX => named("result"),
            Level::Waiters => named("waiters?"),
        }
    }
}

impl PurposeSizes {
    /// The sizes for the trace that has these texts.
    pub fn of(texts: &[impl AsRef<RecordText>]) -> PurposeSizes {
        let sizes = |text: &RecordText| text.size(0..text.end());
        let total: u64 = texts.iter().map(|text| sizes(text.as_ref())).sum();
        let mut all = PurposeSizes::default();
        let rules = Rules { blocked: EventTable::new(blocked_rule), waits: wait_rules() };
        for text in texts.iter().map(AsRef::as_ref) {
            let size = sizes(text);
            let share = (u128::from(SAMPLE_MAX) * u128::from(size) / u128::from(total.max(1))) as u64;
            let mut sample =
                Sample { rules: &rules, read: 0, timeline: 0, contention: 0, open_calls: OpenCalls::default() };
            // A text that cannot be read is reported when the trace is printed.
            let _ = sample.read(text, share.max(SAMPLE_OF_TEXT));
            let [read, timeline, contention] = sample.finish();
            let scaled = |bytes: u64| (u128::from(bytes) * u128::from(size) / u128::from(read.max(1))) as u64;
            all.everything += size;
            all.timeline += scaled(timeline);
            all.contention += scaled(contention);
            all.flight += size.min(FLIGHT_RING);
        }
        all
    }

    /// Whether sizes are known of a trace of `bytes` bytes if this was recorded, and are new and worth telling.
    pub fn are_printed(recording: &Recording, bytes: u64) -> bool {
        let is_cut = recording.max.is_some() || is_set("THR_TRACE_MAX");
        let is_everything = !lacks_events(recording) && lacks_calls(recording).is_none() && bytes >= PRINTED_FROM;
        !is_cut && (is_everything || recording.purpose.is_some())
    }

    /// What is known of the sizes if this was recorded, and why no more is.
    pub fn describe(&self, recording: &Recording) -> String {
        let unknown = lacks_calls(recording);
        let is_of = |purpose| recording.purpose == Some(purpose);
        // What is there is all that this purpose writes.
        let own = |purpose, size: u64| if unknown.is_some() && is_of(purpose) { self.everything } else { size };
        let has_everything = !lacks_events(recording) || is_of(Purpose::Everything);
        let all = [
            ("everything", self.everything, unknown.is_none() && has_everything),
            ("timeline", self.timeline, unknown.is_none()),
            ("contention", own(Purpose::Contention, self.contention), unknown.is_none() || is_of(Purpose::Contention)),
            ("flight", own(Purpose::Flight, self.flight), unknown.is_none() || is_of(Purpose::Flight)),
        ];
        let known = all.into_iter().filter(|(_, _, is_known)| *is_known);
        // How long stacks are is not known where none was recorded.
        let more = |name| if name == "contention" && unknown.is_none() { " and stacks" } else { "" };
        let sizes: Vec<String> =
            known.map(|(name, size, _)| format!("{name} {}{}", DecimalBytes(size), more(name))).collect();
        let why = unknown.map(|why| format!("; not known of the others: {why}")).unwrap_or_default();
        sizes.join(", ") + &why
    }
}

/// Why calls were not recorded that other values of `--for` record.
fn lacks_calls(recording: &Recording) -> Option<&'static str> {
    if recording.ring.is_some() || is_set("THR_TRACE_RING") {
        Some("a ring keeps only the newest records")
    } else if recording.level.map_or_else(is_blocked_by_environment, |level| level == RecordingLevel::Blocked) {
        Some("calls that did not wait were not recorded")
    } else {
        None
    }
}

/// Whether a variable of the environment is set and not empty.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn is_blocked_by_environment() -> bool {
    std::env::var_os("THR_TRACE_LEVEL").is_some_and(|level| level == "blocked")
}

/// Whether only some events were recorded.
fn lacks_events(recording: &Recording) -> bool {
    !recording.events.is_empty() || is_set("THR_TRACE_EVENTS")
}

fn blocked_rule(category: u8, number: u8) -> BlockedRule {
    Event::find(category, number).map_or(BlockedRule::Always, BlockedRule::of)
}

struct Rules {
    blocked: EventTable<BlockedRule>,
    waits: EventTable<WaitRule>,
}

/// The part of a text that is read.
struct Sample<'a> {
    rules: &'a Rules,
    read: u64,
    timeline: u64,
    contention: u64,
    open_calls: OpenCalls<DetailedEntry>,
}

/// What is needed of an entry record; `length` is with its return address.
struct DetailedEntry {
    time: u64,
    length: u64,
    shows_wait: bool,
}

impl Sample<'_> {
    /// Reads the lines in the first `most` bytes.
    fn read(&mut self, text: &RecordText, most: u64) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 20];
        let mut place = 0;
        while let Some(stretch) = text.stretch(place).filter(|_| self.read < most) {
            place = stretch.start;
            let mut begun = 0;
            while place < stretch.end && self.read < most {
                let length = text.read_at(&mut buffer[begun..], place)?;
                place += length as u64;
                let filled = begun + length;
                let end = memchr::memrchr(b'\n', &buffer[..filled]).map_or(0, |newline| newline + 1);
                columns::lines(&buffer[..end]).for_each(|line| self.take(line));
                self.read += end as u64;
                buffer.copy_within(end..filled, 0);
                // A line without an end is no record.
                begun = if filled - end == buffer.len() { 0 } else { filled - end };
            }
        }
        Ok(())
    }

    fn take(&mut self, line: &[u8]) {
        let event = columns::event(line);
        let (category, number, which) = event;
        let length = line.len() as u64;
        if !is_unnoticed(category, number) {
            self.timeline += length;
        }
        let rule = self.rules.waits.get(category, number);
        let has_address = which == 2 || columns::argument(line, 4) != b"0";
        let detailed = length + if has_address { 0 } else { ADDRESS_EXCESS };
        self.contention += match self.rules.blocked.get(category, number) {
            BlockedRule::Always => detailed,
            BlockedRule::Never => 0,
            BlockedRule::NotZero(index) if columns::argument(line, usize::from(index)) == b"0" => 0,
            BlockedRule::NotZero(_) => detailed,
            BlockedRule::Waited => {
                let shows_wait = rule.record_shows_wait(which, line);
                let (call, time) = (CallKey::of(line, event), columns::time(line).unwrap_or(0));
                if which == 1 {
                    self.open_calls.begin(call, DetailedEntry { time, length: detailed, shows_wait });
                    0
                } else {
                    let entry = self.open_calls.end(call);
                    let waited = entry.as_ref().is_some_and(|entry| {
                        rule.waited(entry.shows_wait, shows_wait, time.saturating_sub(entry.time))
                    });
                    if waited { detailed + entry.map_or(0, |entry| entry.length) } else { 0 }
                }
            }
        };
    }

    /// The bytes that were read, and how many of them a timeline and a trace of contention have. Open calls wait.
    fn finish(self) -> [u64; 3] {
        let open: u64 = self.open_calls.into_open_calls().into_iter().map(|(_, entry)| entry.length).sum();
        [self.read, self.timeline, self.contention + open]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::{record, text_of};

    fn sizes(lines: &[String]) -> PurposeSizes {
        let (_trace, text) = text_of(lines.concat().as_bytes());
        PurposeSizes::of(&[text])
    }

    #[test]
    fn each_purpose_has_what_it_records() {
        let line = |time, event| record(time, 1, event, 5);
        let length = line(1, "02:04:0").len() as u64;
        let waited = record(4, 1, "02:02:2", 0).replace(":0:0:0:0:0\n", ":0:1:0:0:0\n");
        // thr_self; a lock at once and its unlock; a lock that waited; one that does so still.
        let lines = ["01:04:0", "02:02:1", "02:02:2", "02:04:0", "02:02:1"].map(|event| line(1, event));
        let mut lines = Vec::from(lines);
        lines.extend([waited, line(5, "02:02:1")]);
        let all = sizes(&lines);
        assert_eq!((all.everything, all.flight), (7 * length, 7 * length));
        assert_eq!(all.timeline, 6 * length, "without thr_self");
        assert_eq!(all.contention, 3 * length + 2 * ADDRESS_EXCESS, "the second lock and the last");
    }

    #[test]
    fn a_ring_has_its_size() {
        let lines: Vec<String> = (0..20_000).map(|time| record(time, 1, "02:04:0", 5)).collect();
        let all = sizes(&lines);
        assert!(all.everything > FLIGHT_RING);
        assert_eq!((all.flight, all.timeline), (FLIGHT_RING, all.everything));
    }

    #[test]
    fn sizes_are_printed_where_they_are_known() {
        let sizes =
            PurposeSizes { contention: 1_000_000, timeline: 2_000_000, everything: 3_000_000, flight: 4_000_000 };
        let of = |purpose| Recording { purpose, ..Recording::default() }.for_purpose();
        let all = "everything 3.00 MB, timeline 2.00 MB, contention 1.00 MB and stacks, flight 4.00 MB";
        let told = |purpose, bytes| {
            let recording = of(purpose);
            PurposeSizes::are_printed(&recording, bytes).then(|| sizes.describe(&recording))
        };
        assert_eq!(told(None, 3_000_000).as_deref(), Some(all));
        assert_eq!(told(None, 9), None);
        assert_eq!(told(Some(Purpose::Everything), 9).as_deref(), Some(all));
        assert_eq!(told(Some(Purpose::Timeline), 9).as_deref(), all.strip_prefix("everything 3.00 MB, "));
        let contention = "contention 3.00 MB; not known of the others: calls that did not wait were not recorded";
        assert_eq!(told(Some(Purpose::Contention), 9).as_deref(), Some(contention));
        let flight = "flight 3.00 MB; not known of the others: a ring keeps only the newest records";
        assert_eq!(told(Some(Purpose::Flight), 9).as_deref(), Some(flight));
        let ring = Recording { ring: Some(1 << 20), ..Recording::default() };
        assert!(!PurposeSizes::are_printed(&ring, 3_000_000), "no purpose was named");
    }
}
