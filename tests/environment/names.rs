//! The names of programs and threads, as `trace-cat` shows them.

use std::os::unix::fs::symlink;

use super::{modest, unchanged};
use crate::harness::{Program, TestDirectory};

/// `-F text` and `--stat` of a test's trace.
fn shown(test: &TestDirectory) -> [String; 2] {
    ["-Ftext", "--stat"].map(|option| {
        let output = test.trace_cat().arg(option).run();
        output.success();
        output.stdout_text().to_owned()
    })
}

#[test]
fn titles_and_names_are_shown_as_they_became() {
    let program = Program::c("environment/names.c");
    let test = TestDirectory::new("names");
    let room = "room-for-a-title".repeat(4);
    test.traced(&program).arg(&room).run().success();
    let [text, stat] = shown(&test);
    for line in ["names: main process", "names: child"] {
        assert!(stat.lines().any(|shown| shown.ends_with(line)), "no '{line}':\n{stat}");
    }
    for name in ["by-another/", "a-name-that-is-/", "by-syscall/"] {
        assert!(text.lines().any(|line| line.contains(name)), "no {name}:\n{text}");
    }
    assert_eq!(test.merged().of("thr_setname").len(), 3);
}

#[test]
fn a_program_has_the_name_by_which_it_was_started() {
    let program = modest();
    let test = TestDirectory::new("names-link");
    let link = test.directory().join("linked-program");
    symlink(program.path(), &link).unwrap();
    assert_eq!(unchanged(test.traced(&link)), [""; 0]);
    let [text, _] = shown(&test);
    assert!(text.lines().skip(1).all(|line| line.contains(" linked-program/")), "{text}");
}
