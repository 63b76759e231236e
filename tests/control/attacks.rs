//! Whatever is written into the words: the program goes on, and each record of its trace can be read.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use super::{assert_all_or_none, numbered, set, so_far, stop};
use crate::harness::{SeededRandom, TestDirectory, trace_cat};

#[test]
fn wild_words_only_choose_what_is_recorded() {
    use spec::buffer::{CONTROL_OFFSET, ControlWords};
    let test = TestDirectory::new("control-wild");
    let mut program = numbered(&test, "4 50000").env("THR_TRACE_EVENTS", "thr_setspecific:mutex").spawn();
    program.wait_for("ready");
    let name = format!("trbuf.{:07x}", program.pid() & 0xfff_ffff);
    let path = test.trace_directory().join(name);
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let mut random = SeededRandom::seeded();
    let mut write = || {
        let length = 1 + random.below(size_of::<ControlWords>() as u64);
        let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        let at = random.below(size_of::<ControlWords>() as u64 + 1 - length);
        file.write_all_at(&bytes, CONTROL_OFFSET as u64 + at).unwrap();
        std::thread::sleep(Duration::from_micros(100));
    };
    (0..3000).for_each(|_| write());
    // On a busy machine the threads may have followed few of these.
    while so_far(&test).of("trace_events").len() <= 10 {
        (0..100).for_each(|_| write());
    }
    // The version, as it was.
    file.write_all_at(&1u32.to_le_bytes(), CONTROL_OFFSET as u64).unwrap();
    set(&test, program.pid(), "-e thr_setspecific --stack 0 --level all --detail off --resume");
    stop(&test, program);
    let merged = test.merged();
    assert!(merged.of("trace_events").len() > 10, "{}", merged.records.len());
}

#[test]
fn a_trbuf_with_another_name_or_without_its_process_is_not_changed() {
    let test = TestDirectory::new("control-link");
    let mut program = numbered(&test, "1 50000").env("THR_TRACE_EVENTS", "thr_setspecific").spawn();
    program.wait_for("ready");
    let path = test.trace_directory().join(format!("trbuf.{:07x}", program.pid() & 0xfff_ffff));
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    fs::hard_link(&path, test.directory().join("another")).unwrap();
    let output = test.native(trace_cat()).args(["set", "--pause", &program.pid().to_string()]).run();
    output.exited(1);
    fs::remove_file(test.directory().join("another")).unwrap();
    fs::copy(&path, test.trace_directory().join("trbuf.7777777")).unwrap();
    let output = test.native(trace_cat()).args(["set", "--pause", "--flush"]).arg(test.trace_directory()).run();
    output.success();
    fs::remove_file(test.trace_directory().join("trbuf.7777777")).unwrap();
    stop(&test, program);
    assert_eq!(assert_all_or_none(&test.trace()).0, 1);
}
