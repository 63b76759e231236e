//! `--recover` as a command: what it prints, and that it may be killed, and run several times at once.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::trbuf_image::TrbufImage;
use super::{FIRST, SECOND, assert_output, command, run, spawn};

const TRBUF: &str = "trbuf.0000001";

/// A record of LWP `lwp`.
fn record(serial: usize, lwp: u32) -> String {
    format!("1795174740:{serial:09}:{lwp:07}:0000001:0x7fc5de3f86c0:02:04:0:{serial}:0:0:0:0\n")
}

/// The trace of a killed process of forty threads, every second one in the middle of a write, and what its files must hold
/// after recovery.
fn killed() -> (TempDir, Vec<(String, String)>) {
    let directory = tempfile::tempdir().unwrap();
    let mut image = TrbufImage::new();
    let files = (1..=40).map(|lwp| {
        let text: String = (0..1000).map(|serial| record(serial, lwp)).collect();
        let half = text[..text.len() / 2].rfind('\n').unwrap() + 1;
        let name = format!("tr.0000001.{lwp:03x}");
        let slot = image.add_slot(lwp);
        let mut pending = None;
        if lwp % 2 == 0 {
            fs::write(directory.path().join(&name), &text[..half / 3]).unwrap();
            pending = Some((0, 0..half));
        }
        image.put_region(slot, 0, &text, 0..text.len(), pending);
        (name, text)
    });
    let files = files.collect();
    image.write(&directory.path().join(TRBUF));
    (directory, files)
}

#[track_caller]
fn assert_recovered(directory: &Path, files: &[(String, String)], when: &str) {
    assert!(!directory.join(TRBUF).exists(), "{when}: the trbuf is still there");
    for (name, text) in files {
        // assert_eq would print megabytes.
        assert!(fs::read_to_string(directory.join(name)).unwrap() == *text, "{when}: {name} has other text");
    }
}

#[test]
fn recovery_prints_what_it_did_and_then_has_nothing_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let image = TrbufImage::with_text(3, SECOND);
    image.write(&directory.path().join(TRBUF));
    fs::write(directory.path().join("tr.0000001.002"), FIRST).unwrap();
    let result = "./trbuf.0000001: process 1: 1 records recovered into 1 files\n";
    assert_output(&run(directory.path(), &["--recover"]), 0, result, "");
    assert_output(&run(directory.path(), &["--recover", "."]), 0, "", "");
    assert_output(&run(directory.path(), &[]), 0, &format!("{FIRST}{SECOND}"), "");
    assert_eq!(fs::read_to_string(directory.path().join("tr.0000001.003")).unwrap(), SECOND);
    let missing = "trace-cat: trbuf.0000001: No such file or directory\n";
    assert_output(&run(directory.path(), &["--recover", TRBUF]), 1, "", missing);
    let wrong = "trace-cat: tr.0000001.002: neither a directory nor a trbuf\n";
    assert_output(&run(directory.path(), &["--recover", "tr.0000001.002"]), 1, "", wrong);
}

#[test]
fn a_running_process_is_left_alone() {
    let (directory, files) = killed();
    // Another process: what this one has open, the children that other tests fork at this moment have open for a while, too.
    let mut owner = Command::new("sh")
        .args(["-c", "exec 3>>\"$1\"; echo open; read -r end", "sh", TRBUF])
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(owner.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "open\n");
    let output = command(directory.path()).arg("--recover").env("RUST_LOG", "info").output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(log.contains("trbuf.0000001: its process runs"), "{log}");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    drop(owner.stdin.take());
    owner.wait().unwrap();
    run(directory.path(), &["--recover"]);
    assert_recovered(directory.path(), &files, "when it has ended");
}

#[test]
fn when_it_is_killed_the_next_recovery_finishes() {
    let seed = match std::env::var("THREADT_SEED").ok().and_then(|text| text.parse().ok()) {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64,
    };
    println!("seed {seed} (set THREADT_SEED to run it again)");
    let mut random = seed | 1;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for round in 0..10 {
        let (directory, files) = killed();
        let mut kills = 0;
        while directory.path().join(TRBUF).exists() {
            let mut child = command(directory.path()).arg("--recover").stdout(Stdio::null()).spawn().unwrap();
            // The limit of the delay grows, so that recovery finishes in the end.
            std::thread::sleep(Duration::from_micros(next() % (2000 * (kills + 1))));
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
        }
        assert_recovered(directory.path(), &files, &format!("round {round}, {kills} kills"));
    }
}

#[test]
fn of_several_at_once_one_recovers() {
    for round in 0..5 {
        let (directory, files) = killed();
        let start = |_| spawn(directory.path(), &["--recover"]);
        let outputs = [1, 2, 3].map(start).map(|child| child.wait_with_output().unwrap());
        for output in &outputs {
            assert_eq!(String::from_utf8_lossy(&output.stderr), "");
            assert_eq!(output.status.code(), Some(0));
        }
        let printed = outputs.iter().filter(|output| !output.stdout.is_empty()).count();
        assert_eq!(printed, 1, "round {round}");
        assert_recovered(directory.path(), &files, &format!("round {round}"));
    }
}

/// A process was killed after it had lost records of a thread that holds a lock, so that nobody knows whether there is a deadlock.
#[test]
fn that_records_were_lost_is_known_after_recovery() {
    for without_slot in [0, 9] {
        let directory = tempfile::tempdir().unwrap();
        let line = |time: u32, lwp: u32, rest: &str| {
            format!("1795174740:{time:09}:{lwp:07}:0000001:0x{lwp:012x}:{rest}:0:0:0\n")
        };
        let lines = |lwp: u32, own: &str| {
            line(10 + lwp, lwp, &format!("02:02:1:{own}:0")) + &line(10 + lwp, lwp, "02:02:2:0:0")
        };
        let mut image = TrbufImage::with_text(1, &lines(1, "0x10"));
        let second = image.add_slot(2);
        image.put_text(second, 0, &lines(2, "0x20"));
        if without_slot == 0 {
            image.set_lost(second, 9, libc::EDQUOT as u32);
        }
        image.set_all_lost(9 - without_slot, without_slot);
        image.write(&directory.path().join(TRBUF));
        fs::write(directory.path().join("trinfo.0000001"), "format 1\npid 1\nlevel all\nevents all\n").unwrap();
        let report = || {
            let output = run(directory.path(), &["report", "--fail-if", "deadlocks > 0", "."]);
            let page = String::from_utf8_lossy(&output.stdout).into_owned();
            let missing = page.lines().find(|line| line.starts_with("missing")).map(str::to_owned);
            (output.status.code(), missing)
        };
        let lost = (Some(2), Some("missing     process 1: 9 records were lost".to_owned()));
        assert_eq!(report(), lost, "{without_slot}");
        for _ in 0..2 {
            run(directory.path(), &["--recover", "."]);
            assert!(!directory.path().join(TRBUF).exists());
            assert_eq!(report(), lost, "{without_slot}: after recovery");
        }
    }
}
