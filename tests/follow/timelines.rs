//! `--follow` with formats of viewers: what is written so far can be opened at any moment.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{follow, go};
use crate::harness::{Program, RunningCommand, TestDirectory};

/// The fields of a protobuf message: number, and value or bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let length = bytes.iter().position(|byte| *byte < 128).expect("the end of a number") + 1;
        let (number, rest) = bytes.split_at(length);
        *bytes = rest;
        number.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 127))
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let (value, length) = match key & 7 {
            0 => (varint(&mut bytes), 0),
            1 => (0, 8),
            2 => (0, varint(&mut bytes) as usize),
            other => panic!("wire type {other}"),
        };
        let (inner, rest) = bytes.split_at_checked(length).expect("whole packets");
        bytes = rest;
        found.push((key >> 3, value, inner));
    }
    found
}

/// How many slices of each track of a Perfetto file begin, how many end, and how long those are that do.
fn slices(file: &[u8]) -> BTreeMap<u64, (u64, u64, u64)> {
    let mut slices = BTreeMap::<_, (u64, u64, u64)>::new();
    for (_, _, packet) in fields(file) {
        let packet = fields(packet);
        let number =
            |fields: &[(u64, u64, &[u8])], tag| fields.iter().find(|field| field.0 == tag).map(|field| field.1);
        let Some((_, _, event)) = packet.iter().find(|field| field.0 == 11) else { continue };
        let (time, event) = (number(&packet, 8).unwrap(), fields(event));
        let track = slices.entry(number(&event, 11).unwrap()).or_default();
        match number(&event, 9).unwrap() {
            1 => (track.0, track.2) = (track.0 + 1, track.2.wrapping_sub(time)),
            2 => (track.1, track.2) = (track.1 + 1, track.2.wrapping_add(time)),
            _ => {}
        }
    }
    slices.retain(|_, sums| sums.0 > 0);
    slices
}

/// The numbers of beginnings and ends of all slices.
fn edges(file: &[u8]) -> (u64, u64) {
    slices(file).values().fold((0, 0), |sum, track| (sum.0 + track.0, sum.1 + track.1))
}

fn start_convoy(test: &TestDirectory) -> RunningCommand {
    let mut program = test.traced(Program::c("follow/convoy.c")).env("THR_TRACE_DETAIL", "1").spawn();
    program.wait_for("ready\n");
    program
}

#[test]
fn a_perfetto_file_can_be_opened_at_any_moment() {
    let test = TestDirectory::new("follow-perfetto");
    let program = start_convoy(&test);
    let mut killed = follow(&test, &["-F", "perfetto"]).spawn();
    killed.wait_for("wait queue_lock");
    killed.wait_for("hold queue_lock");
    // What goes on is written at one moment, in one write.
    killed.signal(libc::SIGKILL);
    let so_far = killed.wait().stdout;
    // The hold of the main thread and the wait of the other one have begun.
    assert_eq!(edges(&so_far), (2, 0));
    let mut follower = follow(&test, &["-F", "perfetto", "--until-exit"]).spawn();
    follower.wait_for("wait queue_lock");
    let mut waits_only = follow(&test, &["-F", "perfetto", "--until-exit", "--blocked"]).spawn();
    waits_only.wait_for("wait queue_lock");
    go(&test);
    program.wait().exited(7);
    let (followed, waits) = (follower.wait(), waits_only.wait());
    let written = test.trace_cat().args(["-F", "perfetto"]).run();
    for output in [&followed, &waits, &written] {
        output.success();
        assert_eq!(output.stderr_text(), "");
    }
    let sums = |file| slices(file).into_values().collect::<Vec<_>>();
    let (mut found, mut expected) = (sums(&followed.stdout), sums(&written.stdout));
    found.sort_unstable();
    expected.sort_unstable();
    // Holds of both threads, the wait for the mutex, and mostly one for the end of the thread, which may have come before.
    let count: u64 = expected.iter().map(|track| track.0).sum();
    assert!((3..=4).contains(&count), "{expected:?}");
    assert_eq!((found, edges(&followed.stdout)), (expected, (count, count)));
    assert_eq!(edges(&waits.stdout), (count - 2, count - 2));
}

#[test]
fn chrome_and_json_are_written_as_it_happens() {
    let test = TestDirectory::new("follow-chrome");
    let program = start_convoy(&test);
    let mut json = follow(&test, &["-F", "json", "--until-exit"]).spawn();
    json.wait_for("mutex_lock");
    let chrome = follow(&test, &["-F", "chrome", "--until-exit"]).spawn();
    let mut killed = follow(&test, &["-F", "chrome"]).spawn();
    go(&test);
    program.wait().exited(7);
    killed.wait_for("\"ph\":\"E\"");
    killed.signal(libc::SIGKILL);
    // The list is not closed.
    let so_far = [&killed.wait().stdout[..], b"]}"].concat();
    let chrome = chrome.wait();
    chrome.success();
    for document in [&so_far, &chrome.stdout] {
        let document: Value = serde_json::from_slice(document).expect("whole events");
        let events = document["traceEvents"].as_array().unwrap();
        assert!(events.iter().any(|event| event["ph"] == "E"), "{document}");
    }
    let json = json.wait();
    json.success();
    let records = json.stdout_text().lines().map(|line| serde_json::from_str::<Value>(line).expect("an object"));
    assert_eq!(records.filter(|record| record["event"] == "mutex_unlock").count(), 2);
}
