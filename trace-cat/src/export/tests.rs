//! What viewers get of random programs, against the report's own figures.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde_json::Value;

use super::chrome::ChromeTimeline;
use super::perfetto::PerfettoTimeline;
use super::sink::TimelineSink;
use super::{EventSelection, NameSources, TimelineExport};
use crate::options::Selection;
use crate::report::contention::random_threads::RandomThreads;
use crate::report::contention::{Analysis, DurationHistogram, NumericRecord, WaitSelection};
use crate::symbols::Symbolizer;
use crate::testing::seeded_random::SeededRandom;
use crate::trace::interned_names::InternedNames;

/// Counts and sums of slices, by category and by the address of the object.
type Sums = BTreeMap<(String, String), (u64, u64)>;

fn selection(times: &Range<u64>) -> WaitSelection {
    WaitSelection { times: times.clone(), ..WaitSelection::default() }
}

fn no_names() -> NameSources {
    NameSources {
        recorded: HashMap::new(),
        symbols: Symbolizer::new(Vec::new(), &[]),
        interned: InternedNames::default(),
        objects: RefCell::default(),
    }
}

/// The records in a format.
fn exported(
    records: &[NumericRecord],
    waits: WaitSelection,
    selection: &Selection,
    sink: Box<dyn TimelineSink>,
) -> Vec<u8> {
    let analysis = Analysis::new(HashMap::new(), waits);
    let mut export = TimelineExport::new(analysis, EventSelection::new(selection), no_names(), sink);
    let mut out = Vec::new();
    for record in records {
        export.add(record, &mut out).unwrap();
    }
    let write = &mut |bytes: &[u8]| {
        out.extend_from_slice(bytes);
        Ok(())
    };
    export.finish(&[], write).unwrap();
    out
}

/// The packets of a trace that grows, in which the beginnings of what goes on are written now and then; and how many bytes these have.
fn exported_with_moments(records: &[NumericRecord], waits: WaitSelection) -> (Vec<u8>, usize) {
    let analysis = Analysis::new(HashMap::new(), waits);
    let selection = EventSelection::new(&Selection::default());
    let sink = Box::<PerfettoTimeline>::default();
    let mut export = TimelineExport::new(analysis, selection, no_names(), sink);
    let (mut out, mut begun) = (Vec::new(), 0);
    for (number, record) in records.iter().enumerate() {
        if number % 7 == 6 {
            let before = out.len();
            export.append_open(record.time, &mut out);
            begun += out.len() - before;
        }
        export.add(record, &mut out).unwrap();
    }
    let write = &mut |bytes: &[u8]| {
        out.extend_from_slice(bytes);
        Ok(())
    };
    export.finish(&[], write).unwrap();
    (out, begun)
}

/// What the report has of the records, and how many waits somebody ended.
fn reported(records: &[NumericRecord], times: &Range<u64>) -> (Sums, u64) {
    let mut analysis = Analysis::new(HashMap::new(), selection(times));
    records.iter().for_each(|record| analysis.add(record));
    analysis.finish(&[]);
    let mut sums = Sums::new();
    for object in analysis.objects.iter() {
        let mut add = |category: &str, histogram: &DurationHistogram| {
            if histogram.count() > 0 {
                let sum = sums.entry((category.to_owned(), format!("{:#x}", object.address))).or_default();
                *sum = (sum.0 + histogram.count(), sum.1 + histogram.sum());
            }
        };
        add("wait", &object.figures.wait);
        add("hold", &object.figures.hold);
    }
    (sums, analysis.objects.iter().flat_map(|object| object.figures.wakers.in_order()).map(|(_, count)| count).sum())
}

/// A field of a protobuf message.
#[derive(Clone, Debug)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, by a decoder of its own.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 127) << shift;
            shift += 7;
            if byte < 128 {
                return value;
            }
        }
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(number.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(inner)
            }
            wire_type => panic!("wire type {wire_type}"),
        };
        found.push((key >> 3, field));
    }
    found
}

fn numbers(fields: &[(u64, Field)], tag: u64) -> impl Iterator<Item = u64> {
    fields.iter().filter_map(move |(found, field)| match field {
        Field::Number(number) if *found == tag => Some(*number),
        _ => None,
    })
}

fn number(fields: &[(u64, Field)], tag: u64) -> Option<u64> {
    numbers(fields, tag).next()
}

fn bytes<'a>(fields: &[(u64, Field<'a>)], tag: u64) -> Vec<&'a [u8]> {
    let of_tag = |(found, field): &(u64, Field<'a>)| match field {
        Field::Bytes(bytes) if *found == tag => Some(*bytes),
        _ => None,
    };
    fields.iter().filter_map(of_tag).collect()
}

/// Category, name, time and values.
type Instant = (String, String, u64, Vec<(String, i64)>);

/// What Perfetto makes of a file: slices that nest on their tracks, and arrows.
#[derive(Debug, Default)]
struct PerfettoReading {
    sums: Sums,
    names: Vec<String>,
    /// The time, the category and the name of each end of an arrow, by the arrow.
    flow_starts: HashMap<u64, u64>,
    flow_ends: Vec<(u64, u64, String)>,
    tracks: Vec<String>,
    counters: BTreeMap<u64, Vec<(u64, u64)>>,
    /// Category, name, beginning and end of each slice.
    slices: Vec<(String, String, u64, u64)>,
    instants: Vec<Instant>,
    /// Names of tracks, by their numbers.
    track_names: HashMap<u64, String>,
    /// Descriptions of tracks of threads that can be merged with others.
    merged_lanes: usize,
}

impl PerfettoReading {
    fn of(file: &[u8]) -> PerfettoReading {
        let mut reading = PerfettoReading::default();
        let mut texts: HashMap<(u64, u64), String> = HashMap::new();
        let mut events = Vec::new();
        for packet in bytes(&fields(file), 1) {
            let packet = fields(packet);
            assert_eq!(number(&packet, 10), Some(1), "one sequence");
            for data in bytes(&packet, 12) {
                for (tag, text) in fields(data) {
                    let Field::Bytes(text) = text else { panic!() };
                    let text = fields(text);
                    let value = String::from_utf8(bytes(&text, 2)[0].to_vec()).unwrap();
                    assert_eq!(texts.insert((tag, number(&text, 1).unwrap()), value), None, "written once");
                }
            }
            for track in bytes(&packet, 60) {
                let track = fields(track);
                let name = bytes(&track, 2).first().map(|name| String::from_utf8_lossy(name).into_owned());
                let is_lane = bytes(&track, 8).is_empty() && name.is_some();
                reading.merged_lanes += usize::from(is_lane && number(&track, 15) != Some(2));
                reading.track_names.insert(number(&track, 1).unwrap(), name.unwrap_or_default());
                reading.tracks.extend(bytes(&track, 2).iter().map(|name| String::from_utf8(name.to_vec()).unwrap()));
            }
            for event in bytes(&packet, 11) {
                events.push((number(&packet, 8).unwrap(), fields(event)));
            }
        }
        events.sort_by_key(|(time, _)| *time);
        let mut stacks: HashMap<u64, Vec<(u64, String, String, String)>> = HashMap::new();
        for (time, event) in events {
            let (kind, track) = (number(&event, 9).unwrap(), number(&event, 11).unwrap());
            let name = number(&event, 10).map(|name| texts[&(2, name)].clone()).unwrap_or_default();
            let category = number(&event, 3).map(|category| texts[&(1, category)].clone()).unwrap_or_default();
            match kind {
                1 => {
                    let arguments = bytes(&event, 4).into_iter().map(fields).find_map(|argument| {
                        let is_object = texts[&(3, number(&argument, 1).unwrap())] == "object";
                        is_object.then(|| texts[&(29, number(&argument, 17).unwrap())].clone())
                    });
                    reading.names.push(name.clone());
                    let slice = (time, category, arguments.unwrap_or_default(), name.clone());
                    stacks.entry(track).or_default().push(slice);
                }
                2 => {
                    let (from, category, object, name) =
                        stacks.entry(track).or_default().pop().expect("a slice is open");
                    let has_value = |argument: &[u8], value: &str| {
                        let text = number(&fields(argument), 17).unwrap();
                        texts[&(29, text)].starts_with(value)
                    };
                    if bytes(&event, 4).into_iter().any(|argument| has_value(argument, "no re")) {
                        assert_eq!(from, time, "nobody knows when it ended");
                        continue;
                    }
                    reading.slices.push((category.clone(), name, from, time));
                    let sum = reading.sums.entry((category, object)).or_default();
                    *sum = (sum.0 + 1, sum.1 + time - from);
                }
                3 => {
                    reading.names.push(name.clone());
                    let values = bytes(&event, 4).into_iter().map(fields).filter_map(|argument| {
                        Some((texts[&(3, number(&argument, 1)?)].clone(), number(&argument, 4)? as i64))
                    });
                    reading.instants.push((category, name.clone(), time, values.collect()));
                }
                4 => reading.counters.entry(track).or_default().push((time, number(&event, 30).unwrap())),
                other => panic!("type {other}"),
            }
            for flow in numbers(&event, 47) {
                assert_eq!(reading.flow_starts.insert(flow, time), None, "an arrow begins once");
            }
            if let Some(flow) = number(&event, 48) {
                reading.flow_ends.push((flow, time, name));
            }
        }
        assert!(stacks.values().all(Vec::is_empty), "every slice ends");
        reading
    }

    /// Arrows that end waits; each begins before it ends.
    fn wakes(&self) -> u64 {
        let is_of_threads = |name: &String| name == "begins" || name.starts_with("joined ");
        for (flow, end, name) in &self.flow_ends {
            assert!(self.flow_starts.get(flow).is_some_and(|start| start <= end), "{flow} {name}");
        }
        self.flow_ends.iter().filter(|(_, _, name)| !is_of_threads(name)).count() as u64
    }
}

/// The slices of Chrome's JSON, which nest on their tracks.
fn chrome_sums(file: &[u8]) -> (Sums, u64) {
    let document: Value = serde_json::from_slice(file).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let nanoseconds = |value: &Value| (value.as_f64().unwrap() * 1000.0).round() as u64;
    let mut sums = Sums::new();
    let mut slices: Vec<&Value> = events.iter().filter(|event| event["ph"] == "B" || event["ph"] == "E").collect();
    slices.sort_by_key(|event| nanoseconds(&event["ts"]));
    let mut open: HashMap<(u64, u64), Vec<&Value>> = HashMap::new();
    for event in slices {
        let track = open.entry((event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap())).or_default();
        if event["ph"] == "B" {
            track.push(event);
            continue;
        }
        let begin = track.pop().expect("a slice is open");
        assert_eq!(begin["name"], event["name"], "slices nest");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let sum = sums.entry((text(&begin["cat"]), text(&begin["args"]["object"]))).or_default();
        *sum = (sum.0 + 1, sum.1 + nanoseconds(&event["ts"]) - nanoseconds(&begin["ts"]));
    }
    assert!(open.values().all(Vec::is_empty), "every slice ends");
    let flows = events.iter().filter(|event| event["ph"] == "f").count() as u64;
    assert_eq!(events.iter().filter(|event| event["ph"] == "s").count() as u64, flows);
    (sums, flows)
}

fn of_objects(sums: &Sums) -> Sums {
    sums.iter().filter(|((_, object), _)| !object.is_empty()).map(|(key, sum)| (key.clone(), *sum)).collect()
}

#[test]
fn viewers_get_the_counts_sums_and_arrows_of_the_report() {
    let mut random = SeededRandom::seeded("timelines", 10);
    let (mut waits, mut cut, mut begun) = (0, 0, 0);
    for round in 0..200 {
        let mut records = RandomThreads::records(&mut random, 50 + 10 * round % 400);
        if round % 3 == 1 {
            // Some records are missing.
            records.retain(|_| random.below(25) > 0);
        }
        let Some(end) = records.last().map(|record| record.time) else { continue };
        let times = match round % 4 {
            3 => 1000 + random.below((end - 999) as usize) as u64..1001 + random.below((end - 999) as usize) as u64,
            _ => 0..u64::MAX,
        };
        if times.is_empty() {
            continue;
        }
        let (expected, wakes) = reported(&records, &times);
        let file = exported(&records, selection(&times), &Selection::default(), Box::<PerfettoTimeline>::default());
        let reading = PerfettoReading::of(&file);
        assert_eq!(of_objects(&reading.sums), expected, "round {round}");
        let drawn = reading.wakes();
        assert!(if times.end == u64::MAX { drawn == wakes } else { drawn <= wakes }, "round {round}: {drawn} {wakes}");
        let file = exported(&records, selection(&times), &Selection::default(), Box::<ChromeTimeline>::default());
        let (sums, flows) = chrome_sums(&file);
        assert_eq!(of_objects(&sums), expected, "round {round}");
        assert_eq!(flows, reading.flow_ends.len() as u64, "round {round}");
        let (grown, sizes) = exported_with_moments(&records, selection(&times));
        let grown = PerfettoReading::of(&grown);
        assert_eq!(of_objects(&grown.sums), expected, "round {round}");
        assert_eq!(grown.wakes(), drawn, "round {round}");
        begun += sizes;
        waits += wakes;
        cut += u64::from(reading.names.iter().any(|name| name.contains('…')));
        for samples in reading.counters.values() {
            assert!(samples.is_sorted_by_key(|(time, _)| *time) && samples.iter().all(|(_, value)| *value < 100));
        }
    }
    assert!(waits > 500 && cut > 10 && begun > 10_000, "{waits} {cut} {begun}");
}

/// Records of a line each: time, LWP, event and arguments.
fn records(lines: &str) -> Vec<NumericRecord> {
    let parse = |line: &str| {
        let [time, lwp, event] = line.splitn(3, ':').collect::<Vec<&str>>()[..] else { panic!("{line}") };
        let line = format!("1795174740:{time:0>9}:{lwp:0>7}:0000001:0x{lwp:0>12}:{event}\n");
        NumericRecord::parse(line.as_bytes()).unwrap()
    };
    lines.lines().map(parse).collect()
}

mod crossing_holds;
mod program_events;
mod tracks;
