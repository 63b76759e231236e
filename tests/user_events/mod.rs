//! What programs record themselves, by `threadt.h` and by the crate `threadt_events`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use spec::info;

use crate::harness::{Program, Record, TestDirectory, Trace, repository};

/// The IDs of names in all trinfos of a directory, with their texts; and how many trinfos there are.
fn names(test: &TestDirectory) -> (BTreeMap<u64, String>, usize) {
    let (mut names, mut files) = (BTreeMap::new(), 0);
    for entry in fs::read_dir(test.trace_directory()).unwrap().map(Result::unwrap) {
        if entry.file_name().as_encoded_bytes().starts_with(b"trinfo.") {
            files += 1;
            for (id, text) in info::interned_names(&fs::read(entry.path()).unwrap()) {
                names.insert(id, String::from_utf8(text.collect()).unwrap());
            }
        }
    }
    (names, files)
}

/// The event's numbers, which, and arguments; an ID of a name is replaced by its text.
fn shown(record: &Record, names: &BTreeMap<u64, String>) -> String {
    let line: Vec<&str> = record.line.split(':').skip(5).collect();
    let has_name = line[0] == "12" && line[1] >= "90";
    let name = || format!("{:?}", names[&record.fields.arguments[0].bits()]);
    let columns = line.iter().enumerate();
    let columns = columns.map(|(index, text)| if index == 3 && has_name { name() } else { (*text).to_owned() });
    columns.collect::<Vec<String>>().join(":")
}

fn user_records(trace: &Trace) -> Vec<&Record> {
    trace.records.iter().filter(|record| [8, 12].contains(&record.fields.event1)).collect()
}

/// The records of `events.c`. `lock` is the address of its mutex.
fn expected_events(lock: &str) -> Vec<String> {
    let mut expected = vec![format!(r#"12:93:0:"queue \"lock\"\n":{lock}:0:0:0"#)];
    for (round, mark) in [(0, "first"), (1, "last")] {
        expected.push(r#"12:90:1:"work":0:0:0:0"#.to_owned());
        expected.push(format!(r#"12:92:0:"depth":{round}:0:0:0"#));
        expected.push(format!(r#"12:91:0:"{mark}":-5:0:0:0"#));
        expected.push(r#"12:90:2:"work":0:0:0:0"#.to_owned());
    }
    let others = [
        "12:05:0:1:-2:-9223372036854775808:0:1099511627776",
        "12:89:1:1:0:0:0:0",
        "12:89:2:9:0:0:0:0",
        "08:01:0:LOCK:0:3:0:0",
        "08:02:1:LOCK:3:0:0:0",
        "08:02:2:-1:0:0:0:0",
        "08:03:0:LOCK:16:0:0:0",
    ];
    expected.extend(others.map(|text| text.replace("LOCK", lock)));
    expected
}

#[test]
fn all_calls_are_recorded_however_a_program_is_compiled() {
    for (source, flags) in [
        ("events.c", &["-O0"][..]),
        ("events.c", &["-O2", "-pedantic"]),
        ("events.c", &["-O2", "-no-pie", "-fno-pie"]),
        ("events.c", &["-O0", "-no-pie", "-fno-pie"]),
        ("events.c", &["-O2", "-flto"]),
        ("events.c", &["-O2", "-masm=intel"]),
        ("events.cpp", &["-O2", "-pedantic"]),
    ] {
        let program = Program::with_flags(&format!("user_events/{source}"), flags);
        let test = TestDirectory::new("user-events");
        assert_eq!(test.native(&program).arg("last").run().success().stdout_text(), "1\n");
        assert_eq!(test.traced(&program).arg("last").run().success().stdout_text(), "1\n");
        let (trace, (names, _)) = (test.trace(), names(&test));
        let lock = trace.of("mutex_lock")[0].arguments()[0];
        let records: Vec<String> = user_records(&trace).iter().map(|record| shown(record, &names)).collect();
        assert_eq!(records, expected_events(lock), "{source} {flags:?}");
    }
}

#[test]
fn a_static_program_does_without() {
    let program = Program::with_flags("user_events/events.c", &["-O2", "-static"]);
    let test = TestDirectory::new("user-events-static");
    assert_eq!(test.native(&program).arg("last").run().success().stdout_text(), "1\n");
}

#[test]
fn events_are_selected_as_any_others() {
    let program = Program::c("user_events/events.c");
    for (events, expected) in [
        ("mutex", &[][..]),
        ("-user:-barrier_spin", &[]),
        ("user_mark", &["12:91"]),
        ("user_span:barrier_spin_wait", &["08:02", "12:90"]),
        ("user:-user_counter:-user_object", &["12:05", "12:89", "12:90", "12:91"]),
    ] {
        let test = TestDirectory::new("user-events-selected");
        test.traced(&program).env("THR_TRACE_EVENTS", events).arg("last").run().success();
        let trace = test.trace();
        let found: BTreeSet<&str> = user_records(&trace).iter().map(|record| &record.line[52..57]).collect();
        assert_eq!(found.into_iter().collect::<Vec<&str>>(), expected, "{events}");
    }
}

#[test]
fn detail_adds_the_place_of_the_call() {
    let test = TestDirectory::new("user-events-detail");
    test.traced(Program::c("user_events/events.c")).env("THR_TRACE_DETAIL", "1").arg("last").run().success();
    let trace = test.trace();
    for record in user_records(&trace) {
        let numbers = &record.line[52..59];
        let has_caller = !["12:05:0", "12:89:1", "12:89:2", "12:90:2", "08:02:2"].contains(&numbers);
        let caller = record.arguments()[4];
        assert!(caller.starts_with("0x") == has_caller, "{}", record.line);
    }
}

/// Each mark has a value that its name has, too, however many threads and handlers make names at once. Each process that
/// recorded has all names in its own trinfo.
#[test]
fn names_are_right_in_threads_handlers_and_forked_children() {
    let test = TestDirectory::new("user-events-names");
    test.traced(Program::c("user_events/names.c")).arg("300").env("THR_TRACE_EVENTS", "user").run().success();
    let (trace, (names, files)) = (test.trace(), names(&test));
    assert_eq!(files, 3);
    assert_eq!(names.len(), 300);
    let marks = trace.of("user_mark");
    assert!(marks.len() > 4000, "{}", marks.len());
    for mark in marks {
        assert_eq!(names[&mark.get("name_id")], format!("n{}", mark.get("value")), "{}", mark.line);
    }
    for entry in fs::read_dir(test.trace_directory()).unwrap().map(Result::unwrap) {
        if entry.file_name().as_encoded_bytes().starts_with(b"trinfo.") {
            let text = fs::read(entry.path()).unwrap();
            let own: BTreeSet<u64> = info::interned_names(&text).map(|(id, _)| id).collect();
            assert_eq!(own, names.keys().copied().collect(), "{:?}", entry.file_name());
        }
    }
}

/// A process with more names than there is room for goes on, and its trinfo has a note of it.
#[test]
fn too_many_names_are_noted() {
    let test = TestDirectory::new("user-events-many");
    test.traced(Program::c("user_events/names.c")).arg("5000").env("THR_TRACE_EVENTS", "user").run().success();
    let (trace, (names, _)) = (test.trace(), names(&test));
    let marks = trace.of("user_mark");
    let ids: BTreeSet<u64> = marks.iter().map(|mark| mark.get("name_id")).collect();
    assert_eq!(ids.len(), 5000);
    assert!(names.len() > 1000 && names.len() < 2100, "{}", names.len());
    for mark in marks {
        if let Some(name) = names.get(&mark.get("name_id")) {
            assert_eq!(*name, format!("n{}", mark.get("value")));
        }
    }
    let infos = fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().path());
    let texts =
        infos.filter(|path| path.to_string_lossy().contains("trinfo.")).map(|path| fs::read_to_string(path).unwrap());
    assert!(texts.into_iter().any(|text| text.contains("\nnote some names of the program's own events are not here")));
}

/// The views show the texts of names, and the report calls a lock by the name that the program has given it.
#[test]
fn views_and_the_report_show_names() {
    let test = TestDirectory::new("user-events-views");
    test.traced(Program::c("user_events/events.c")).arg("last").run().success();
    let view = |arguments: &[&str]| test.trace_cat().args(arguments).run().success().stdout_text().to_owned();
    let text = view(&["-F", "text", "-e", "user"]);
    for expected in
        ["> user_span(\"work\")", "user_mark(\"last\", value=-5)", "user_object(\"queue \\\"lock\\\"\\n\", object=0x"]
    {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(view(&["-F", "json", "-e", "user_counter"]).contains("\"name\":\"depth\",\"value\":1}"));
    assert!(view(&["-F", "json", "--calls", "-e", "user_span"]).contains("\"name\":\"work\"}"));
    assert!(view(&["-F", "csv", "-e", "user_mark"]).contains(",name_id value,\"first\"\n"));
    let report =
        test.native(crate::harness::trace_cat()).arg("report").args(["-F", "json"]).arg(test.trace_directory()).run();
    assert!(report.success().stdout_text().contains(r#""queue \"lock\"\\n""#), "{}", report.stdout_text());
}

#[test]
fn a_program_finds_the_header_by_pkg_config() {
    let test = TestDirectory::new("pkg-config");
    let root = test.directory().join("root");
    let make = test.native("make").arg("-C").arg(repository()).arg("install-headers");
    make.arg(format!("DESTDIR={}", root.display())).arg("PREFIX=/usr").run().success();
    let ask = |option: &str| {
        let ask = test.native("pkg-config").args([option, "threadt"]);
        let ask = ask.env("PKG_CONFIG_PATH", root.join("usr/lib/pkgconfig")).env("PKG_CONFIG_SYSROOT_DIR", &root);
        ask.run().success().stdout_text().trim().to_owned()
    };
    assert_eq!(ask("--modversion"), env!("CARGO_PKG_VERSION"));
    let include = format!("-I{}", root.join("usr/include").display());
    assert_eq!(ask("--cflags"), include);
    let source = "#include <threadt.h>\nint main(void) { threadt_begin(\"a\"); return 0; }\n";
    fs::write(test.directory().join("a.c"), source).unwrap();
    for standard in ["-std=c89", "-std=c99", "-std=c2x"] {
        test.native("gcc").args([standard, "-pedantic", "-Wall", "-Werror", &include, "a.c"]).run().success();
    }
}

/// The processor may read its clock before it has taken the lock, which a fence prevents.
#[test]
fn what_a_lock_of_the_program_orders_is_in_order() {
    let program = Program::with_flags("user_events/counted.c", &["-O2"]);
    let test = TestDirectory::new("user-events-counted");
    let run = test.traced(&program).env("THR_TRACE_EVENTS", "user").run();
    let counted: u64 = run.success().stdout_text().trim().parse().unwrap();
    let merged = test.native(crate::harness::trace_cat()).arg(test.trace_directory()).run();
    let trace = Trace::parse("merged", &merged.success().stdout);
    for (event2, argument) in [(1, 0), (92, 1)] {
        let records = user_records(&trace).into_iter().filter(|record| record.fields.event2 == event2);
        let values: Vec<u64> = records.map(|record| record.fields.arguments[argument].bits()).collect();
        let unordered = values.windows(2).find(|pair| pair[1] != pair[0] + 1);
        assert_eq!((values.len() as u64, unordered), (counted, None), "event {event2}");
    }
}

#[test]
fn a_rust_program_records_by_the_crate() {
    let test = TestDirectory::new("user-events-rust");
    let compile = |arguments: &[&str]| {
        let mut command = Command::new("rustc");
        command.args(["--edition", "2024", "-O"]).args(arguments).current_dir(test.directory());
        assert!(command.status().unwrap().success(), "{command:?}");
    };
    let path = |name: &str| repository().join(name).to_str().unwrap().to_owned();
    compile(&["--crate-type", "rlib", "--crate-name", "threadt_events", &path("threadt/src/lib.rs")]);
    compile(&["--extern", "threadt_events=libthreadt_events.rlib", &path("tests/programs/user_events/program.rs")]);
    let program = test.directory().join("program");
    assert_eq!(test.native(&program).run().success().stdout_text(), "1\n");
    let run = test.traced(&program).env("THR_TRACE_EVENTS", "user").run();
    assert_eq!(run.success().stdout_text(), "1\n");
    let (trace, (names, _)) = (test.trace(), names(&test));
    let records: Vec<String> = user_records(&trace).iter().map(|record| shown(record, &names)).collect();
    let expected = [
        r#"12:90:1:"work":0:0:0:0"#,
        r#"12:92:0:"depth":-3:0:0:0"#,
        r#"12:90:2:"work":0:0:0:0"#,
        r#"12:91:0:"work":5:0:0:0"#,
        "12:07:0:1:-2:3:4:-9223372036854775808",
        "12:08:1:1:0:0:0:0",
        "12:08:2:0:0:0:0:0",
    ];
    assert!(records[0].starts_with(r#"12:93:0:"lock 7":0x"#), "{}", records[0]);
    assert_eq!(records[1..], expected);
}

/// The names and values of all marks, sorted.
fn named_marks(test: &TestDirectory) -> Vec<(String, u64)> {
    let (trace, (names, _)) = (test.trace(), names(test));
    let mut marks: Vec<(String, u64)> = trace
        .of("user_mark")
        .iter()
        .map(|mark| (names.get(&mark.get("name_id")).cloned().unwrap_or_default(), mark.get("value")))
        .collect();
    marks.sort();
    marks
}

#[test]
fn names_are_known_after_an_exec_and_a_dlclose_in_vfork_children_and_in_two_processes() {
    let program = Program::c("user_events/conditions.c");
    let library = Program::with_flags("user_events/conditions.c", &["-shared", "-fPIC", "-DLIBRARY"]);
    let in_library = [0, 0, 1, 1, 2, 2].map(|value| ("in a library", value));
    for (argument, expected) in [
        ("exec", &[("after the exec", 2), ("before the exec", 1), ("in both", 1), ("in both", 2)][..]),
        ("vfork", &[("in the child", 1), ("in the parent", 1), ("in the parent", 2)]),
        ("fork", &[("in both", 1), ("in both", 2)]),
        (library.path().to_str().unwrap(), &in_library),
    ] {
        let test = TestDirectory::new("user-events-conditions");
        test.traced(&program).arg(argument).env("THR_TRACE_EVENTS", "user").run().success();
        let expected: Vec<(String, u64)> = expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        assert_eq!(named_marks(&test), expected, "{argument}");
    }
}

#[test]
fn every_recorded_name_is_known_where_recording_stops_at_a_limit() {
    let test = TestDirectory::new("user-events-limit");
    let run = test.traced(Program::c("user_events/names.c")).arg("300").env("THR_TRACE_EVENTS", "user");
    run.env("THR_TRACE_MAX", "64K").noise_expected().run().success();
    let marks = named_marks(&test);
    assert!(!marks.is_empty() && marks.iter().all(|(name, value)| *name == format!("n{value}")), "{marks:?}");
}
