//! A process whose buffers another one rewrites while it records.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use spec::buffer::SlotLayout;
use spec::names::FileName;

use crate::harness::{Program, SeededRandom, TestDirectory};

/// The exit status of a program that has ended by itself, with its memory as it was.
const DONE: i32 = 7;

/// One program: it neither crashes nor hangs, and writes to no file but those of its trace. Its records are not
/// examined: whoever may write to a trbuf may change them.
pub fn one(random: &mut SeededRandom) -> u64 {
    let test = TestDirectory::new("rewritten");
    let target = test.directory().join("target");
    fs::write(&target, "target").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    let (layout, setting) = match random.below(4) {
        0 => (SlotLayout::ring(64 << 10).unwrap(), Some(("THR_TRACE_RING", "64K"))),
        1 => (SlotLayout::BUFFERS, Some(("THR_TRACE_BUF", "1"))),
        _ => (SlotLayout::BUFFERS, None),
    };
    let mut run = test.traced(Program::c("soak/rewritten.c")).arg(random.below(u64::MAX).to_string());
    run = run.arg(layout.slot_size().to_string()).arg(&target).noise_expected();
    if let Some((name, value)) = setting {
        run = run.env(name, value);
    }
    run.run().exited(DONE);
    assert_eq!(fs::read_to_string(&target).unwrap(), "target", "the file outside was written to");
    let others: Vec<String> = names(test.directory())
        .filter(|name| !["trace", "target"].contains(&name.as_str()))
        .filter(|name| !name.ends_with(".stdout") && !name.ends_with(".stderr"))
        .collect();
    assert!(others.is_empty(), "files outside of the trace: {others:?}");
    for name in names(&test.trace_directory()) {
        assert!(is_of_trace(&name), "{name} in the trace directory");
    }
    1
}

fn names(directory: &Path) -> impl Iterator<Item = String> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap())
}

/// Whether it is the name of a trace's file, or of one that was renamed.
fn is_of_trace(name: &str) -> bool {
    let renamed = name.strip_prefix("old.").and_then(|name| name.split_once('.')).map(|(_, name)| name);
    FileName::parse(renamed.unwrap_or(name).as_bytes()).is_some()
}
