//! Processes that begin and end while following starts, a step at a time.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::mem::offset_of;

use spec::buffer::{Header, SLOTS_OFFSET};

use super::*;
use crate::options::{Following, Printing};
use crate::support::diagnostics::tests::recorded_diagnostics;
use crate::testing::test_trace::{TestTrace, record};
use crate::testing::trbuf_image::TrbufImage;

/// A directory with a trbuf and a record file, and what following it prints.
struct FollowFixture {
    trace: TestTrace,
    journal: tempfile::NamedTempFile,
}

impl FollowFixture {
    fn new(file: &str, trbuf: &[u8]) -> FollowFixture {
        let trace = TestTrace::new();
        trace.file("tr.0000001.002", file).file("trbuf.0000001", trbuf);
        FollowFixture { trace, journal: tempfile::NamedTempFile::new().unwrap() }
    }

    fn options(&self) -> Options {
        let printing = Printing { output: Some(self.journal.path().to_owned()), ..Printing::default() };
        let mut options = Options::newest_of(self.trace.path(""), printing);
        options.last = false;
        options.following = Following { follow: true, until_exit: true, ..Following::default() };
        // The journal has all records. Nothing is printed to the standard output of the test.
        options.selection.head = Some(0);
        options
    }

    /// Follows for `rounds` rounds, or until all processes have ended, and calls `meanwhile` between the search for existing
    /// files and the merge. Returns the records and the messages.
    fn follow(&self, rounds: usize, meanwhile: impl FnOnce()) -> (String, String) {
        let (options, (diagnostics, messages)) = (self.options(), recorded_diagnostics());
        let (mut follow, texts) =
            Follower::start(&options, 0, &diagnostics).unwrap_or_else(|error| panic!("{error:?}"));
        meanwhile();
        let mut printer = Printer::new(&options.printing, &options.selection, &options.paths, &diagnostics).unwrap();
        follow.catch_up(texts, u64::MAX, &mut printer).unwrap();
        for _ in 0..rounds {
            follow.read_new();
            if follow.has_ended() {
                follow.read_last();
                break;
            }
        }
        follow.release(u64::MAX, true, &mut printer).unwrap();
        printer.end().unwrap();
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

#[test]
fn a_process_that_begins_and_is_killed_during_the_start_leaves_no_incomplete_record() {
    let lines = lines();
    let written = lines.concat();
    let torn = &written[..lines[0].len() + 7];
    let fixture = FollowFixture::new(torn, &[0; SLOTS_OFFSET]);
    // The process has the trbuf open, and has not yet written its header.
    let mut process = OpenOptions::new().write(true).open(fixture.trace.path("trbuf.0000001")).unwrap();
    let (records, messages) = fixture.follow(1000, || {
        process.write_all(&killed_in_a_write(&lines).bytes).unwrap();
        drop(process);
    });
    assert_eq!((records, &*messages), (written, ""));
}

#[test]
fn an_ending_process_whose_leftovers_were_merged_is_not_followed() {
    let lines = lines();
    let mut image = killed_in_a_write(&lines);
    // The leases show no owner any more, but /proc still shows this process.
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start: u64 = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
    let namespace = std::os::unix::fs::MetadataExt::ino(&fs::metadata("/proc/self/ns/pid").unwrap());
    let boot = fs::read("/proc/sys/kernel/random/boot_id").unwrap();
    image.put(offset_of!(Header, pid), &std::process::id().to_le_bytes());
    image.put(offset_of!(Header, start_time), &start.to_le_bytes());
    image.put(offset_of!(Header, pid_namespace), &namespace.to_le_bytes());
    image.put(offset_of!(Header, boot_id), boot.trim_ascii());
    let fixture = FollowFixture::new(&lines.concat()[..lines[0].len() + 7], &image.bytes);
    if has_writer(&file_handle::open(&fixture.trace.path("trbuf.0000001")).unwrap()) != Some(false) {
        return println!("the file system of the temporary directory has no leases to test");
    }
    assert_eq!(fixture.follow(20, || ()), (lines.concat(), String::new()));
}
