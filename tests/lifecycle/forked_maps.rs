//! The mappings in the trinfo of forked children, which take over their parent's where they are the same.

use std::collections::BTreeSet;
use std::fs;

use super::super::harness::{Program, TestDirectory};

/// The files that the trinfos of parent and child have lines of.
struct MappedFiles {
    parent: BTreeSet<String>,
    child: BTreeSet<String>,
}

fn mapped_files(mode: &str) -> MappedFiles {
    let test = TestDirectory::new("maps");
    let output = test.traced(Program::c("lifecycle/forked_maps.c")).arg(mode).run();
    output.exited(0);
    let child: u32 = output.stdout_text().trim_end().strip_prefix("child ").unwrap().parse().unwrap();
    let parent = test.trace().of("proc_fork")[0].fields.pid;
    let of = |pid: u32| {
        let text = fs::read_to_string(test.trace_directory().join(format!("trinfo.{pid:07x}"))).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("map ")).collect();
        let unique: BTreeSet<&str> = lines.iter().copied().collect();
        assert_eq!(lines.len(), unique.len(), "{mode}: a line stands there twice: {text}");
        lines.iter().filter_map(|line| line.split(' ').skip(5).last()).map(str::to_owned).collect()
    };
    MappedFiles { parent: of(parent), child: of(child) }
}

fn has_library(files: &BTreeSet<String>) -> bool {
    files.iter().any(|file| file.contains("libm.so") || file.contains("libm-"))
}

#[test]
fn a_forked_child_has_its_parents_mappings() {
    let files = mapped_files("none");
    assert!(files.parent.len() > 3, "{:?}", files.parent);
    assert_eq!(files.parent, files.child);
    assert!(!has_library(&files.child));
}

/// The parent has not written the new one, and the child, which is killed, is not asked at its end.
#[test]
fn what_the_parent_maps_before_the_fork_is_not_missing_in_a_killed_child() {
    for mode in ["before", "again"] {
        assert!(has_library(&mapped_files(mode).child), "{mode}");
    }
}

#[test]
fn what_a_forked_child_maps_is_written_at_its_end() {
    let files = mapped_files("after");
    assert!(has_library(&files.child) && !has_library(&files.parent));
}
