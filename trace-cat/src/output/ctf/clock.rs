//! The clock of the stream: the one of the records, which is CLOCK_MONOTONIC of a boot, if it is known.

use std::collections::BTreeMap;

use spec::info;
use spec::names::FileName;
use spec::record::NANOS_PER_SECOND;

use crate::trace::file_handle::read_info;
use crate::trace::file_names::{FileGroup, ProcessFiles};

/// The clock of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamClock {
    /// The time since the Epoch at which the clock was 0, nanoseconds.
    pub offset: u64,
    /// The boot in which it was 0; `None` if it was 0 at the Epoch.
    boot_id: Option<String>,
}

impl StreamClock {
    /// The clock that these groups of files share by their `trclock`. If they have several clocks, or if `start`, the earliest time,
    /// is before the boot, the time since the Epoch.
    pub fn of(groups: &[FileGroup], start: u64) -> StreamClock {
        let mut offsets = BTreeMap::new();
        for group in groups {
            let files = ProcessFiles { directory: group.directory.clone(), prefix: Vec::new(), number: 0 };
            let text = read_info(&files.path(FileName::Clock)).unwrap_or_default();
            let mut boot_id: &[u8] = &[];
            for (key, value) in info::lines(&text) {
                match key {
                    b"boot_id" => boot_id = value,
                    // The first entry of a boot counts.
                    b"offset" if is_boot_id(boot_id) => {
                        _ = offsets.entry(boot_id.to_owned()).or_insert(value.to_owned())
                    }
                    _ => {}
                }
            }
        }
        let known = offsets.pop_first().filter(|_| offsets.is_empty()).and_then(|(boot_id, offset)| {
            let offset = str::from_utf8(&offset).ok()?.parse().ok()?;
            Some(StreamClock { offset, boot_id: String::from_utf8(boot_id).ok() })
        });
        known.filter(|clock| clock.offset <= start).unwrap_or_default()
    }

    /// Its description. As LTTng does it, the boot ID stands for the clock: readers can put a trace of the same boot beside it.
    pub fn metadata(&self) -> String {
        let (seconds, nanoseconds) = (self.offset / NANOS_PER_SECOND, self.offset % NANOS_PER_SECOND);
        let (identity, absolute) = match &self.boot_id {
            Some(boot_id) => (format!("\tuuid = \"{boot_id}\";\n\tdescription = \"CLOCK_MONOTONIC\";\n"), "FALSE"),
            None => ("\tdescription = \"time since the Epoch\";\n".to_owned(), "TRUE"),
        };
        format!(
            "clock {{\n\tname = \"monotonic\";\n{identity}\tfreq = {NANOS_PER_SECOND};\n\toffset_s = {seconds};\n\toffset = {nanoseconds};\n\
             \tabsolute = {absolute};\n}};\n\n"
        )
    }
}

/// True if these bytes have the form of a UUID.
fn is_boot_id(bytes: &[u8]) -> bool {
    let is_digit = |(place, byte): (usize, &u8)| match place {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    bytes.len() == 36 && bytes.iter().enumerate().all(is_digit)
}
