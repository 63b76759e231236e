//! `THR_TRACE_EVENTS` and `THR_TRACE_ONLY`: what is recorded, and of whom.

use std::collections::BTreeSet;

use super::super::harness::TestDirectory;
use super::{files, modest, unchanged};

/// What the program makes when everything is recorded, without the start and end of the process.
const ALL: [&str; 17] = [
    "cond_signal",
    "cond_wait",
    "mutex_lock",
    "mutex_unlock",
    "rmutex_init",
    "rmutex_lock",
    "rmutex_unlock",
    "sema_init",
    "sema_post",
    "sema_wait",
    "spin_init",
    "spin_lock",
    "spin_unlock",
    "thr_begin",
    "thr_create",
    "thr_exit",
    "thr_join",
];

/// The names of the events that this list selects, and the messages of the library.
#[track_caller]
fn recorded(list: Option<&str>) -> (BTreeSet<String>, Vec<String>) {
    let test = TestDirectory::new("events");
    let run = test.traced(modest());
    let noise = unchanged(match list {
        Some(list) => run.env("THR_TRACE_EVENTS", list),
        None => run,
    });
    let names: BTreeSet<String> = test.trace().records.iter().map(|record| record.name()).collect();
    if names.is_empty() {
        assert_eq!(files(&test), [""; 0], "files without a record");
    } else {
        let merged = test.merged();
        assert_eq!(merged.records.len(), test.trace().records.len());
    }
    (names, noise)
}

#[track_caller]
fn assert_recorded<'a>(list: &str, expected: impl IntoIterator<Item = &'a str>) {
    let (names, noise) = recorded(Some(list));
    assert_eq!(noise, [""; 0], "{list}");
    assert_eq!(names, expected.into_iter().map(str::to_owned).collect(), "{list}");
}

#[test]
fn unset_is_everything() {
    let (names, noise) = recorded(None);
    assert_eq!(noise, [""; 0]);
    let expected = ALL.into_iter().chain(["proc_exit"]).map(str::to_owned).collect();
    assert_eq!(names, expected);
}

#[test]
fn an_empty_list_is_nothing() {
    assert_recorded("", []);
    assert_recorded(":", []);
}

#[test]
fn a_list_without_a_match_makes_no_file() {
    assert_recorded("barrier:rwlock", []);
    assert_recorded("mutex:-mutex", []);
}

#[test]
fn categories_and_single_events() {
    assert_recorded("mutex", ["mutex_lock", "mutex_unlock"]);
    assert_recorded("mutex:cond_wait:-mutex_unlock", ["mutex_lock", "cond_wait"]);
    assert_recorded("rmutex:thr_join", ["rmutex_init", "rmutex_lock", "rmutex_unlock", "thr_join"]);
    assert_recorded("::spin:", ["spin_init", "spin_lock", "spin_unlock"]);
    // The last word counts.
    assert_recorded(
        "-mutex_lock:mutex_lock:-thread:-process",
        ALL.into_iter().filter(|name| !name.starts_with("thr_")),
    );
}

#[test]
fn a_list_that_starts_with_minus_starts_from_all() {
    let without_mutex = ALL.into_iter().filter(|name| !name.starts_with("mutex_"));
    assert_recorded("-mutex", without_mutex.chain(["proc_exit"]));
    assert_recorded("-process:-spin_lock", ALL.into_iter().filter(|name| *name != "spin_lock"));
}

#[test]
fn underscored_names_are_accepted() {
    assert_recorded("_spin_lock:_sema", ["spin_lock", "sema_init", "sema_post", "sema_wait"]);
    assert_recorded(
        "-_mutex:-_thread:-_process",
        ALL.into_iter().filter(|name| !name.starts_with("mutex_") && !name.starts_with("thr_")),
    );
}

#[test]
fn an_unknown_name_is_reported_once_and_ignored() {
    for (list, unknown) in [("mutexes:mutex", "mutexes"), ("mutex:-mutex_lok", "mutex_lok"), ("mutex: spin", " spin")] {
        let (names, noise) = recorded(Some(list));
        assert_eq!(noise.len(), 1, "{list}: {noise:?}");
        assert!(noise[0].contains(unknown), "{noise:?}");
        let expected: BTreeSet<String> = ["mutex_lock", "mutex_unlock"].map(str::to_owned).into();
        assert_eq!(names, expected, "{list}");
    }
    // Nothing but an unknown name is a list that lets nothing through, which is said.
    let (names, noise) = recorded(Some("all"));
    assert_eq!((names.len(), noise.len()), (0, 2));
    assert!(noise[1].contains("nothing is recorded"), "{noise:?}");
}

#[test]
fn only_the_named_programs_are_recorded() {
    let program = modest();
    let name = program.path().file_name().unwrap().to_str().unwrap().to_owned();
    for (only, recorded) in [
        (name.clone(), true),
        (format!("sort:{name}:xz"), true),
        ("sort:xz".to_owned(), false),
        (name[..name.len() - 1].to_owned(), false),
        (format!("{name}x"), false),
    ] {
        let test = TestDirectory::new("only");
        let noise = unchanged(test.traced(&program).env("THR_TRACE_ONLY", &only));
        assert_eq!(noise, [""; 0], "{only}");
        assert_eq!(!files(&test).is_empty(), recorded, "{only}");
    }
}

/// A program's names are those of its file, of its first argument and of its first thread.
#[test]
fn a_program_is_selected_by_each_of_its_names() {
    let program = modest();
    let file = program.path().file_name().unwrap().to_str().unwrap().to_owned();
    let test = TestDirectory::new("only-names");
    let link = test.directory().join("linked-program");
    std::os::unix::fs::symlink(program.path(), &link).unwrap();
    let script = "exec -a dir/given \"$0\"";
    for only in ["given", "linked-program", &file, "dir", "linked"] {
        let test_of_name = TestDirectory::new("only-name");
        let run = test_of_name.traced("bash").args(["-c", script]).arg(&link);
        assert_eq!(unchanged(run.env("THR_TRACE_ONLY", only)), [""; 0], "{only}");
        let selected = ["given", "linked-program", &file].contains(&only);
        assert_eq!(!files(&test_of_name).is_empty(), selected, "{only}");
    }
}

/// The shell between is not recorded; the program that it runs as its child, or becomes, is.
#[test]
fn thr_trace_only_applies_to_every_image() {
    let program = modest();
    let name = program.path().file_name().unwrap();
    for script in ["exec \"$0\"", "\"$0\"; exit $?"] {
        let test = TestDirectory::new("only-exec");
        let run = test.traced("sh").args(["-c", script]).arg(&program).env("THR_TRACE_ONLY", name);
        assert_eq!(unchanged(run), [""; 0]);
        let merged = test.merged();
        assert_eq!(merged.of("mutex_lock").len(), 2 * 4, "{script}");
        assert!(merged.of("proc_exec").is_empty() && merged.of("proc_fork").is_empty(), "{script}: the shell's own");
    }
}
