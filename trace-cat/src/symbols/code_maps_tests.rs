use super::*;
use crate::testing::seeded_random::SeededRandom;

fn maps_of(lines: &[&str]) -> CodeMaps {
    let mut maps = CodeMaps::default();
    for line in lines {
        let (key, value) = line.split_once(' ').unwrap();
        maps.add_line(key.as_bytes(), value.as_bytes(), 0);
    }
    maps
}

fn places(maps: &CodeMaps, address: u64, seconds: &[u64]) -> Vec<String> {
    seconds.iter().map(|second| maps.find(address, second * NANOS_PER_SECOND).place()).collect()
}

#[test]
fn addresses_are_found_in_files_and_in_generated_code() {
    let mut maps = CodeMaps::default();
    assert_eq!(maps.find(0x10, 5).place(), "0x10");
    for line in [
        "0x1000 0x3000 0x500 abc /bin/a\\x20b",
        "0x2000 0x3000 0x0 - /bin/c",
        "0x4000 0x5000 0x0 - ",
        "0x5000 0x6000 0x0 - /memfd:jit\\x20(deleted)",
        "0x6000 0x7000 0x0 0f [vdso]",
        "0x7000 0x8000 0xffffffffffffffff - /overflow",
        "0x8000 0x7000 0x0 - /backwards",
        "0x1000",
        "",
    ] {
        maps.add_line(b"map", line.as_bytes(), 0);
    }
    let places = [0x1fff, 0x2010, 0x4000, 0x5000, 0x6004, 0x7000].map(|address| maps.find(address, 5).place());
    assert_eq!(places, ["a b+0x14ff", "c+0x10", "[jit]", "[jit]", "[vdso]+0x4", "[unmapped]"]);
}

#[test]
fn what_is_at_an_address_depends_on_the_time() {
    let maps = maps_of(&[
        "maps 10:000000000",
        "map 0x1000 0x2000 0x0 - /bin/program",
        "maps 20:000000000",
        "map 0x5000 0x6000 0x1000 aa /a.so",
        "maps 20:500000000",
        "maps 21:000000000",
        "unmap 0x5000 0x6000",
        "maps 30:000000000",
        "map 0x5000 0x6000 0x1000 bb /b.so",
        // A reading that shows what another thread has put in the place: it is not known when.
        "maps 40:000000000",
        "map 0x5000 0x6000 0x1000 aa /a.so",
        "maps 41:000000000",
        "unmap 0x5000 0x6000",
        "maps 49:000000000",
        "maps 50:000000000",
        "unmap 0x5000 0x6000",
    ]);
    assert!(maps.has_changes());
    let either = "b.so+0x1010 or a.so+0x1010";
    assert_eq!(
        places(&maps, 0x5010, &[1, 19, 20, 21, 29, 30, 39, 40, 41, 49, 50]),
        [
            "a.so+0x1010",
            "a.so+0x1010",
            "a.so+0x1010",
            "b.so+0x1010",
            "b.so+0x1010",
            either,
            either,
            either,
            "a.so+0x1010",
            "a.so+0x1010",
            "[unmapped]"
        ]
    );
    assert_eq!(places(&maps, 0x1010, &[1, 60]), ["program+0x10", "program+0x10"]);
    assert_eq!(maps.identities(0x1010).len(), 1);
    let since = |seconds: u64| maps.unchanged_since(0x5010, seconds * NANOS_PER_SECOND) / NANOS_PER_SECOND;
    assert_eq!([1, 20, 21, 29, 30, 40, 41, 49, 50].map(since), [0, 0, 21, 21, 30, 30, 41, 41, 50]);
}

#[test]
fn a_library_that_is_there_again_is_the_same() {
    let mut lines = vec!["maps 10:0", "map 0x1000 0x2000 0x0 aa /a.so"];
    for _ in 0..3 {
        lines.extend(["maps 20:0", "unmap 0x1000 0x2000", "maps 30:0", "map 0x1000 0x2000 0x0 aa /a.so"]);
    }
    let maps = maps_of(&lines);
    assert_eq!(maps.maps.len(), 1);
    assert_eq!(places(&maps, 0x1010, &[5, 25, 99]), ["a.so+0x10"; 3]);
    // Its file was removed meanwhile, and then another one had its name.
    lines.extend(["maps 40:0", "map 0x1000 0x2000 0x0 aa /a.so\\x20(deleted)", "maps 41:0", "unmap 0x1000 0x2000"]);
    lines.extend(["maps 50:0", "maps 50:0", "unmap 0x1000 0x2000", "maps 60:0", "map 0x1000 0x2000 0x0 bb /a.so"]);
    let maps = maps_of(&lines);
    assert_eq!(maps.identities(0x1010).len(), 2);
    assert_eq!(places(&maps, 0x1010, &[5, 40, 45, 70]), ["a.so+0x10"; 4]);
    lines.extend(["maps 70:0", "map 0x1000 0x2000 0x0 cc /a.so", "maps 71:0", "unmap 0x1000 0x2000"]);
    assert_eq!(places(&maps_of(&lines), 0x1010, &[65]), ["a.so+0x10 or another a.so+0x10"]);
}

#[test]
fn where_libraries_are_missing_only_what_was_never_closed_is_certain() {
    let maps = maps_of(&[
        "maps 10:0",
        "map 0x1000 0x2000 0x0 - /bin/program",
        "map 0x5000 0x6000 0x0 - /a.so",
        "maps 20:0",
        "unmap 0x5000 0x6000",
        "maps 25:0",
        "map 0x5000 0x6000 0x0 - /a.so",
        "maps_partial 30:0",
        "maps 40:0",
        "map 0x7000 0x8000 0x0 - /late.so",
        "maps 50:0",
        "maps 51:0",
        "unmap 0x5000 0x6000",
    ]);
    assert_eq!(places(&maps, 0x1010, &[15, 35]), ["program+0x10"; 2]);
    let uncertain = "a.so+0x10 or another library";
    assert_eq!(places(&maps, 0x5010, &[15, 29, 30, 60]), ["a.so+0x10", "a.so+0x10", uncertain, uncertain]);
    assert_eq!(places(&maps, 0x7010, &[35]), ["late.so+0x10 or another library"]);
    assert_eq!(places(&maps, 0x9000, &[35]), ["[unmapped]"]);
}

#[test]
fn a_trinfo_without_times_is_read_as_before() {
    let maps = maps_of(&["map 0x1000 0x2000 0x0 - /a.so", "map 0x1000 0x2000 0x0 - /b.so"]);
    assert!(!maps.has_changes());
    assert_eq!(places(&maps, 0x1010, &[0, 5]), ["b.so+0x10"; 2]);
    assert_eq!(maps.unchanged_since(0x1010, 5), 0);
    assert_eq!(maps.identities(0x1010).len(), 1);
    // Damage.
    let damaged = maps_of(&["unmap 0x1000", "unmap x y", "maps 5", "maps x:y", "maps 99999999999999999999:0"]);
    assert_eq!(damaged.find(0x1010, 5).place(), "0x1010");
}

#[test]
fn times_are_those_of_the_records() {
    let mut maps = CodeMaps::default();
    let lines: [(&str, &str); 7] = [
        ("maps", "10:0"),
        ("map", "0x1000 0x2000 0x0 aa /a.so"),
        ("maps", "20:5"),
        ("maps", "20:5"),
        ("unmap", "0x1000 0x2000"),
        ("maps", "30:0"),
        ("map", "0x1000 0x2000 0x0 bb /b.so"),
    ];
    lines.iter().for_each(|(key, value)| maps.add_line(key.as_bytes(), value.as_bytes(), 100));
    let at = 20 * NANOS_PER_SECOND + 105;
    assert_eq!([at - 1, at].map(|time| maps.find(0x1010, time).place()), ["a.so+0x10", "b.so+0x10"]);
}

/// The number of its file, and of the build.
type Library = (usize, usize);

/// Threads that open and close libraries at a few addresses, and a recorder that reads which are there.
struct LibraryModel {
    random: SeededRandom,
    now: u64,
    /// The library at each place.
    places: [Option<Library>; 4],
    /// What the recorder has written of each.
    known: [Option<Library>; 4],
    trinfo: Vec<String>,
    /// At which time which library was at which place.
    calls: Vec<(u64, usize, Library)>,
    /// The thread that reads, since when, and what it has read.
    reading: Option<(usize, u64, [Option<Library>; 2])>,
}

#[derive(Clone, Copy)]
enum ThreadStep {
    Open,
    /// Uses the library at this place.
    Use(usize),
    BeginReading(usize, bool),
    EndReading(usize, bool),
    Unmap(usize),
}

impl LibraryModel {
    fn line(&mut self, key: &str, time: u64) {
        self.trinfo.push(format!("{key} {}:{:09}", time / NANOS_PER_SECOND, time % NANOS_PER_SECOND));
    }

    fn range(place: usize) -> (usize, usize) {
        (0x10000 * (place + 1), 0x10000 * (place + 1) + 0x4000)
    }

    /// What a thread does next after this step.
    fn take(&mut self, thread: usize, step: ThreadStep) -> ThreadStep {
        match step {
            ThreadStep::Open => {
                let Some(place) = self.places.iter().position(Option::is_none) else { return ThreadStep::Open };
                self.places[place] = Some((self.random.below(3), self.random.below(2)));
                ThreadStep::Use(place)
            }
            ThreadStep::Use(place) => match self.random.below(3) {
                0 => ThreadStep::BeginReading(place, true),
                _ => {
                    self.calls.push((self.now, place, self.places[place].unwrap()));
                    step
                }
            },
            ThreadStep::BeginReading(place, is_before) => {
                if self.reading.is_some() {
                    return step;
                }
                self.reading = Some((thread, self.now, [self.places[0], self.places[1]]));
                ThreadStep::EndReading(place, is_before)
            }
            ThreadStep::EndReading(place, is_before) => {
                let (_, start, [first, second]) = self.reading.take().unwrap();
                let read = [first, second, self.places[2], self.places[3]];
                self.line("maps", start);
                for (at, _) in read.iter().enumerate().filter(|(at, library)| **library != self.known[*at]) {
                    let Some((file, build)) = read[at] else { continue };
                    let (start, end) = LibraryModel::range(at);
                    self.trinfo.push(format!("map {start:#x} {end:#x} 0x0 b{build} /{file}-{build}.so"));
                }
                self.line("maps", self.now);
                for at in (0..4).filter(|at| self.known[*at].is_some() && read[*at] != self.known[*at]) {
                    let (start, end) = LibraryModel::range(at);
                    self.trinfo.push(format!("unmap {start:#x} {end:#x}"));
                }
                self.known = read;
                if is_before { ThreadStep::Unmap(place) } else { ThreadStep::Open }
            }
            ThreadStep::Unmap(place) => {
                self.places[place] = None;
                ThreadStep::BeginReading(place, false)
            }
        }
    }
}

#[test]
fn a_place_is_the_library_that_was_there_or_one_of_two() {
    let mut random = SeededRandom::seeded("code maps", 3);
    for threads in [1, 1, 2, 3, 4].repeat(12) {
        let random = SeededRandom::seeded_by(random.next());
        let (places, known) = ([None; 4], [None; 4]);
        let (trinfo, calls) = (Vec::new(), Vec::new());
        let mut model = LibraryModel { random, now: 1, places, known, trinfo, calls, reading: None };
        let mut steps = vec![ThreadStep::Open; threads];
        for _ in 0..400 {
            model.now += 1 + model.random.below(2_000_000_000) as u64;
            let thread = model.random.below(threads);
            steps[thread] = model.take(thread, steps[thread]);
        }
        // What is read at the end.
        model.now += 1;
        if model.reading.is_some() {
            model.take(0, ThreadStep::EndReading(0, true));
        }
        model.take(0, ThreadStep::BeginReading(0, true));
        model.take(0, ThreadStep::EndReading(0, true));
        let lines: Vec<&str> = model.trinfo.iter().map(String::as_str).collect();
        let maps = maps_of(&lines);
        let address_in = |place: usize| LibraryModel::range(place).0 as u64 + 0x10;
        let identities = [0, 1, 2, 3].map(|place| maps.identities(address_in(place)));
        let mut certain = 0;
        for (time, place, (file, build)) in &model.calls {
            let address = address_in(*place);
            let (found, expected) = (maps.find(address, *time).place(), format!("{file}-{build}.so+0x10"));
            certain += usize::from(found == expected);
            let is_true = found.split(" or ").any(|one| one == expected);
            assert!(is_true, "{found}, not {expected} at {address:#x} at {time}:\n{}", lines.join("\n"));
            let number = |time: u64| {
                let identities = &identities[*place];
                identities[identities.partition_point(|(from, _)| *from <= time) - 1].1
            };
            let since = if place % 2 == 0 { *time } else { maps.unchanged_since(address, *time) };
            assert_eq!((maps.find(address, since).place(), number(since)), (found.clone(), number(*time)));
            for (other, at, _) in model.calls.iter().filter(|(_, at, _)| at == place).take(5) {
                let is_same = maps.find(address, *other).place() == found;
                assert_eq!(number(*time) == number(*other), is_same, "{at}");
            }
        }
        assert!(certain == model.calls.len() || threads > 1 && certain > model.calls.len() / 4, "{certain}");
    }
}
