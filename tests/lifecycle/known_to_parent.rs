//! What a forked child takes from its parent for its trinfo, and what of that has changed before.

use std::fs;

use super::super::harness::{CommandOutput, Program, TestDirectory};
use super::namespaces;

/// The trinfo of the killed child of `known_to_parent.c`.
fn child_info(what: &str, events: Option<&str>) -> String {
    let test = TestDirectory::new("known");
    let run = test.traced(Program::c("lifecycle/known_to_parent.c")).args([what, "with room for another"]);
    let output = events.into_iter().fold(run, |run, events| run.env("THR_TRACE_EVENTS", events)).run();
    output.exited(0);
    let child = output.stdout_text().trim_end().strip_prefix("child ").unwrap();
    let path = test.trace_directory().join(format!("trinfo.{:07x}", child.parse::<u32>().unwrap()));
    fs::read_to_string(path).unwrap()
}

/// The only command line of a trinfo, its arguments without the zeros behind a shorter one.
fn command_line(info: &str) -> &str {
    let lines: Vec<&str> = info.lines().filter_map(|line| line.strip_prefix("cmdline ")).collect();
    let [line] = lines[..] else { panic!("{info}") };
    line.trim_end()
}

#[test]
fn a_killed_child_has_the_title_that_its_parent_had_at_the_fork() {
    assert_eq!(command_line(&child_info("title", None)), "another\\x20title");
}

/// Its first record is not made by the fork.
#[test]
fn a_killed_child_has_its_own_title() {
    assert_eq!(command_line(&child_info("own-title", Some("mutex"))), "another\\x20title");
}

/// The hook of `fork` has asked the kernel before.
#[test]
fn what_another_thread_maps_within_the_fork_is_not_missing() {
    let info = child_info("thread", None);
    let is_library = |line: &str| line.starts_with("map ") && (line.contains("libm.so") || line.contains("libm-"));
    assert!(info.lines().any(is_library), "{info}");
}

/// Each has the process ID 1 or 2 in its namespace, as its parent's parent has in another one.
#[test]
fn a_grandchild_in_another_namespace_has_that_one() {
    let test = TestDirectory::new("known-namespace");
    let program = Program::c("lifecycle/known_to_parent.c");
    let Some(run) = namespaces::contained(&test, &program) else { return };
    let output: CommandOutput = run.args(["namespace", "room"]).env("THR_TRACE_EVENTS", "mutex").run();
    output.exited(0);
    // The link reads `pid:[INODE]`.
    let inode: String = output.stdout_text().chars().filter(char::is_ascii_digit).collect();
    let info = fs::read_to_string(test.trace_directory().join("trinfo.0000002")).unwrap();
    assert!(info.lines().any(|line| line == format!("pidns {inode}")), "{inode}: {info}");
}

/// It ends with nothing to add to its trinfo, but for all of it.
#[test]
fn a_child_whose_files_were_removed_has_a_new_trinfo() {
    let test = TestDirectory::new("known-removed");
    let run = test.traced(Program::c("lifecycle/known_to_parent.c")).args(["removed", "rm trace/t*"]);
    let output = run.noise_expected().run();
    output.exited(0);
    let child: u32 = output.stdout_text().trim_end().strip_prefix("child ").unwrap().parse().unwrap();
    let info = fs::read_to_string(test.trace_directory().join(format!("trinfo.{child:07x}"))).unwrap();
    assert!(info.contains(&format!("\npid {child}\n")) && info.contains("\nmap "), "{info}");
}

/// Most know it from their parent, those at whose fork the clock's tick has changed from the kernel.
#[test]
fn a_child_knows_when_it_began() {
    for what in ["start", "behind"] {
        let test = TestDirectory::new("known-start");
        let output = test.traced(Program::c("lifecycle/known_to_parent.c")).args([what, "room"]).run();
        if !output.is_permitted("to make a time namespace") {
            continue;
        }
        let children = output.success().stdout_text();
        assert_eq!(children.lines().count(), 400);
        for line in children.lines() {
            let (child, start) = line.split_once(' ').unwrap();
            // Times are the initial namespace's. Of a shift by half a tick it is not known in which of two the child began.
            let start = start.parse::<u64>().unwrap() + u64::from(what == "behind");
            let name = format!("trinfo.{:07x}", child.parse::<u32>().unwrap());
            let info = fs::read_to_string(test.trace_directory().join(name)).unwrap();
            assert!(info.contains(&format!("\nstart {start}\n")), "{what} {line}: {info}");
        }
    }
}
