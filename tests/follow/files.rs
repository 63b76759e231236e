//! Files that appear, grow, disappear and come back while they are followed, and files that no recorder would write.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{assert_contiguous, assert_same, end, files, follow, go, posts};
use crate::harness::{SeededRandom, TestDirectory, trace_cat};

/// The current time plus `seconds`, nanoseconds since the Epoch.
fn now(seconds: i64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    now.saturating_add_signed(seconds * 1_000_000_000)
}

/// A post with this number by process 1 and LWP 1.
fn post(time: u64, number: u64) -> String {
    let (seconds, nanoseconds) = (time / 1_000_000_000, time % 1_000_000_000);
    format!("{seconds:010}:{nanoseconds:09}:0000001:0000001:0x7fc5de3f86c0:04:04:0:0x10:0:{number}:0:0\n")
}

fn append(path: &Path, text: &str) {
    OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_file_that_is_written_by_hand_is_printed_line_by_line() {
    let test = TestDirectory::new("follow-hand");
    let path = test.trace_directory().join("tr.0000001.001");
    append(&path, &post(now(-100), 0));
    let mut follower = follow(&test, &["-F", "csv"]).spawn();
    follower.wait_for(",0x10,0,0,0,0,");
    for number in 1..4 {
        let line = post(now(0), number);
        let (first, second) = line.split_at(20 + number as usize * 17);
        append(&path, first);
        // The beginning of a line is no record: it becomes one, and is printed, when its end is written.
        let other = test.trace_directory().join("tr.0000001.002");
        append(&other, &post(now(0), 100 + number));
        follower.wait_for(&format!(",0x10,0,{},0,0,", 100 + number));
        append(&path, second);
        follower.wait_for(&format!(",0x10,0,{number},0,0,"));
    }
    append(&path, "rubbish\n");
    append(&path, &post(now(-10), 7));
    append(&path, &post(now(0), 8));
    follower.wait_for(",0x10,0,8,0,0,");
    let output = end(follower);
    output.exited(1);
    let late: Vec<(&str, bool)> = (output.stdout_text().lines().skip(1))
        .map(|line| (line.split(',').nth(9).unwrap(), line.ends_with(",1")))
        .collect();
    let late_ones: Vec<&str> = late.iter().filter(|(_, late)| *late).map(|(number, _)| *number).collect();
    assert!(late_ones.contains(&"7") && !late_ones.contains(&"0"), "{late:?}");
    assert_eq!(late.len(), 9);
    let messages = output.stderr_text();
    assert!(messages.contains("tr.0000001.001: byte ") && messages.contains("not a record"), "{messages}");
    assert!(messages.contains(" arrived later than the window of "), "{messages}");
}

/// The records from before are not read.
#[test]
fn times_count_from_the_first_record_also_from_now_on() {
    let test = TestDirectory::new("follow-origin");
    let path = test.trace_directory().join("tr.0000001.001");
    let first = now(-100);
    append(&path, &post(first, 0));
    let mut follower = follow(&test, &["--since", "now", "-F", "text"]).spawn();
    for number in 1.. {
        append(&path, &post(now(0), number));
        if follower.stdout().windows(10).any(|text| text == b"sema_post(") {
            break;
        }
        assert!(!follower.has_ended());
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = end(follower);
    let line = output.stdout_text().lines().find(|line| line.contains("sema_post(")).unwrap();
    let seconds: f64 = line.split_whitespace().next().unwrap().parse().unwrap();
    assert!(seconds >= 100.0, "{line}");
}

/// A clock that is an hour ahead delays neither its own records nor those of others.
#[test]
fn a_clock_far_ahead_holds_up_nothing() {
    let test = TestDirectory::new("follow-ahead");
    let [ahead, right] = ["tr.0000001.001", "tr.0000001.002"].map(|name| test.trace_directory().join(name));
    append(&ahead, &post(now(3600), 0));
    let mut follower = follow(&test, &[]).spawn();
    follower.wait_for(":0:0:0\n");
    append(&ahead, &post(now(3600), 1));
    follower.wait_for(":1:0:0\n");
    append(&right, &post(now(0), 2));
    follower.wait_for(":2:0:0\n");
    let output = end(follower);
    output.success();
    assert_eq!(output.stdout_text().lines().count(), 3);
}

#[test]
fn files_that_are_removed_or_replaced_are_printed_to_their_end() {
    let test = TestDirectory::new("follow-removed");
    let path = test.trace_directory().join("tr.0000001.001");
    let mut follower = follow(&test, &[]).spawn();
    let mut further = 2000..;
    for number in 0..20 {
        // The file has to be open when it is removed, and trace-cat may close one that was not written for a second.
        let mut last = 3 * number;
        loop {
            let began = Instant::now();
            append(&path, &post(now(0), last));
            follower.wait_for(&format!(":0:{last}:0:0\n"));
            follower.signal(libc::SIGSTOP);
            if began.elapsed() < Duration::from_millis(900) {
                break;
            }
            follower.signal(libc::SIGCONT);
            last = further.next().unwrap();
        }
        // A record that is appended just before the end of a file is printed as well.
        append(&path, &post(now(0), 3 * number + 1));
        match number % 3 {
            0 => fs::remove_file(&path).unwrap(),
            1 => fs::rename(&path, test.directory().join("elsewhere")).unwrap(),
            _ => {
                let new = test.directory().join("new");
                append(&new, &post(now(0), 3 * number + 2));
                fs::rename(new, &path).unwrap();
            }
        }
        follower.signal(libc::SIGCONT);
        if number % 3 == 2 {
            follower.wait_for(&format!(":0:{}:0:0\n", 3 * number + 2));
        }
    }
    append(&path, &post(now(0), 1000));
    follower.wait_for(":0:1000:0:0\n");
    let output = end(follower);
    output.success();
    let mut numbers: Vec<u64> =
        output.stdout_text().lines().map(|line| line.split(':').nth(10).unwrap().parse().unwrap()).collect();
    numbers.retain(|&number| number < 2000);
    numbers.sort_unstable();
    let expected: Vec<u64> = (0..60).filter(|number| number % 9 != 2 && number % 9 != 5).chain([1000]).collect();
    assert_eq!(numbers, expected);
}

#[test]
fn following_goes_on_where_a_file_was_truncated() {
    let test = TestDirectory::new("follow-truncated");
    let path = test.trace_directory().join("tr.0000001.001");
    let mut follower = follow(&test, &[]).spawn();
    for number in 0..4 {
        append(&path, &post(now(0), number));
    }
    follower.wait_for(":0:3:0:0\n");
    File::create(&path).unwrap();
    for number in 4..7 {
        append(&path, &post(now(0), number));
        follower.wait_for(&format!(":0:{number}:0:0\n"));
    }
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(post(0, 0).len() as u64 + 10).unwrap();
    // The file must not grow again before the follower has noticed that it was truncated. A record in another file shows when.
    append(&path.with_extension("002"), &post(now(0), 7));
    follower.wait_for(":0:7:0:0\n");
    append(&path, &post(now(0), 8));
    append(&path, &post(now(0), 9));
    follower.wait_for(":0:9:0:0\n");
    let output = end(follower);
    output.success();
    assert_eq!(output.stdout_text().lines().count(), 10);
}

/// The recorder's own files are taken away while it runs: what it records later goes to new ones.
#[test]
fn a_process_whose_files_are_removed_is_followed_on() {
    let test = TestDirectory::new("follow-robbed");
    let mut follower = follow(&test, &[]).spawn();
    let mut program = posts(&test, "posts 9 go posts 7 thread 3").env("THR_TRACE_BUF", "1").spawn();
    program.wait_for("ready\n");
    follower.wait_for(":8:0:0\n");
    files(&test, "tr.").iter().for_each(|path| fs::remove_file(path).unwrap());
    go(&test);
    program.wait().exited(7);
    follower.wait_for(":2:0:0\n");
    let output = end(follower);
    output.success();
    let mut counts = assert_contiguous(&output.stdout);
    counts.sort_unstable();
    assert_eq!(counts, [3, 7, 9]);
}

#[test]
fn a_directory_may_be_emptied_and_made_anew() {
    let test = TestDirectory::new("follow-emptied");
    let mut follower = follow(&test, &[]).spawn();
    for round in 0..4 {
        posts(&test, &format!("fork 3 thread 10 posts {}", 2000 + round)).run().exited(7);
        follower.wait_for(&format!(":{}:0:0\n", 1999 + round));
        let directory = test.trace_directory();
        if round % 2 == 0 {
            files(&test, "").iter().for_each(|path| fs::remove_file(path).unwrap());
        } else {
            fs::remove_dir_all(&directory).unwrap();
            fs::create_dir(&directory).unwrap();
        }
    }
    let output = end(follower);
    output.success();
    let mut counts = assert_contiguous(&output.stdout);
    counts.sort_unstable();
    assert_eq!(counts, [3, 3, 3, 3, 10, 10, 10, 10, 2000, 2001, 2002, 2003]);
}

/// Buffers that no recorder leaves, and that change while they are read, do no harm: all other records are printed.
#[test]
fn damaged_buffers_do_no_harm() {
    let mut random = SeededRandom::seeded();
    let test = TestDirectory::new("follow-garbage");
    let mut program = posts(&test, "posts 300 stay 20 go").spawn();
    program.wait_for("ready\n");
    let original = fs::read(&files(&test, "trbuf.")[0]).unwrap();
    let rings = TestDirectory::new("follow-garbage-rings");
    let mut ring = posts(&rings, "posts 3000 go").env("THR_TRACE_RING", "64K").spawn();
    ring.wait_for("ready\n");
    let ring_original = fs::read(&files(&rings, "trbuf.")[0]).unwrap();
    let mut follower = follow(&test, &[]).spawn();
    // Kept open, so that they seem to belong to processes that run.
    let damaged: Vec<File> = (0..12)
        .map(|number| {
            let path = test.trace_directory().join(format!("trbuf.00000{number:02x}"));
            let mut bytes = if number % 2 == 0 { original.clone() } else { ring_original.clone() };
            if number > 7 {
                bytes.truncate(random.below(bytes.len() as u64) as usize);
            }
            fs::write(&path, bytes).unwrap();
            OpenOptions::new().write(true).open(path).unwrap()
        })
        .collect();
    for _ in 0..300 {
        for file in &damaged {
            let length = file.metadata().unwrap().len();
            // Mostly the words of the first slots; their text seldom.
            let near = [4096, 266_240, 266_240 + 4096, length.max(1)][random.below(4) as usize];
            let value = match random.below(4) {
                0 => random.below(u64::MAX),
                1 => random.below(200_000) << 32 | random.below(200_000),
                2 => random.below(256 << 10),
                _ => u64::MAX,
            };
            let at = random.below(near.min(length.max(1))).max(128) & !7;
            file.write_all_at(&value.to_le_bytes(), at).unwrap();
            if random.below(200) == 0 {
                file.set_len(random.below(length.max(1))).unwrap();
            }
        }
        std::thread::sleep(Duration::from_millis(2));
        assert!(!follower.has_ended());
    }
    drop(damaged);
    for test in [&test, &rings] {
        go(test);
    }
    ring.wait().exited(7);
    program.wait().exited(7);
    posts(&test, "posts 11").run().exited(7);
    follower.wait_for(":10:0:0\n");
    let output = end(follower);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    assert!(output.stdout.ends_with(b"\n"));
}

/// With a handful of descriptors files are opened as they are read.
#[test]
fn few_descriptors_are_enough() {
    let test = TestDirectory::new("follow-descriptors");
    let line = "ulimit -n 48; exec \"$0\" --follow --until-exit --window 30s trace";
    let follower = test.native("/bin/sh").args(["-c", line]).arg(trace_cat()).spawn();
    let programs: Vec<_> =
        (0..6).map(|count| posts(&test, &format!("posts 4000 thread {count} fork 5000 go thread 3")).spawn()).collect();
    for mut program in programs {
        program.wait_for("ready\n");
    }
    go(&test);
    let output = follower.wait();
    output.success();
    assert_same(&output.stdout, &test.trace_cat().run().stdout);
}
