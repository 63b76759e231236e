//! Unwind information: every hook is described from its first instruction on.

use std::collections::BTreeSet;
use std::process::Command;

use crate::harness;

fn lines(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).arg(harness::library()).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A thread can be cancelled asynchronously at any instruction, and a signal handler may unwind: where a frame is not
/// described, the unwinder takes it for the last one, and the program's cleanup handlers are skipped.
#[test]
fn every_hook_has_a_described_frame() {
    let frames = lines("readelf", &["--debug-dump=frames"]);
    let begins: BTreeSet<&str> =
        frames.lines().filter_map(|line| line.split_once("pc=")?.1.split_once("..")).map(|(start, _)| start).collect();
    let symbols = lines("nm", &["-D", "--defined-only"]);
    let hooks: Vec<&str> = symbols.lines().filter(|line| line.contains(" T ")).collect();
    assert!(hooks.len() >= spec::FUNCTIONS.len(), "{symbols}");
    let bare: Vec<&&str> = hooks.iter().filter(|line| !begins.contains(&line[..16])).collect();
    assert!(bare.is_empty(), "{bare:#?}");
}
