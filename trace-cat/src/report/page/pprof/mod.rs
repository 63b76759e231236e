//! `-F pprof`: contention as a profile for Go's pprof and what reads its files.
//!
//! As in Go's profiles of blocking, a sample has the stack of the wait as far as it was recorded, with counts of contentions and the delay. Labels have the
//! rest, for `-tagroot`, `-tagleaf` and `-tagfocus`. Mappings have build IDs and offsets in files, by which pprof finds symbols
//! that the report has not.

mod message;

use std::collections::HashMap;
use std::io::Write as _;
use std::ptr;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message as _;

use super::stacks::UNKNOWN_SITE;
use super::tables::thread_label;
use super::view::ReportView;
use crate::report::contention::{Holder, OTHER_SITES, ShareKey, SiteState, WaitCause, WaitSum};
use crate::report::trace_names::OTHER_SITES_NAME;
use crate::symbols::{CodeAddress, CodeFrame, CodeMap};
use message::{Function, Label, Location, Mapping, Profile, ProfileSample, SourceLine, ValueType};

/// Appends the profile.
pub fn append_profile(view: &ReportView, out: &mut Vec<u8>) {
    let profile = Builder::new(view).profile();
    let mut encoder = GzEncoder::new(out, Compression::default());
    encoder.write_all(&profile.encode_to_vec()).expect("memory takes all bytes");
    encoder.finish().expect("memory takes all bytes");
}

struct Builder<'a> {
    view: &'a ReportView<'a>,
    profile: Profile,
    texts: HashMap<String, i64>,
    mappings: HashMap<*const CodeMap, u64>,
    /// By process and address.
    locations: HashMap<(u32, u64, u64), u64>,
    /// By name and file.
    functions: HashMap<(i64, i64), u64>,
}

impl<'a> Builder<'a> {
    fn new(view: &'a ReportView<'a>) -> Builder<'a> {
        let (profile, texts) = (Profile::default(), HashMap::new());
        let (mappings, locations, functions) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut builder = Builder { view, profile, texts, mappings, locations, functions };
        builder.text("");
        builder
    }

    fn profile(mut self) -> Profile {
        let mut value_type = |kind, unit| ValueType { kind: self.text(kind), unit: self.text(unit) };
        let (contentions, delay) = (value_type("contentions", "count"), value_type("delay", "nanoseconds"));
        self.profile.sample_type = vec![contentions, delay];
        self.profile.default_sample_type = delay.kind;
        (self.profile.period_type, self.profile.period) = (Some(contentions), 1);
        let (start, end) = self.view.analysis.span.unwrap_or_default();
        (self.profile.time_nanos, self.profile.duration_nanos) = (signed(start), signed(end - start));
        self.add_programs();
        if let Some(shares) = &self.view.analysis.shares {
            let mut rows: Vec<(&ShareKey, &WaitSum)> = shares.rows.iter().collect();
            rows.sort_unstable_by_key(|(key, _)| **key);
            rows.into_iter().for_each(|(key, sum)| self.add_row(key, sum));
            if shares.others.waits > 0 || shares.others.time > 0 {
                let stack = self.locations(0);
                self.add_sample(stack, &shares.others, Vec::new());
            }
        }
        self.profile
    }

    /// Adds the code of the first program, because the first mapping gives a profile its name.
    fn add_programs(&mut self) {
        let Some(process) = self.view.analysis.processes.first() else { return };
        let program = self.view.recorded.get(&process.pid).and_then(|recorded| recorded.program(process.image));
        if let Some(map) = program.and_then(|program| program.maps.first()) {
            self.mapping(map);
        }
    }

    fn add_row(&mut self, key: &ShareKey, sum: &WaitSum) {
        let view = self.view;
        let thread = view.thread(key.thread);
        let object = view.object_label(key.object);
        let mut labels = vec![
            self.label("process", &view.program_label(thread.process)),
            self.label("thread", &thread_label(view, key.thread)),
            self.label("object", &object),
        ];
        match key.cause {
            WaitCause::Held(Holder { site, .. }) | WaitCause::HeldFrom(site) => {
                let holder = match key.cause {
                    WaitCause::Held(holder) => thread_label(view, holder.thread),
                    _ => "[one of many threads]".to_owned(),
                };
                labels.push(self.label("holder", &holder));
                let place = view.place(site).unwrap_or_else(|| UNKNOWN_SITE.to_owned());
                labels.push(self.label("holder_site", &place));
            }
            WaitCause::Handoff => labels.push(self.label("holder", "[handoff]")),
            WaitCause::Unknown => labels.push(self.label("holder", "[unknown]")),
        }
        let stack = self.locations(key.site);
        self.add_sample(stack, sum, labels);
    }

    fn add_sample(&mut self, location_id: Vec<u64>, sum: &WaitSum, label: Vec<Label>) {
        let value = vec![signed(sum.waits), signed(sum.time)];
        self.profile.sample.push(ProfileSample { location_id, value, label });
    }

    fn label(&mut self, key: &str, text: &str) -> Label {
        Label { key: self.text(key), text: self.text(text) }
    }

    fn text(&mut self, text: &str) -> i64 {
        if let Some(&index) = self.texts.get(text) {
            return index;
        }
        let index = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_owned());
        self.texts.insert(text.to_owned(), index);
        index
    }

    /// The locations of a site's stack, the innermost first.
    fn locations(&mut self, site: u32) -> Vec<u64> {
        let sites = &self.view.analysis.sites;
        let SiteState { process, time, .. } = sites.sites[site as usize];
        let addresses = sites.stack(site).addresses;
        if addresses.is_empty() {
            return vec![self.location(process, 0, time)];
        }
        addresses.into_iter().map(|address| self.location(process, address, time)).collect()
    }

    /// The location of a return address at a time; 0 stands for a site that is not known, and another number for all that are not
    /// kept. Its address is in the call instruction, which ends before the return address.
    fn location(&mut self, process: u32, address: u64, time: u64) -> u64 {
        let since = self.view.names().unchanged_since(process, address, time);
        if let Some(&id) = self.locations.get(&(process, address, since)) {
            return id;
        }
        let view = self.view;
        let code = (address > OTHER_SITES).then(|| view.code(process, address, time));
        let mapping_id = if let Some(CodeAddress::InFile(map, _)) = code { self.mapping(map) } else { 0 };
        let id = self.profile.location.len() as u64 + 1;
        let frames = code.map(|code| view.symbols.call_frames(code)).unwrap_or_default();
        let mut line: Vec<SourceLine> = frames.iter().map(|frame| self.line(frame)).collect();
        if mapping_id == 0 && line.is_empty() {
            let other = if address == 0 { UNKNOWN_SITE } else { OTHER_SITES_NAME };
            let function = code.map_or(other.to_owned(), |code| view.symbols.call_name(code));
            line.push(self.line(&CodeFrame { function, ..CodeFrame::default() }));
        }
        self.profile.location.push(Location { id, mapping_id, address: address.saturating_sub(1), line });
        self.locations.insert((process, address, since), id);
        id
    }

    fn line(&mut self, frame: &CodeFrame) -> SourceLine {
        let key = (self.text(&frame.function), self.text(frame.file.as_deref().unwrap_or("")));
        let next = self.profile.function.len() as u64 + 1;
        let function_id = *self.functions.entry(key).or_insert(next);
        if function_id == next {
            self.profile.function.push(Function { id: next, name: key.0, filename: key.1 });
        }
        SourceLine { function_id, line: frame.line.unwrap_or(0).into() }
    }

    fn mapping(&mut self, map: &'a CodeMap) -> u64 {
        if let Some(&id) = self.mappings.get(&ptr::from_ref(map)) {
            return id;
        }
        let id = self.profile.mapping.len() as u64 + 1;
        let build_id = self.text(map.build_id.as_deref().unwrap_or(""));
        let filename = self.text(&map.path.to_string_lossy());
        let (memory_start, memory_limit, file_offset) = (map.start, map.end, map.offset);
        self.profile.mapping.push(Mapping { id, memory_start, memory_limit, file_offset, filename, build_id });
        self.mappings.insert(map, id);
        id
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;
    use crate::report::page::sample_view::{INFO, SampleView, WAITS};

    fn profile(info: &str) -> Profile {
        profile_of(WAITS, info)
    }

    fn profile_of(lines: &str, info: &str) -> Profile {
        let sample = SampleView::new(lines, info);
        let (mut bytes, mut message) = (Vec::new(), Vec::new());
        append_profile(&sample.view(), &mut bytes);
        GzDecoder::new(&bytes[..]).read_to_end(&mut message).unwrap();
        Profile::decode(&message[..]).unwrap()
    }

    #[test]
    fn a_profile_has_the_delays_with_sites_and_labels() {
        let profile = profile(INFO);
        let text = |index: i64| profile.string_table[index as usize].as_str();
        let types: Vec<_> = profile.sample_type.iter().map(|kind| (text(kind.kind), text(kind.unit))).collect();
        assert_eq!(types, [("contentions", "count"), ("delay", "nanoseconds")]);
        assert_eq!((text(0), text(profile.default_sample_type), profile.duration_nanos), ("", "delay", 80));
        let [mapping] = &profile.mapping[..] else { panic!("{profile:?}") };
        assert_eq!((mapping.memory_start, mapping.memory_limit, mapping.file_offset), (0x1000, 0x2000, 0x500));
        assert_eq!((text(mapping.filename), text(mapping.build_id)), ("/bin/a b", "0a0b0c"));
        let locations: Vec<_> = profile.location.iter().map(|place| (place.mapping_id, place.address)).collect();
        assert_eq!(locations, [(1, 0x15ff), (0, 0)]);
        assert_eq!(text(profile.function[profile.location[1].line[0].function_id as usize - 1].name), UNKNOWN_SITE);
        let samples: Vec<String> = profile
            .sample
            .iter()
            .map(|sample| {
                let labels = sample.label.iter().map(|label| format!("{}={}", text(label.key), text(label.text)));
                format!("{:?} {:?} {}", sample.location_id, sample.value, labels.collect::<Vec<_>>().join(" "))
            })
            .collect();
        let expected = [
            "[1] [1, 25] process=a b (1) thread=1/2 object=mutex first used in a b+0xa00 0x10 holder=1/1 holder_site=a b+0xa00",
            "[1] [0, 5] process=a b (1) thread=1/2 object=mutex first used in a b+0xa00 0x10 holder=[handoff]",
            "[2] [1, 15] process=a b (1) thread=1/3 object=mutex first used in a b+0xa00 0x10 holder=1/1 holder_site=a b+0xa00",
            "[2] [0, 10] process=a b (1) thread=1/3 object=mutex first used in a b+0xa00 0x10 holder=1/2 holder_site=a b+0xb00",
            "[2] [0, 5] process=a b (1) thread=1/3 object=mutex first used in a b+0xa00 0x10 holder=[handoff]",
        ];
        assert_eq!(samples, expected);
    }

    #[test]
    fn a_sample_has_the_recorded_stack() {
        let stack = "20:2:00:03:1:0x1600:0x1700:0x1800:0:0\n";
        let profile = profile_of(&WAITS.replace("20:2:02", &format!("{stack}20:2:02")), INFO);
        let addresses =
            |ids: &[u64]| ids.iter().map(|id| profile.location[*id as usize - 1].address).collect::<Vec<_>>();
        assert_eq!(addresses(&profile.sample[0].location_id), [0x15ff, 0x16ff, 0x17ff]);
        assert_eq!(profile.sample.len(), 5);
    }

    #[test]
    fn sites_outside_of_files_are_functions() {
        let profile = profile("format 1\npid 1\nexe /bin/a\n");
        let names = profile.function.iter().map(|function| profile.string_table[function.name as usize].as_str());
        assert_eq!((names.collect::<Vec<_>>(), profile.mapping.len()), (vec!["0x1600", UNKNOWN_SITE], 0));
    }
}
