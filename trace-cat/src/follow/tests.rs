//! Processes that begin and end while following starts, a step at a time.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::mem::offset_of;

use spec::buffer::{Header, SLOTS_OFFSET};

use super::*;
use crate::options::{Following, Printing, RunChoice};
use crate::support::diagnostics::tests::recorded_diagnostics;
use crate::testing::test_trace::{TRBUF, TestTrace, record};
use crate::testing::trbuf_image::TrbufImage;

/// A directory with a trbuf and a record file, and what following it prints.
pub(super) struct FollowFixture {
    pub(super) trace: TestTrace,
    pub(super) journal: tempfile::NamedTempFile,
}

impl FollowFixture {
    fn new(file: &str, trbuf: &[u8]) -> FollowFixture {
        let fixture = FollowFixture::empty();
        fixture.trace.file("tr.0000001.002", file).file(TRBUF, trbuf);
        fixture
    }

    pub(super) fn empty() -> FollowFixture {
        FollowFixture { trace: TestTrace::new(), journal: tempfile::NamedTempFile::new().unwrap() }
    }

    pub(super) fn options(&self) -> Options {
        let printing = Printing { output: Some(self.journal.path().to_owned()), ..Printing::default() };
        let mut options = Options::records_of(self.trace.path(""), RunChoice::default(), printing);
        options.following = Following { follow: true, until_exit: true, ..Following::default() };
        // The journal has all records. Nothing is printed to the standard output of the test.
        options.selection.head = Some(0);
        options
    }

    /// Follows for `rounds` rounds, or until all processes have ended, and calls `meanwhile` between the search for existing
    /// files and the merge. Returns the records and the messages.
    fn follow(&self, rounds: usize, meanwhile: impl FnOnce()) -> (String, String) {
        self.follow_steps(meanwhile, |follow| {
            for _ in 0..rounds {
                follow.read_new();
                if follow.has_ended() {
                    follow.read_last();
                    break;
                }
            }
        })
    }

    /// Does the same with `steps` instead of rounds.
    pub(super) fn follow_steps(&self, meanwhile: impl FnOnce(), steps: impl FnOnce(&mut Follower)) -> (String, String) {
        let (options, (diagnostics, messages)) = (self.options(), recorded_diagnostics());
        let (mut follow, texts) =
            Follower::start(&options, 0, &diagnostics).unwrap_or_else(|error| panic!("{error:?}"));
        meanwhile();
        let mut printer = Printer::new(&options.printing, &options.selection, &options.paths, &diagnostics).unwrap();
        follow.leave_out_outputs(&options);
        follow.catch_up(texts, u64::MAX, &mut printer).unwrap();
        steps(&mut follow);
        follow.release((u64::MAX, monotonic()), true, &mut printer).unwrap();
        printer.end(&[]).unwrap();
        (fs::read_to_string(self.journal.path()).unwrap(), messages.text())
    }
}

fn lines() -> [String; 3] {
    [1, 2, 3].map(|time| record(time, 2, "02:04:0", time))
}

/// The trbuf of a process that died while it wrote the second line; the third one is in the buffer only.
fn killed_in_a_write(lines: &[String; 3]) -> TrbufImage {
    let mut image = TrbufImage::new();
    let slot = image.add_slot(2);
    let text = lines[1..].concat();
    let second = lines[1].len();
    image.put_region(slot, 0, &text, second..text.len(), Some((lines[0].len() as u64, 0..second)));
    image.set_file_end(2, lines[0].len() + second);
    image
}

/// The output has the name of a record file, and is made before the first process.
#[test]
fn an_output_in_the_directory_is_no_process_that_has_ended() {
    let trace = TestTrace::new();
    let journal =
        tempfile::Builder::new().prefix("tr.0000007.").suffix("007").rand_bytes(0).tempfile_in(trace.path(""));
    let fixture = FollowFixture { trace, journal: journal.unwrap() };
    fs::remove_file(fixture.journal.path()).unwrap();
    let lines = lines().concat();
    let steps = |follow: &mut Follower| {
        for _ in 0..10 {
            follow.read_new();
            assert!(!follow.has_ended());
        }
        fixture.trace.file("tr.0000001.002", &lines);
        for _ in 0..10 {
            follow.read_new();
        }
        assert!(follow.has_ended());
    };
    assert_eq!(fixture.follow_steps(|| (), steps), (lines.clone(), String::new()));
}

#[test]
fn a_process_that_begins_and_is_killed_during_the_start_leaves_no_incomplete_record() {
    let lines = lines();
    let written = lines.concat();
    let torn = &written[..lines[0].len() + 7];
    let fixture = FollowFixture::new(torn, &[0; SLOTS_OFFSET]);
    // The process has the trbuf open, and has not yet written its header.
    let mut process = OpenOptions::new().write(true).open(fixture.trace.path(TRBUF)).unwrap();
    let (records, messages) = fixture.follow(1000, || {
        process.write_all(&killed_in_a_write(&lines).bytes).unwrap();
        drop(process);
    });
    assert_eq!((records, &*messages), (written, ""));
}

/// Makes this process the owner of a trbuf: `/proc` shows it, whatever the leases show.
fn own(image: &mut TrbufImage) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start: u64 = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
    let namespace = std::os::unix::fs::MetadataExt::ino(&fs::metadata("/proc/self/ns/pid").unwrap());
    let boot = fs::read("/proc/sys/kernel/random/boot_id").unwrap();
    image.put(offset_of!(Header, pid), &std::process::id().to_le_bytes());
    image.put(offset_of!(Header, start_time), &start.to_le_bytes());
    image.put(offset_of!(Header, pid_namespace), &namespace.to_le_bytes());
    image.put(offset_of!(Header, boot_id), boot.trim_ascii());
}

/// A trace of [`killed_in_a_write`], whose owner is this process and has not mapped it; `None` where leases cannot show that.
fn unmapped_trace(lines: &[String; 3]) -> Option<FollowFixture> {
    let mut image = killed_in_a_write(lines);
    own(&mut image);
    let fixture = FollowFixture::new(&lines.concat()[..lines[0].len() + 7], &image.bytes);
    if has_writer(&file_handle::open(&fixture.trace.path(TRBUF)).unwrap()) == Some(false) {
        return Some(fixture);
    }
    println!("the file system of the temporary directory has no leases to test");
    None
}

#[test]
fn an_ending_process_whose_leftovers_were_merged_has_each_record_once() {
    let lines = lines();
    let Some(fixture) = unmapped_trace(&lines) else { return };
    assert_eq!(fixture.follow(20, || ()), (lines.concat(), String::new()));
}

/// The start takes a process that executes another program for dead, and then the new image writes what it has found.
#[test]
fn what_the_next_image_writes_of_the_leftovers_is_printed_once() {
    let lines = lines();
    let Some(fixture) = unmapped_trace(&lines) else { return };
    let (written, new) = (lines.concat(), record(4, 2, "02:04:0", 4));
    let steps = |follow: &mut Follower| {
        follow.read_new();
        // The new image repeats the noted write, and appends the rest; then it records.
        let _process = fixture.trace.open_trbuf_as_owner();
        fixture.trace.file("tr.0000001.002", &written);
        let mut image = TrbufImage::new();
        own(&mut image);
        let slot = image.add_slot(2);
        image.put_text(slot, 0, &new);
        image.set_file_end(2, written.len());
        fixture.trace.file(TRBUF, image.bytes);
        for _ in 0..20 {
            follow.read_new();
        }
    };
    assert_eq!(fixture.follow_steps(|| (), steps), (written.clone() + &new, String::new()));
}

/// A short process ends between two steps of a round. Its record file has the inode number of a trbuf that was removed since the
/// directory was read, or of one that was there at the start.
#[test]
fn a_file_with_the_number_of_a_removed_trbuf_is_read_once() {
    for is_there_at_the_start in [false, true] {
        let (lines, fixture) = (lines().concat(), FollowFixture::empty());
        let other = fixture.trace.path("trbuf.0000007");
        let make_other = || fs::write(&other, [0; SLOTS_OFFSET]).unwrap();
        if is_there_at_the_start {
            make_other();
        }
        let steps = |follow: &mut Follower| {
            if !is_there_at_the_start {
                make_other();
            }
            fixture.trace.file(TRBUF, TrbufImage::with_text(2, &lines).bytes);
            let process = fixture.trace.open_trbuf_as_owner();
            follow.read_new();
            assert_eq!(follow.intake.window.count, 3, "the records are read in the buffer");
            // The process writes them to its file, and ends; renaming keeps the inode number.
            fs::write(&other, &lines).unwrap();
            fs::rename(&other, fixture.trace.path("tr.0000001.002")).unwrap();
            let mut image = TrbufImage::new();
            let slot = image.add_slot(2);
            image.put_region(slot, 0, &lines, lines.len()..lines.len(), None);
            image.set_file_end(2, lines.len());
            fixture.trace.file(TRBUF, image.bytes);
            fs::remove_file(fixture.trace.path(TRBUF)).unwrap();
            drop(process);
            follow.read_sources();
            assert!(follow.processes.is_empty());
            for _ in 0..3 {
                follow.read_new();
            }
        };
        assert_eq!(fixture.follow_steps(|| (), steps), (lines.clone(), String::new()), "{is_there_at_the_start}");
    }
}

/// Follows a thread that records and writes more than can be remembered, without reading the directory. `file` returns
/// the bytes of the file for the text that was written. Fails unless each record is printed once after the last is there.
#[track_caller]
fn assert_much_is_printed_once(file: fn(&str) -> Vec<u8>) {
    const ROUNDS: u64 = 30;
    const ROUND: u64 = 1000;
    let (fixture, mut written, mut in_file) = (FollowFixture::empty(), String::new(), 0);
    fixture.trace.file(TRBUF, TrbufImage::new().bytes);
    let _process = fixture.trace.open_trbuf_as_owner();
    let steps = |follow: &mut Follower| {
        for round in 0..ROUNDS {
            let new: String =
                (round * ROUND..(round + 1) * ROUND).map(|time| record(time, 2, "02:04:0", time)).collect();
            let mut image = TrbufImage::new();
            let slot = image.add_slot(2);
            image.put_text(slot, 0, &new);
            image.set_file_end(2, written.len());
            fixture.trace.file(TRBUF, image.bytes);
            if round > 0 {
                fixture.trace.file("tr.0000001.002", file(&written));
            }
            follow.read_sources();
            in_file = written.len();
            written += &new;
        }
        fixture.trace.file("tr.0000001.002", &written[..in_file]);
        for _ in 0..3 {
            follow.read_new();
        }
    };
    let (records, messages) = fixture.follow_steps(|| (), steps);
    assert_eq!((records.lines().count() as u64, &*messages), (ROUNDS * ROUND, ""));
    assert!(records == written, "the records are those that were made");
}

/// A directory that takes long to read is read seldom.
#[test]
fn a_file_that_the_directory_does_not_show_yet_is_read() {
    assert_much_is_printed_once(|written| written.into());
}

/// Of two threads that share a file, one is stopped in the middle of a write.
#[test]
fn a_file_with_a_range_that_is_written_late_is_read_once() {
    assert_much_is_printed_once(|written| {
        let hole = lines()[0].len() * 10;
        [&vec![0; hole], &written.as_bytes()[hole..]].concat()
    });
}

/// A process that has ended leaves its trbuf, which has other records then, to the next one.
#[test]
fn the_next_owner_of_a_trbuf_has_its_records_printed_once_and_as_its_own() {
    let lines = lines();
    let mut image = TrbufImage::new();
    own(&mut image);
    let slot = image.add_slot(2);
    image.put_text(slot, 0, &lines[1]);
    image.set_file_end(2, lines[0].len());
    let fixture = FollowFixture::new(&lines[0], &image.bytes);
    let (written, new, next) = (lines[..2].concat(), record(4, 3, "02:04:0", 4), "trbuf.0000003");
    let steps = |follow: &mut Follower| {
        let _process = fixture.trace.open_trbuf_as_owner();
        follow.read_new();
        fixture.trace.file("tr.0000001.002", &written);
        fs::rename(fixture.trace.path(TRBUF), fixture.trace.path(next)).unwrap();
        let mut image = TrbufImage::new();
        let slot = image.add_slot(3);
        image.put_text(slot, 0, &new);
        fixture.trace.file(next, &image.bytes);
        for _ in 0..20 {
            follow.read_new();
        }
        // The next owner writes its record, too.
        let mut image = TrbufImage::new();
        image.add_slot(3);
        image.set_file_end(3, new.len());
        fixture.trace.file(next, &image.bytes).file("tr.0000003.003", &new);
        for _ in 0..20 {
            follow.read_new();
        }
    };
    assert_eq!(fixture.follow_steps(|| (), steps), (written.clone() + &new, String::new()));
}

/// A record that signal handlers interrupted after it had read the clock comes after theirs. Here the ring is read before it does,
/// and written to its file afterwards, with a record of the second region that was not read.
#[test]
fn a_record_that_handlers_delayed_is_printed_when_its_ring_was_read_before_it() {
    let line = |time| record(time, 2, "02:04:0", time);
    let [before, delayed, nested, in_handler, after] = [10, 20, 25, 30, 40].map(line);
    for known_at_the_start in [false, true] {
        let fixture = FollowFixture::empty();
        let image = |text: &str, end: usize| {
            let mut image = TrbufImage::ring(64 << 10);
            own(&mut image);
            let slot = image.add_slot(2);
            image.put_text(slot, 0, text);
            image.set_file_end(2, end);
            image.bytes
        };
        let read = [&*before, &*in_handler].concat();
        fixture.trace.file(TRBUF, image(if known_at_the_start { &read } else { "" }, 0));
        let _process = fixture.trace.open_trbuf_as_owner();
        let steps = |follow: &mut Follower| {
            fixture.trace.file(TRBUF, image(&read, 0));
            follow.read_new();
            let written = [&*read, &*delayed, &*after, &*nested].concat();
            fixture.trace.file(TRBUF, image("", written.len())).file("tr.0000001.002", &written);
            (0..3).for_each(|_| follow.read_new());
        };
        let (records, _) = fixture.follow_steps(|| (), steps);
        // What is known at the start is printed at once.
        let next = if known_at_the_start { [&in_handler, &delayed, &nested] } else { [&delayed, &nested, &in_handler] };
        assert_eq!(records, [&*before, next[0], next[1], next[2], &*after].concat());
    }
}
