//! Traces in rings: messages about the records that were overwritten.

use std::fs;

use super::trbuf_image::TrbufImage;
use super::{FIRST, SECOND, assert_output, command, run};

const TRBUF: &str = "trbuf.0000001";
const TRINFO: &str = "trinfo.0000001";

/// A thread whose newest record is [`SECOND`], in a ring that has wrapped twice and holds a part of an older record.
fn ring() -> TrbufImage {
    let mut image = TrbufImage::ring(64 * 1024);
    let slot = image.add_slot(3);
    image.put_wrapped_ring(slot, 0, 2, (4096, &FIRST[30..]), SECOND);
    image
}

#[test]
fn overwritten_records_are_reported_and_are_no_damage() {
    let directory = tempfile::tempdir().unwrap();
    ring().write(&directory.path().join(TRBUF));
    fs::write(directory.path().join("tr.0000001.002"), FIRST).unwrap();
    fs::write(directory.path().join(TRINFO), "format 1\ncomplete_from 2 1795174740.000000001\n").unwrap();
    let run_in_time_zone = || command(directory.path()).env("TZ", "XYZ-2").output().unwrap();
    let note = "trace-cat: rings: LWP 3 is complete from 2026-11-20 13:39:00.000000002 (1795174740.000000002) on, \
                1 other before; earlier records were overwritten\n";
    let expected = (format!("{FIRST}{SECOND}"), note);
    assert_output(&run_in_time_zone(), 0, &expected.0, expected.1);
    // Recovery does not change the messages.
    let recovered = "./trbuf.0000001: process 1: 1 records recovered into 1 files\n";
    assert_output(&run(directory.path(), &["--recover"]), 0, recovered, "");
    assert_output(&run_in_time_zone(), 0, &expected.0, expected.1);
}

#[test]
fn of_many_threads_the_latest_is_named_and_each_is_logged() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("tr.0000001.002"), FIRST).unwrap();
    let line = |number| format!("complete_from {} 17951747{number:02}.000000000\n", 2 + 4096 * number);
    let lines: String = (0..100).map(line).collect();
    fs::write(directory.path().join(TRINFO), lines).unwrap();
    let output = run(directory.path(), &[]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), error.lines().count()), (Some(0), 1), "{error}");
    assert!(error.starts_with("trace-cat: rings: LWP 405506 is complete from "), "{error}");
    assert!(
        error.ends_with(" (1795174799.000000000) on, 99 others before; earlier records were overwritten\n"),
        "{error}"
    );
    let output = command(directory.path()).env("RUST_LOG", "info").output().unwrap();
    let logged = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(logged.matches(": LWP ").count(), 101, "{logged}");
}

#[test]
fn a_running_process_has_its_rings_read() {
    let directory = tempfile::tempdir().unwrap();
    ring().write(&directory.path().join(TRBUF));
    let owner = fs::OpenOptions::new().append(true).open(directory.path().join(TRBUF)).unwrap();
    let output = run(directory.path(), &[]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), SECOND);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let (runs, overwrote) = error.split_once('\n').unwrap();
    assert_eq!(runs, "trace-cat: ./trbuf.0000001: process 1 runs; its rings are read as they stand");
    assert!(overwrote.contains("LWP 3 is complete from ") && overwrote.contains("(1795174740.000000002)"), "{error}");
    assert_eq!(output.status.code(), Some(0));
    assert_output(&run(directory.path(), &["--recover"]), 0, "", "");
    drop(owner);
}
