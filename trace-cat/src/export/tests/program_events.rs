//! The program's own events and its functions, against a reading of the records that knows nothing of lanes.

use std::collections::BTreeSet;

use super::*;

fn perfetto(lines: &str, selection: &Selection) -> PerfettoReading {
    let records = records(lines);
    let waits = EventSelection::waits(selection, records[0].time);
    PerfettoReading::of(&exported(&records, waits, selection, Box::<PerfettoTimeline>::default()))
}

/// Category, name, and times since the first record of all slices but holds.
fn slices(reading: &PerfettoReading) -> Vec<(&str, &str, u64, u64)> {
    let mut slices: Vec<_> = reading
        .slices
        .iter()
        .filter(|slice| slice.0 != "hold")
        .map(|(category, name, from, to)| (&**category, &**name, *from, *to))
        .collect();
    slices.sort_by_key(|slice| (slice.2, slice.3));
    slices
}

/// A span with a wait in it, one that has no end, one that has no beginning, a mark, a counter, and an event with a number.
const EVENTS: &str = "\
    10:1:12:90:1:0x10:0:0:0:0\n20:1:04:02:1:0x90:0:0:0:0\n21:1:12:92:0:0x30:-7:0:0:0\n\
    30:1:04:02:2:0:1:0:0:0\n35:1:12:90:1:0x11:0:0:0:0\n\
    40:1:12:91:0:0x20:-5:0:0:0\n50:1:12:05:0:1:0:-3:0:0\n55:1:12:90:2:0x12:0:0:0:0\n\
    60:1:12:93:0:0x13:0x90:0:0:0\n65:2:12:92:0:0x30:9:0:0:0\n70:1:12:90:2:0x10:0:0:0:0\n90:1:01:18:0:0:0:0:0:0\n";

#[test]
fn spans_are_slices_marks_are_instants_and_counters_are_counters() {
    let reading = perfetto(EVENTS, &Selection::default());
    let expected =
        [("user", "0x10", 0, 60), ("wait", "wait sema lock", 10, 20), ("user", "0x11 …", 25, 80)].map(|slice| slice);
    let found: Vec<_> = slices(&reading).into_iter().filter(|slice| slice.0 == "user").collect();
    assert_eq!(found, [expected[0], expected[2]]);
    let instants: Vec<_> = reading.instants.iter().map(|(.., time, values)| (*time, values.clone())).collect();
    let value = |name: &str, value| (name.to_owned(), value);
    assert_eq!(
        instants,
        [(30, vec![value("value", -5)]), (40, vec![value("a1", 1), value("a2", 0), value("a3", -3)]), (45, vec![])]
    );
    let names: Vec<&str> = reading.instants.iter().map(|instant| &*instant.1).collect();
    assert_eq!(names, ["0x20", "user.05", "0x12: no beginning recorded"]);
    let track = reading.track_names.iter().find(|(_, name)| *name == "0x30").unwrap().0;
    let counts: Vec<_> = reading.counters[track].iter().map(|(time, value)| (*time, *value as i64)).collect();
    assert_eq!(counts, [(11, -7), (55, 9)]);
}

#[test]
fn selections_cut_spans_off_and_leave_them_out() {
    let of = |selection: Selection| {
        let reading = perfetto(EVENTS, &selection);
        let mut names: Vec<String> = slices(&reading).iter().map(|slice| format!("{} {}", slice.0, slice.1)).collect();
        names.extend(reading.instants.iter().map(|instant| instant.1.clone()));
        names.retain(|name| !name.starts_with("wait"));
        names
    };
    let none = Selection::default();
    assert_eq!(of(Selection { longer: Some(60), ..none.clone() }), ["user 0x10"]);
    assert_eq!(of(Selection { blocked: true, ..none.clone() }), [""; 0]);
    assert_eq!(of(Selection { lwps: vec![2], ..none.clone() }), [""; 0]);
    let events = spec::EventSet::parse(b"user_mark", &mut |_| {});
    assert_eq!(of(Selection { events: Some(events), ..none.clone() }), ["0x20"]);
    // Both began before.
    let times =
        WaitSelection { times: records(EVENTS)[0].time + 26..records(EVENTS)[0].time + 31, ..Default::default() };
    let file = exported(&records(EVENTS), times.clone(), &none, Box::<PerfettoTimeline>::default());
    let reading = PerfettoReading::of(&file);
    assert_eq!(slices(&reading), [("user", "… 0x10 …", 26, 31), ("user", "… 0x11 …", 26, 31)]);
    chrome_sums(&exported(&records(EVENTS), times, &none, Box::<ChromeTimeline>::default()));
}

#[test]
fn functions_are_slices_that_end_with_their_callers() {
    let lines = "10:1:13:01:0:0x100:0x900:0:0:0\n20:1:13:01:0:0x200:0x110:0:0:0\n30:1:13:01:0:0x300:0x210:0:0:0\n\
                 40:1:13:02:0:0x200:0x110:0:0:0\n50:1:13:02:0:0x400:0x1:0:0:0\n60:1:13:02:0:0x100:0x900:0:0:0\n";
    let reading = perfetto(lines, &Selection::default());
    assert_eq!(
        slices(&reading),
        [("function", "0x100", 0, 50), ("function", "0x200", 10, 30), ("function", "0x300 …", 20, 30)]
    );
    assert_eq!(reading.names.last().map(|name| &**name), Some("0x400: no beginning recorded"));
}

#[test]
fn random_spans_have_the_times_of_their_records() {
    let mut random = SeededRandom::seeded("spans", 11);
    let mut crossing = 0;
    for round in 0..200 {
        let (mut lines, mut time) = (String::new(), 0);
        let mut open: Vec<(usize, usize, u64)> = Vec::new();
        let mut expected: Vec<(String, u64, u64)> = Vec::new();
        for _ in 0..10 + round {
            time += 1 + random.below(5) as u64;
            let (lwp, name) = (1 + random.below(3), 0x10 + random.below(4));
            let place = open.iter().rposition(|span| (span.0, span.1) == (lwp, name));
            match place.filter(|_| random.below(2) == 0) {
                Some(place) => {
                    crossing += usize::from(open[place + 1..].iter().any(|span| span.0 == lwp));
                    let (.., from) = open.remove(place);
                    expected.push((format!("{name:#x}"), from, time));
                    lines += &format!("{time}:{lwp}:12:90:2:{name:#x}:0:0:0:0\n");
                }
                None => {
                    open.push((lwp, name, time));
                    lines += &format!("{time}:{lwp}:12:90:1:{name:#x}:0:0:0:0\n");
                }
            }
        }
        let start = records(&lines)[0].time - records("0:1:12:90:1:0:0:0:0:0\n")[0].time;
        expected.extend(open.iter().map(|(_, name, from)| (format!("{name:#x} …"), *from, time)));
        expected.iter_mut().for_each(|span| (span.1, span.2) = (span.1 - start, span.2 - start));
        expected.sort();
        let reading = perfetto(&lines, &Selection::default());
        let mut found: Vec<_> = reading.slices.iter().map(|(_, name, from, to)| (name.clone(), *from, *to)).collect();
        found.sort();
        assert_eq!(found, expected, "round {round}");
        let file = exported(
            &records(&lines),
            WaitSelection::default(),
            &Selection::default(),
            Box::<ChromeTimeline>::default(),
        );
        let (sums, _) = chrome_sums(&file);
        let sum = expected.iter().map(|(_, from, to)| to - from).sum();
        assert_eq!(sums[&("user".to_owned(), String::new())], (expected.len() as u64, sum), "round {round}");
    }
    assert!(crossing > 500, "{crossing}");
}

/// Perfetto takes 32 bits of a thread's number.
#[test]
fn lanes_of_chrome_have_numbers_of_32_bits() {
    let mut lines = String::new();
    for (lwp, time) in [(4_000_000, 10), (4_000_001, 100)] {
        for (step, (which, name)) in [(1, 1), (1, 2), (2, 1), (2, 2)].into_iter().enumerate() {
            lines += &format!("{}:{lwp}:12:90:{which}:{name}:0:0:0:0\n", time + step);
        }
    }
    let selection = Selection::default();
    let file = exported(&records(&lines), WaitSelection::default(), &selection, Box::<ChromeTimeline>::default());
    let document: Value = serde_json::from_slice(&file).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let numbers: BTreeSet<u64> =
        events.iter().filter(|event| event["ph"] == "B").map(|event| event["tid"].as_u64().unwrap()).collect();
    assert_eq!(numbers.len(), 4, "{numbers:?}");
    assert!(numbers.iter().all(|number| u32::try_from(*number).is_ok()), "{numbers:?}");
}
