//! `-F ctf`: decoded by its own metadata, and read by babeltrace2 where that is installed.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{assert_output, run};

const OFFSET: u64 = 1_795_174_000_000_000_009;
const CLOCK: &str = "boot_id 0f8fad5b-d9cb-469f-a165-70867728950e\noffset 1795174000000000009\n";

/// One event, in the order of the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CtfEvent {
    /// Seconds and nanoseconds since the Epoch.
    time: String,
    name: String,
    /// Process, LWP, pthread_t.
    thread: (u64, u64, u64),
    /// Names and values of the fields.
    fields: Vec<(String, i128)>,
}

fn record(time: u64, lwp: u32, event: &str, arguments: &str) -> String {
    let (seconds, nanoseconds) = (1_795_174_740 + time / 1_000_000_000, time % 1_000_000_000);
    format!("{seconds}:{nanoseconds:09}:{lwp:07}:0000001:0x7fc5de3f8{lwp:03x}:{event}:{arguments}\n")
}

/// Records with equal times in several files, with long gaps, with losses, with numbers of 64 bits, and of unknown events.
fn write_trace(directory: &Path) {
    let write = |lwp: u32, records: Vec<String>| {
        fs::write(directory.join(format!("tr.0000001.{lwp:03x}")), records.concat()).unwrap();
    };
    fs::write(directory.join("trclock"), CLOCK).unwrap();
    let gap = 3 * u64::from(u32::MAX);
    write(
        2,
        vec![
            record(5, 2, "00:01:0", "7:28:0:0:0"),
            record(5, 2, "02:02:2", "0:1:0:0:0"),
            record(6, 2, "02:02:1", "0x10:0:0:71:0x401136"),
            record(6, 2, "02:02:2", "35:0:0:0:0"),
            record(6, 2, "03:30:1", "0x20:0x10:1:1795174740544763329:0"),
            record(6, 2, "03:30:2", "110:0:0:0:0"),
            record(gap, 2, "02:04:0", "0x10:0:1:0:0"),
            record(gap + 1, 2, "00:01:0", "4:28:0:0:0"),
            record(2 * gap, 2, "01:03:2", "0x7fc5de3f8003:0xffffffffffffffff:0:0:0"),
        ],
    );
    let mut records = vec![
        record(5, 3, "06:02:1", "0x30:0:0:0:0"),
        record(5, 3, "06:02:2", "0:0:2:0:0"),
        record(6, 3, "12:05:1", "18446744073709551615:-1:0x10:0:5"),
        record(6, 3, "12:05:1", "1:-9223372036854775808:0x10:0:5"),
        record(6, 3, "99:98:0", "0:0:0:0:0"),
        record(6, 3, "13:01:0", "0x401000:0x401136:0:0:0"),
        record(6, 3, "11:04:0", "-1:0:0:0:0"),
    ];
    // They fill several packets, and have ties with the other threads'.
    records.extend((0..9000).map(|time| record(7 + time / 3, 3, "06:03:0", "0x30:16:0:0:0x401136")));
    write(3, records);
    write(4, (0..3000).map(|time| record(6 + time, 4, "09:04:0", "0x40:0:0:0:0")).collect());
}

/// The event that a line of `-F csv` stands for.
fn expected_event(line: &str, open_locks: &mut HashMap<String, Vec<i128>>) -> CtfEvent {
    let columns: Vec<&str> = line.split(',').collect();
    let [time, lwp, pid, tid, category, event, which, ..] = columns[..] else { panic!("{line}") };
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    let plain = event.strip_prefix('r').filter(|_| category == "rmutex").unwrap_or(event);
    let lttng = match (plain, which) {
        ("mutex_lock", "1") => Some("lttng_ust_pthread:pthread_mutex_lock_req"),
        ("mutex_lock", "2") => Some("lttng_ust_pthread:pthread_mutex_lock_acq"),
        ("mutex_trylock" | "mutex_unlock", _) => Some("lttng_ust_pthread:pthread_"),
        ("func_enter", _) => Some("lttng_ust_cyg_profile:func_entry"),
        _ => None,
    };
    let name = match (lttng, which) {
        (Some(provider), "0") if provider.ends_with('_') => format!("{provider}{plain}"),
        (Some(name), _) => name.to_owned(),
        (None, _) => format!("threadt:{event}{}", ["", "_entry", "_exit"][which.parse::<usize>().unwrap()]),
    };
    let named = columns[12].split_whitespace().zip(&columns[7..12]).filter(|(name, _)| *name != "-");
    let mut fields: Vec<(String, i128)> = named
        .map(|(name, value)| {
            let name = match name {
                "rval" if lttng.is_some() => "status",
                "function" => "addr",
                name => name.trim_end_matches('?'),
            };
            (name.to_owned(), number(value))
        })
        .collect();
    if ["user", "99"].contains(&category) {
        fields = (1..).map(|index| format!("a{index}")).zip(columns[7..12].iter().map(|text| number(text))).collect();
    }
    match (plain, which) {
        ("mutex_lock", "1") => open_locks.entry(lwp.to_owned()).or_default().push(fields[0].1),
        ("mutex_lock", "2") => {
            let mutex = open_locks.entry(lwp.to_owned()).or_default().pop();
            fields.splice(0..0, mutex.map(|mutex| ("mutex".to_owned(), mutex)));
        }
        _ => {}
    }
    fields.extend((lttng.is_some() && category == "rmutex").then(|| ("recursive".to_owned(), 1)));
    CtfEvent {
        time: time.to_owned(),
        name,
        thread: (number(pid) as u64, number(lwp) as u64, number(tid) as u64),
        fields,
    }
}

fn expected_events(trace: &Path, options: &[&str]) -> Vec<CtfEvent> {
    let output = run(trace, &[&["-F", "csv"], options].concat());
    let mut open_locks = HashMap::new();
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().skip(1).map(|line| expected_event(line, &mut open_locks)).collect()
}

/// The text between two words, the first ones of `text`, and what follows.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<(&'a str, &'a str)> {
    text.split_once(start)?.1.split_once(end)
}

/// Size in bytes, signed.
type IntegerType = (usize, bool);

/// Decodes streams by their metadata, as far as these use integers of whole bytes.
struct Decoder {
    types: HashMap<String, IntegerType>,
    /// Name and fields by ID.
    events: HashMap<i128, (String, Vec<(String, IntegerType)>)>,
    metadata: String,
}

impl Decoder {
    fn new(metadata: &str) -> Decoder {
        let mut decoder = Decoder { types: HashMap::new(), events: HashMap::new(), metadata: metadata.to_owned() };
        let mut text = metadata;
        while let Some((integer, after)) = between(text, "typealias integer {", "} := ") {
            let (name, after) = after.split_once(';').unwrap();
            let size: usize = between(integer, "size = ", ";").unwrap().0.parse().unwrap();
            assert!(integer.contains("align = 8;") && size.is_multiple_of(8));
            decoder.types.insert(name.to_owned(), (size / 8, integer.contains("signed = true;")));
            text = after;
        }
        text = metadata;
        while let Some((event, after)) = between(text, "\nevent {", "\n};") {
            let name = between(event, "name = \"", "\"").unwrap().0.to_owned();
            let id = between(event, "\tid = ", ";").unwrap().0.parse().unwrap();
            let fields = decoder.structure(between(event, "fields := struct {", "}").unwrap().0);
            assert_eq!(decoder.events.insert(id, (name, fields)), None);
            text = after;
        }
        decoder
    }

    fn structure(&self, text: &str) -> Vec<(String, IntegerType)> {
        let fields = text.split(';').map(str::trim).filter(|field| !field.is_empty());
        let field = |field: &str| {
            let (kind, name) = field.split_once(' ').unwrap();
            (name.strip_prefix('_').unwrap_or(name).to_owned(), self.types[kind])
        };
        fields.map(field).collect()
    }

    /// The scope of the metadata with this name.
    fn scope(&self, name: &str) -> Vec<(String, IntegerType)> {
        self.structure(between(&self.metadata, &format!("{name} := struct {{"), "}").unwrap().0)
    }

    /// The events, and for each packet how many events had been discarded until its end.
    fn decode(&self, mut stream: &[u8]) -> (Vec<CtfEvent>, Vec<i128>) {
        let [header, context] = ["packet.header", "packet.context"].map(|name| self.scope(name));
        let [event_header, event_context] = ["event.header", "event.context"].map(|name| self.scope(name));
        let number =
            |name: &str| between(&self.metadata, &format!("\t{name} = "), ";").unwrap().0.parse::<u64>().unwrap();
        let offset = number("offset_s") * 1_000_000_000 + number("offset");
        let (mut events, mut discarded, mut last) = (Vec::new(), Vec::new(), 0);
        while !stream.is_empty() {
            let mut at = stream;
            assert_eq!(take(&mut at, &header), [("magic".to_owned(), 0xc1fc_1fc1), ("stream_id".to_owned(), 0)]);
            let context: HashMap<String, i128> = take(&mut at, &context).into_iter().collect();
            assert_eq!(context["content_size"], context["packet_size"]);
            let (packet, after) = stream.split_at(context["packet_size"] as usize / 8);
            assert!(packet.len() <= 256 << 10);
            at = &packet[stream.len() - at.len()..];
            stream = after;
            discarded.push(context["events_discarded"]);
            let mut time = context["timestamp_begin"] as u64;
            assert!(time >= last);
            while !at.is_empty() {
                let [(_, id), (_, low)] = &take(&mut at, &event_header)[..] else { panic!() };
                time += u64::from((*low as u32).wrapping_sub(time as u32));
                let thread: Vec<u64> =
                    take(&mut at, &event_context).into_iter().map(|(_, value)| value as u64).collect();
                let (name, fields) = &self.events[id];
                let since_epoch = offset + time;
                events.push(CtfEvent {
                    time: format!("{:010}.{:09}", since_epoch / 1_000_000_000, since_epoch % 1_000_000_000),
                    name: name.clone(),
                    thread: (thread[0], thread[1], thread[2]),
                    fields: take(&mut at, fields),
                });
            }
            last = time;
            assert_eq!(last, context["timestamp_end"] as u64);
        }
        (events, discarded)
    }
}

/// Takes a structure from the beginning of `bytes`.
fn take(bytes: &mut &[u8], structure: &[(String, IntegerType)]) -> Vec<(String, i128)> {
    let take_field = |(name, (size, signed)): &(String, IntegerType)| {
        let (field, after) = bytes.split_at(*size);
        *bytes = after;
        let mut extended = [if *signed && field[size - 1] > 127 { 255 } else { 0 }; 16];
        extended[..*size].copy_from_slice(field);
        (name.clone(), i128::from_le_bytes(extended))
    };
    structure.iter().map(take_field).collect()
}

/// What babeltrace2 reads, and its messages; `None` if it is not installed.
fn read_by_babeltrace(directory: &Path) -> Option<(Vec<CtfEvent>, String)> {
    let options = ["--clock-seconds", "--no-delta", "--names=payload,context"];
    let Ok(output) = Command::new("babeltrace2").args(options).arg(directory).output() else {
        println!("babeltrace2 is not installed: only the test's own decoder has read the trace");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    let values = |text: &str| -> Vec<(String, i128)> {
        let pairs = text.split(", ").filter_map(|pair| pair.trim().split_once(" = "));
        pairs.map(|(name, value)| (name.to_owned(), number(value))).collect()
    };
    let event = |line: &str| {
        let (time, after) = between(line, "[", "] ").unwrap();
        let (name, after) = after.split_once(": {").unwrap();
        let (thread, after) = after.split_once("}, {").unwrap();
        let [pid, lwp, tid] = &values(thread)[..] else { panic!("{line}") };
        let thread = (pid.1 as u64, lwp.1 as u64, tid.1 as u64);
        CtfEvent { time: time.to_owned(), name: name.to_owned(), thread, fields: values(after.trim_end_matches('}')) }
    };
    let events = String::from_utf8(output.stdout).unwrap().lines().map(event).collect();
    Some((events, String::from_utf8(output.stderr).unwrap()))
}

/// Writes a trace as CTF, and compares what readers read with `-F csv`. Returns the counts of discarded events and the messages of
/// babeltrace2.
fn check(trace: &Path, options: &[&str]) -> (Vec<i128>, Option<String>) {
    let directory = trace.join("ctf");
    let output = run(trace, &[&["-F", "ctf", "-o", "ctf"], options].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let expected = expected_events(trace, options);
    let metadata = fs::read_to_string(directory.join("metadata")).unwrap();
    let (events, discarded) = Decoder::new(&metadata).decode(&fs::read(directory.join("stream")).unwrap());
    let compare = |events: &[CtfEvent]| {
        let different = expected.iter().zip(events).find(|(expected, event)| expected != event);
        assert_eq!((different, events.len()), (None, expected.len()), "{options:?}");
    };
    compare(&events);
    let read = read_by_babeltrace(&directory).map(|(events, messages)| {
        compare(&events);
        messages
    });
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 2, "{options:?}");
    fs::remove_dir_all(directory).unwrap();
    (discarded, read)
}

#[test]
fn readers_of_ctf_get_every_record_in_order() {
    let trace = tempfile::tempdir().unwrap();
    write_trace(trace.path());
    for options in [&["-e", "mutex"][..], &["--since", "+6ns", "--until", "+9us"], &["--blocked"], &["--longer", "1ns"]]
    {
        check(trace.path(), options);
    }
    for options in
        [&["--object", "0x10"][..], &["--head", "900", "--tail", "300"], &["-p", "1", "-l", "3"], &["-p", "2"]]
    {
        let (_, messages) = check(trace.path(), &[options, &["-e", "-trace_lost"]].concat());
        assert!(messages.is_none_or(|messages| messages.contains("discarded") || messages.is_empty()), "{options:?}");
    }
}

#[test]
fn lost_records_are_discarded_events() {
    let trace = tempfile::tempdir().unwrap();
    write_trace(trace.path());
    let (discarded, messages) = check(trace.path(), &[]);
    assert_eq!((discarded[0], discarded[1], discarded.last()), (0, 7, Some(&11)));
    assert!(discarded.len() > 4 && discarded.is_sorted(), "{discarded:?}");
    if let Some(messages) = messages {
        let lines: Vec<&str> = messages.lines().filter(|line| !line.is_empty()).collect();
        let [first, second] = lines[..] else { panic!("{messages}") };
        assert!(
            first.contains("Tracer discarded 7 events between [") && second.contains("discarded 4 events"),
            "{messages}"
        );
    }
    fs::remove_file(trace.path().join("tr.0000001.002")).unwrap();
    let (discarded, messages) = check(trace.path(), &[]);
    assert!(discarded.iter().all(|count| *count == 0) && messages.is_none_or(|messages| messages.is_empty()));
}

/// Times are those of CLOCK_MONOTONIC where the trace says what that was, so that traces of one boot are put together.
#[test]
fn the_clock_of_ctf_is_that_of_the_boot() {
    let trace = tempfile::tempdir().unwrap();
    let clock = |text: &str| {
        fs::write(trace.path().join("trclock"), text).unwrap();
        let output = run(trace.path(), &["-F", "ctf", "-o", "ctf"]);
        assert_output(&output, 0, "", "");
        let metadata = fs::read_to_string(trace.path().join("ctf/metadata")).unwrap();
        fs::remove_dir_all(trace.path().join("ctf")).unwrap();
        between(&metadata, "\nclock {\n", "\n};").unwrap().0.replace('\t', "")
    };
    fs::write(trace.path().join("tr.0000001.002"), record(5, 2, "02:04:0", "0x10:0:0:0:0")).unwrap();
    let boot = "name = \"monotonic\";\nuuid = \"0f8fad5b-d9cb-469f-a165-70867728950e\";\ndescription = \"CLOCK_MONOTONIC\";\n\
                freq = 1000000000;\noffset_s = 1795174000;\noffset = 9;\nabsolute = FALSE;";
    assert_eq!(clock(CLOCK), boot);
    assert_eq!(
        clock(&format!("{CLOCK}{}", CLOCK.replace(&OFFSET.to_string(), "7"))),
        boot,
        "the first of a boot counts"
    );
    let epoch = "name = \"monotonic\";\ndescription = \"time since the Epoch\";\nfreq = 1000000000;\noffset_s = 0;\noffset = 0;\nabsolute = TRUE;";
    for text in [
        "",
        "boot_id \";\noffset 5\n",
        &CLOCK.replace(&OFFSET.to_string(), "-5"),
        &CLOCK.replace(&OFFSET.to_string(), "1795174740000000006"),
        &format!("{CLOCK}{}", CLOCK.replace("0f8f", "0e8e")),
    ] {
        assert_eq!(clock(text), epoch, "{text}");
    }
}

#[test]
fn a_ctf_directory_replaces_nothing() {
    let trace = tempfile::tempdir().unwrap();
    write_trace(trace.path());
    let message = "trace-cat: .: the directory for -F ctf is not empty\n";
    assert_output(&run(trace.path(), &["-F", "ctf", "-o", "."]), 1, "", message);
    let message = "trace-cat: trclock: Not a directory\n";
    assert_output(&run(trace.path(), &["-F", "ctf", "-o", "trclock"]), 1, "", message);
    fs::create_dir(trace.path().join("empty")).unwrap();
    assert_output(&run(trace.path(), &["-F", "ctf", "-o", "empty"]), 0, "", "");
    for (arguments, message) in [
        (&[][..], "-F ctf makes a directory: name it with -o"),
        (&["-o", "x", "--follow"], "--follow"),
        (&["-o", "x", "--sort", "tid"], "--sort"),
        (&["-o", "x", "--stat"], "--stat"),
    ] {
        let output = run(trace.path(), &[&["-F", "ctf"], arguments].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        assert!(String::from_utf8_lossy(&output.stderr).contains(message), "{output:?}");
    }
    assert!(!trace.path().join("x").exists());
}
