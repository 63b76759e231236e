//! `-F paje`: what a reader gets of it is what the report accounts; pj_dump reads the same where it is installed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{assert_output, run};

/// A state: its thread or lane, its value, the object's address, times in nanoseconds, and a note.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PajeState {
    container: String,
    value: String,
    object: String,
    times: (u64, u64),
    note: String,
}

/// The container of an end of a link, and its time.
type LinkEnd = (String, u64);

/// What a Paje trace shows.
#[derive(Debug, Default)]
struct PajeTrace {
    /// By container and type.
    open: HashMap<(String, String), Vec<PajeState>>,
    states: Vec<PajeState>,
    /// Names of the containers and types of what begins or ends, by alias.
    names: HashMap<String, String>,
    open_links: HashMap<String, (String, String, u64)>,
    /// Value, start and end.
    links: Vec<(String, LinkEnd, LinkEnd)>,
    marks: Vec<(String, String, u64)>,
    /// The values of each variable.
    variables: BTreeMap<String, Vec<(u64, i64)>>,
}

/// The words of a line, of which some are in quotes.
fn words(line: &str) -> Vec<String> {
    let mut parts = line.split('"').enumerate();
    let word = |(index, part): (usize, &str)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    };
    parts.by_ref().flat_map(word).collect()
}

fn nanoseconds(text: &str) -> u64 {
    let (seconds, fraction) = text.split_once('.').unwrap();
    assert_eq!(fraction.len(), 9);
    seconds.parse::<u64>().unwrap() * 1_000_000_000 + fraction.parse::<u64>().unwrap()
}

impl PajeTrace {
    fn parse(text: &str) -> PajeTrace {
        let (mut trace, mut last) = (PajeTrace::default(), 0);
        for line in text.lines().filter(|line| !line.starts_with('%')) {
            let words = words(line);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if let ["6" | "8" | "9" | "10" | "11" | "12" | "13" | "14", time, ..] = words[..] {
                assert!(nanoseconds(time) >= last, "{line}");
                last = nanoseconds(time);
            }
            trace.add(&words, last);
        }
        assert!(trace.open.values().all(Vec::is_empty) && trace.open_links.is_empty());
        trace
    }

    fn add(&mut self, words: &[&str], time: u64) {
        let name = |alias: &str| self.names[alias].clone();
        match *words {
            ["0" | "1" | "2" | "3" | "4", alias, .., name] if words[0] == "0" || words[0] == "1" || words[0] == "4" => {
                assert_eq!(self.names.insert(alias.to_owned(), name.to_owned()), None);
            }
            ["2" | "3" | "5", alias, kind, value, _] => {
                assert!(kind == "0" || self.names.contains_key(kind));
                // ViTE reports definitions of values that are not those of states.
                assert!(words[0] != "5" || kind == "S" || kind == "I", "{words:?}");
                assert_eq!(self.names.insert(alias.to_owned(), value.to_owned()), None);
            }
            ["6", _, alias, kind, parent, container] => {
                assert!(self.names.contains_key(kind) && (parent == "0" || self.names.contains_key(parent)));
                assert_eq!(self.names.insert(alias.to_owned(), container.to_owned()), None);
            }
            ["8", _, kind, container, value, object, _, _, note] => {
                let (container_name, value) = (name(container), name(value));
                let stack = self.open.entry((container.to_owned(), kind.to_owned())).or_default();
                let (object, note) = (object.to_owned(), note.to_owned());
                stack.push(PajeState { container: container_name, value, object, times: (time, 0), note });
            }
            ["9", _, kind, container] => {
                let mut state = self.open.get_mut(&(container.to_owned(), kind.to_owned())).unwrap().pop().unwrap();
                state.times.1 = time;
                self.states.push(state);
            }
            ["10", _, "M", container, value] => self.marks.push((name(container), value.to_owned(), time)),
            ["14", _, "U", container, value, number] => {
                self.marks.push((name(container), format!("{value} {number}"), time));
            }
            ["11", _, kind, container, value] => {
                let variable = format!("{}: {}", name(container), name(kind));
                self.variables.entry(variable).or_default().push((time, value.parse().unwrap()));
            }
            ["12", _, "K", "a", value, container, key] => {
                let start = (value.to_owned(), name(container), time);
                assert_eq!(self.open_links.insert(key.to_owned(), start), None);
            }
            ["13", _, "K", "a", value, container, key] => {
                let (start_value, start, start_time) = self.open_links.remove(key).unwrap();
                assert_eq!(start_value, value);
                self.links.push((start_value, (start, start_time), (name(container), time)));
            }
            _ => panic!("{words:?}"),
        }
    }

    /// The number and the sum of waits and of holds for each address.
    fn sums(&self) -> BTreeMap<String, [u64; 4]> {
        let mut sums: BTreeMap<String, [u64; 4]> = BTreeMap::new();
        for state in self.states.iter().filter(|state| state.object != "-") {
            let place = if state.value.starts_with("wait ") { 0 } else { 2 };
            let sums = sums.entry(state.object.clone()).or_default();
            sums[place] += 1;
            sums[place + 1] += state.times.1 - state.times.0;
        }
        sums.retain(|_, sums| *sums != [0; 4]);
        sums
    }
}

/// The same sums by the report.
fn reported_sums(trace: &Path, options: &[&str]) -> BTreeMap<String, [u64; 4]> {
    let output = run(trace, &[&["report", "-F", "json"], options].concat());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let sums = document["objects"].as_array().unwrap().iter().map(|object| {
        let figures = ["waits", "waited", "holds", "held"].map(|figure| object[figure].as_u64().unwrap_or(0));
        (object["address"].as_str().unwrap().to_owned(), figures)
    });
    sums.filter(|(_, sums)| *sums != [0; 4]).collect()
}

/// Threads 2 to 5 of process 1 and its child 9. Thread 2 holds the mutexes 0x10 and 0x30 in turn, for which threads 3 and 4 wait;
/// thread 3 has a handler that interrupts its wait and waits for semaphore 0x50, which thread 2 posts; thread 5 waits for the
/// condition 0x20 and is never woken.
fn write_trace(directory: &Path) {
    let lines = [
        (0, 2, "01:30:0", "0"),
        (1, 2, "01:01:1", "0x7f00:0:0x401000:0"),
        (2, 3, "01:30:0", "0x401000:0"),
        (3, 2, "01:01:2", "0:0x000000000003"),
        (4, 2, "02:02:1", "0x10"),
        (4, 2, "02:02:2", "0:0"),
        (5, 3, "02:02:1", "0x10"),
        (6, 3, "04:02:1", "0x50:0"),
        (7, 4, "02:02:1", "0x30"),
        (7, 4, "02:02:2", "0:0"),
        (8, 2, "04:04:0", "0x50:0:0"),
        (9, 3, "04:02:2", "0"),
        (10, 2, "02:02:1", "0x30"),
        (11, 4, "02:04:0", "0x30:0:1"),
        (12, 2, "02:02:2", "0:1"),
        // These holds cross.
        (13, 2, "02:04:0", "0x10:0:1"),
        (14, 3, "02:02:2", "0:1"),
        (15, 2, "02:04:0", "0x30:0:0"),
        (15, 3, "02:04:0", "0x10:0:0"),
        (15, 3, "01:02:0", "0"),
        (16, 5, "02:02:1", "0x60"),
        (16, 5, "02:02:2", "0:0"),
        (17, 5, "03:04:1", "0x20:0x60"),
        (18, 2, "01:03:1", "0x000000000003"),
        (18, 2, "01:03:2", "0x000000000003:0:0"),
        (20, 4, "00:01:0", "6:28"),
        (30, 2, "11:04:0", "0"),
    ];
    let mut text = String::new();
    for (second, lwp, event, arguments) in lines {
        let zeros = ":0".repeat(4 - arguments.matches(':').count());
        text += &format!(
            "{:010}:000000007:{lwp:07}:0000001:0x{lwp:012x}:{event}:{arguments}{zeros}\n",
            1_795_174_740 + second
        );
    }
    fs::write(directory.join("tr.0000001.002"), text).unwrap();
}

fn export(trace: &Path, options: &[&str]) -> PajeTrace {
    assert_output(&run(trace, &[&["-F", "paje", "-o", "trace.paje"], options].concat()), 0, "", "");
    let paje = PajeTrace::parse(&fs::read_to_string(trace.join("trace.paje")).unwrap());
    let Ok(output) = Command::new("pj_dump").arg("trace.paje").current_dir(trace).output() else {
        println!("pj_dump is not installed: only the test's own reader has read the trace");
        return paje;
    };
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let dump = String::from_utf8(output.stdout).unwrap();
    let rows = |kind: &str| {
        let rows = dump.lines().map(|line| line.split(", ").map(str::to_owned).collect::<Vec<String>>());
        rows.filter(|row| row[0] == kind).collect::<Vec<_>>()
    };
    let time = |text: &str| (text.parse::<f64>().unwrap() * 1e9).round() as u64;
    let mut states: Vec<_> =
        rows("State").iter().map(|row| (row[1].clone(), row[7].clone(), time(&row[3]), time(&row[4]))).collect();
    let state = |state: &PajeState| (state.container.clone(), state.value.clone(), state.times.0, state.times.1);
    let mut expected: Vec<_> = paje.states.iter().map(state).collect();
    states.sort();
    expected.sort();
    assert_eq!(states, expected);
    assert_eq!(rows("Link").len(), paje.links.len());
    // pj_dump prints only one of the events that a container has at the end of the trace.
    let end = paje.states.iter().map(|state| state.times.1).max();
    let (at_end, before): (Vec<_>, Vec<_>) = paje.marks.iter().partition(|mark| Some(mark.2) == end);
    let at_end: BTreeSet<&str> = at_end.iter().map(|mark| &mark.0[..]).collect();
    assert_eq!(rows("Event").len(), before.len() + at_end.len());
    paje
}

#[test]
fn sums_of_waits_and_holds_are_those_of_the_report() {
    let trace = tempfile::tempdir().unwrap();
    write_trace(trace.path());
    for options in [&[][..], &["-e", "mutex"], &["--since", "+9s", "--until", "+14s"], &["--since", "+6s"]] {
        let paje = export(trace.path(), options);
        assert_eq!(paje.sums(), reported_sums(trace.path(), options), "{options:?}");
        assert!(!paje.sums().is_empty());
    }
}

#[test]
fn states_links_marks_and_variables() {
    let trace = tempfile::tempdir().unwrap();
    write_trace(trace.path());
    let paje = export(trace.path(), &[]);
    let state = |container: &str, value: &str, from: u64, to: u64| {
        let is_it = |state: &&PajeState| {
            state.container == container
                && state.value.starts_with(value)
                && state.times == (from * 1_000_000_000, to * 1_000_000_000)
        };
        assert_eq!(paje.states.iter().filter(is_it).count(), 1, "{container} {value} {from} {to}: {:#?}", paje.states);
    };
    state("thread 2", "not waiting", 0, 30);
    state("thread 3", "wait mutex 0x10", 5, 14);
    state("thread 3 waits within", "wait sema 0x50", 6, 9);
    // They cross, so they are on different lanes.
    state("thread 2 holds", "hold mutex 0x10", 4, 13);
    state("thread 2 holds", "hold mutex 0x30", 12, 15);
    state("thread 5", "wait cond 0x20", 17, 30);
    let links: Vec<(&str, &str, u64, &str, u64)> = paje
        .links
        .iter()
        .map(|(value, (start, from), (end, to))| {
            (&value[..], &start[..], from / 1_000_000_000, &end[..], to / 1_000_000_000)
        })
        .collect();
    for link in [
        ("creates", "thread 2", 1, "thread 3", 2),
        ("ends wait", "thread 2", 8, "thread 3", 9),
        ("ends wait", "thread 4", 11, "thread 2", 12),
        ("ends wait", "thread 2", 13, "thread 3", 14),
    ] {
        assert!(links.contains(&link), "{link:?} {links:?}");
    }
    assert!(
        paje.marks.iter().any(|(thread, mark, _)| thread == "thread 4" && mark == "records lost: 6"),
        "{:?}",
        paje.marks
    );
    let waiting = &paje.variables["trace: threads that wait"];
    assert!(waiting.iter().any(|(time, value)| (*time, *value) == (5_000_000_000, 1)), "{waiting:?}");
    assert!(paje.variables.keys().any(|name| name.contains("0x10")), "{:?}", paje.variables);
}

#[test]
fn what_is_cut_off_is_marked_and_what_is_not_selected_is_not_drawn() {
    let trace = tempfile::tempdir().unwrap();
    write_trace(trace.path());
    let paje = export(trace.path(), &["--since", "+8s", "--until", "+11s"]);
    let held = paje.states.iter().find(|state| state.value == "hold mutex 0x10").unwrap();
    assert_eq!((held.times, &held.note[..]), ((8_000_000_000, 11_000_000_000), "began earlier and ended later"));
    for mark in ["began earlier: mutex 0x10", "ends later: mutex 0x10"] {
        assert!(paje.marks.iter().any(|(thread, name, _)| thread == "thread 2" && name == mark), "{:?}", paje.marks);
    }
    for (options, is_wanted) in [
        (&["--blocked"][..], (&|state: &PajeState| state.value.starts_with("wait ")) as &dyn Fn(&PajeState) -> bool),
        (&["--longer", "5s"], &|state| state.times.1 - state.times.0 >= 5_000_000_000),
        (&["--object", "0x30"], &|state| state.object == "0x30"),
        (&["-l", "3"], &|state| state.container.starts_with("thread 3")),
    ] {
        let paje = export(trace.path(), options);
        let states: Vec<&PajeState> = paje.states.iter().filter(|state| state.value != "not waiting").collect();
        assert!(!states.is_empty() && states.iter().all(|state| is_wanted(state)), "{options:?} {states:?}");
    }
}

#[test]
fn events_of_the_program_are_states_events_and_variables() {
    let trace = tempfile::tempdir().unwrap();
    let lines = [
        (0, "12:90:1", "0x10"),
        (1, "04:02:1", "0x90:0"),
        (2, "12:90:1", "0x11"),
        (3, "12:92:0", "0x30:-7"),
        (4, "12:91:0", "0x20:-5"),
        (5, "12:90:2", "0x10"),
        (6, "12:90:2", "0x11"),
        (7, "12:90:1", "0x12"),
        (8, "12:90:2", "0x13"),
        (9, "11:04:0", "0"),
    ];
    let line = |(second, event, arguments): (u64, &str, &str)| {
        let zeros = ":0".repeat(4 - arguments.matches(':').count());
        let seconds = 1_795_174_740 + second;
        format!("{seconds:010}:000000007:0000002:0000001:0x000000000002:{event}:{arguments}{zeros}\n")
    };
    fs::write(trace.path().join("tr.0000001.002"), lines.map(line).concat()).unwrap();
    fs::write(trace.path().join("trinfo.0000001"), "format 1\nname 0x10 serve \\x22a\\x22\nname 0x30 depth\n").unwrap();
    let paje = export(trace.path(), &[]);
    let mut states: Vec<(&str, &str, u64, u64, &str)> = paje
        .states
        .iter()
        .filter(|state| !state.value.starts_with("wait") && state.value != "not waiting")
        .map(|state| {
            let (from, to) = state.times;
            (&*state.container, &*state.value, from / 1_000_000_000, to / 1_000_000_000, &*state.note)
        })
        .collect();
    states.sort_by_key(|state| (state.2, state.3));
    assert_eq!((states[0].1, states[0].2, states[0].3), ("serve 'a'", 0, 5));
    assert!(states[1].0.ends_with(" spans"), "{states:?}");
    assert_eq!((states[1].1, states[1].2, states[1].3), ("0x11", 2, 6));
    assert_eq!((states[2].1, states[2].2, states[2].3, states[2].4), ("0x12", 7, 9, "no end is recorded"));
    assert_eq!(states.len(), 3);
    let marks: Vec<&str> = paje.marks.iter().map(|mark| &*mark.1).collect();
    assert!(marks.contains(&"0x20 -5") && marks.contains(&"no beginning recorded: 0x13"), "{marks:?}");
    assert_eq!(paje.variables["depth: value"], [(3_000_000_000, -7)]);
}
