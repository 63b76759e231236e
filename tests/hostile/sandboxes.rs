//! Programs that go into a sandbox and fork children there, which can open no file: each child's records are in the trace, or
//! counted in it. What is not permitted where the tests run is left out, with a message.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

use super::super::harness::{Program, TestCommand, TestDirectory, Trace, trace_cat};
use super::{DONE, account, assert_complete, privately, traced_mutexes, words};

/// What a program may not do; it says itself which.
const STEPS: &str = "to take steps into a sandbox";
/// How many buffers for children a process makes.
const SPARES: usize = 15;
/// IDs that no process has are greater.
const GREATEST_PID: u32 = 1 << 22;

fn sandboxed() -> Program {
    Program::c("hostile/sandboxed.c")
}

fn command<'a>(test: &'a TestDirectory, steps: &str) -> TestCommand<'a> {
    fs::create_dir_all(test.directory().join("empty")).unwrap();
    traced_mutexes(test, &sandboxed()).args(words(steps)).noise_expected()
}

/// Takes these steps, with an environment variable; `false` if that is not permitted.
fn takes(test: &TestDirectory, steps: &str, (name, value): (&str, &str)) -> bool {
    println!("{steps}");
    let output = command(test, steps).env(name, value).run();
    let is_permitted = output.is_permitted(STEPS);
    if is_permitted {
        output.exited(DONE);
    }
    is_permitted
}

/// The numbers in the first line of `trace-cat --stat`: records, and lost ones.
fn counts(text: &str) -> [u64; 2] {
    let first = text.lines().next().unwrap();
    let numbers: Vec<u64> = first.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{first}"))
}

/// No variable at all: one that nothing reads.
const PLAIN: (&str, &str) = ("THR_TRACE_NOTHING", "");

/// How many records each process has, those that were lost included.
fn records_by_process(trace: &Trace) -> BTreeMap<u32, u64> {
    let mut records = BTreeMap::new();
    for record in &trace.records {
        let count = if record.is("trace_lost") { record.fields.arguments[0].bits() } else { 1 };
        *records.entry(record.fields.pid).or_default() += count;
    }
    records
}

/// The names of spare trbufs that are there.
fn spares(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("trspare.")).collect()
}

#[test]
fn children_are_recorded_in_every_sandbox() {
    for way in [
        "chroot",
        "chroot-call",
        "helper",
        "pivot",
        "readonly",
        "landlock",
        "unprivileged",
        "unprivileged chroot",
        "unprivileged chroot filter kill",
        "filter refuse",
        "filter kill",
    ] {
        for (mode, ending) in [
            (PLAIN, "exit"),
            (PLAIN, "kill"),
            (("THR_TRACE_BUF", "1"), "exit"),
            (("THR_TRACE_RING", "1M"), "_exit"),
            (("THR_TRACE_RING", "1M"), "exit"),
        ] {
            println!("{way} {mode:?} {ending}");
            let test = TestDirectory::new("sandbox");
            if takes(&test, &format!("pairs 10 {way} children 3 10 {ending}"), mode) {
                let records = records_by_process(&assert_complete(&test, 3 * (10 + 3 * 20)));
                let mut counts: Vec<u64> = records.into_values().collect();
                counts.sort_unstable();
                assert_eq!(counts, [30, 60, 60, 60]);
            }
        }
    }
}

/// Threads that a process makes where its files cannot be opened, as haproxy does, which is then killed.
#[test]
fn threads_that_begin_in_a_sandbox_are_recorded() {
    for way in
        ["chroot", "chroot-call", "helper", "pivot", "readonly", "landlock", "unprivileged chroot", "filter refuse"]
    {
        for mode in [PLAIN, ("THR_TRACE_RING", "1M")] {
            println!("{way} {mode:?}");
            let test = TestDirectory::new("sandbox-threads");
            let run = command(&test, &format!("pairs 10 {way} killed 6 10")).env(mode.0, mode.1);
            let output = run.run();
            if !output.is_permitted(STEPS) {
                continue;
            }
            assert_eq!(output.status.signal(), Some(libc::SIGKILL));
            assert_complete(&test, 3 * (10 + 6 * 10));
        }
    }
}

/// What is in memory that only the process sees is lost with it, and nobody has counted it.
#[test]
fn more_threads_than_have_room_in_a_sandbox_are_not_passed_over() {
    let test = TestDirectory::new("sandbox-crowd");
    let output = command(&test, "pairs 10 chroot killed 100 10").run();
    if !output.is_permitted(STEPS) {
        return;
    }
    assert_eq!(output.status.signal(), Some(libc::SIGKILL));
    let output = test.trace_cat().arg("--stat").run();
    let messages = output.stderr_text();
    assert!(messages.contains("had buffers in its own memory"), "{messages}");
    let [records, _] = counts(output.stdout_text());
    assert!((3 * 16 * 10..3 * 100 * 10).contains(&records), "{records}");
}

/// The process that goes there need not have recorded anything before. It has a trinfo of its own, and needs no buffers for children.
#[test]
fn a_process_that_begins_to_record_in_a_sandbox_is_recorded() {
    for steps in ["chroot pairs 10", "unprivileged chroot pairs 10", "filter kill pairs 10", "filter refuse pairs 10"] {
        let test = TestDirectory::new("sandbox-first");
        if takes(&test, steps, PLAIN) {
            println!("{steps}");
            assert_eq!(records_by_process(&assert_complete(&test, 30)).len(), 1);
            let names = fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().file_name());
            let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
            assert!(names.iter().any(|name| name.starts_with("trinfo.")), "{names:?}");
        }
    }
}

/// Files that cannot be made yet are made at the first record.
#[test]
fn a_process_that_cannot_make_its_files_at_once_is_recorded() {
    let test = TestDirectory::new("sandbox-limit");
    assert!(takes(&test, "chroot-fails pairs 10", PLAIN));
    assert_complete(&test, 30);
}

/// As Chromium's renderers are: the first processes of PID namespaces, under filters of their own. None knows its ID outside.
#[test]
fn children_in_namespaces_and_under_filters_are_told_apart() {
    for (way, count) in [("helper", 10), ("chroot", 6000), ("unprivileged chroot", 10)] {
        println!("{way} {count}");
        let test = TestDirectory::new("sandbox-renderers");
        if !takes(&test, &format!("{way} renderers 4 {count}"), PLAIN) {
            continue;
        }
        let trace = test.merged();
        let records = records_by_process(&trace);
        assert_eq!(records.values().copied().collect::<Vec<_>>(), [3 * (2 * count + 1); 4]);
        assert!(records.keys().all(|&pid| pid > GREATEST_PID), "{records:?}");
        assert_eq!(account(&trace).lost > 0, count > 1000);
    }
}

/// The trbuf of such a child has fewer rings than are kept of ended threads.
#[test]
fn rings_of_a_child_in_a_sandbox_are_those_of_its_newest_threads() {
    for size in ["64K", "1M", "4M"] {
        let test = TestDirectory::new("sandbox-rings");
        if !takes(&test, "chroot series 40 10", ("THR_TRACE_RING", size)) {
            return;
        }
        let output = test.trace_cat().run();
        let account = account(&Trace::parse("merged", &output.stdout));
        assert!(account.lost == 0 && account.records >= 30, "{size}: {} and {} lost", account.records, account.lost);
        // Readers know that others were there.
        assert!(output.stderr_text().contains("that had ended were reused"), "{size}: {}", output.stderr_text());
        let report = test.native(trace_cat()).arg("report").arg(test.trace_directory()).run();
        assert!(report.stdout_text().contains("were reused"), "{size}: {}", report.stdout_text());
    }
}

/// In its root it has no /proc, and its parent is another one than it was forked from.
#[test]
fn a_daemon_that_begins_in_another_root_has_its_own_number() {
    let test = TestDirectory::new("sandbox-daemon");
    let output = command(&test, "pairs 10 chroot orphan 10").run();
    if !output.is_permitted(STEPS) {
        return;
    }
    output.exited(DONE);
    let daemon: u32 = output.stdout_text().trim_end().parse().unwrap();
    let records = records_by_process(&assert_complete(&test, 3 * (10 + 10)));
    assert_eq!(records.get(&daemon), Some(&30), "{records:?}");
}

#[test]
fn what_a_child_cannot_keep_is_counted() {
    for way in ["chroot", "unprivileged chroot", "filter refuse"] {
        let test = TestDirectory::new("sandbox-much");
        if takes(&test, &format!("{way} children 3 20000 _exit"), PLAIN) {
            let trace = test.merged();
            let records = records_by_process(&trace);
            assert_eq!(records.values().copied().collect::<Vec<_>>(), [3 * 40_000; 3]);
            let account = account(&trace);
            assert!(account.lost > 0 && account.records > 3 * 2 * 800, "{} kept", account.records);
        }
    }
}

/// A child that lives in the sandbox and forks has what is left.
#[test]
fn children_of_children_are_recorded() {
    for way in ["chroot", "unprivileged chroot"] {
        let test = TestDirectory::new("sandbox-family");
        if takes(&test, &format!("{way} family 3 10"), PLAIN) {
            assert_eq!(records_by_process(&assert_complete(&test, 3 * (10 + 3 * 20))).len(), 4);
        }
    }
}

#[test]
fn children_that_find_no_buffer_are_counted() {
    const FURTHER: usize = 5;
    for way in ["chroot", "unprivileged chroot", "filter refuse"] {
        let test = TestDirectory::new("sandbox-many");
        let children = SPARES + FURTHER;
        if !takes(&test, &format!("pairs 10 {way} children {children} 10 _exit"), PLAIN) {
            continue;
        }
        let merged = || Trace::parse("merged", &test.trace_cat().run().stdout);
        let account = account(&merged());
        assert_eq!((account.records, account.lost), (30 + 60 * SPARES, 60 * FURTHER as u64));
        let counted = format!("{FURTHER} processes in a sandbox that found no buffers lost {} records", 60 * FURTHER);
        let stat = test.trace_cat().arg("--stat").run();
        assert!(stat.stderr_text().contains(&counted), "{}", stat.stderr_text());
        assert!(stat.stdout_text().contains(&format!(" {} lost\n", 60 * FURTHER)), "{}", stat.stdout_text());
        assert!(stat.stdout_text().contains("runs       1\n"), "{}", stat.stdout_text());
        if !has_leases(&test) {
            continue;
        }
        // What is recovered is in files; the count stays.
        test.recover();
        assert_eq!(spares(&test.trace_directory()).len(), 1);
        let after = super::account(&merged());
        assert_eq!((after.records, after.lost), (account.records, account.lost));
    }
}

/// Whether the file system knows who has a file mapped; on others nothing is removed that somebody might still use.
fn has_leases(test: &TestDirectory) -> bool {
    let file = fs::File::create(test.directory().join("leased")).unwrap();
    // SAFETY: statfs consists of integers.
    let mut system: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and fstatfs fills the struct.
    let known = unsafe { libc::fstatfs(std::os::fd::AsRawFd::as_raw_fd(&file), &mut system) } == 0;
    let has = known && system.f_type != libc::OVERLAYFS_SUPER_MAGIC;
    if !has {
        println!("skipped: an overlay does not know who uses its files");
    }
    has
}

#[test]
fn what_nobody_has_claimed_is_removed() {
    if !has_leases(&TestDirectory::new("sandbox-leases")) {
        return;
    }
    // The process itself removes it if it can.
    let test = TestDirectory::new("sandbox-unclaimed");
    if takes(&test, "pairs 10 unprivileged children 2 10 exit", PLAIN) {
        assert_eq!(spares(&test.trace_directory()), [""; 0]);
    }
    for way in ["chroot", "unprivileged chroot"] {
        let test = TestDirectory::new("sandbox-left");
        if !takes(&test, &format!("pairs 10 {way} children 2 10 exit"), PLAIN) {
            continue;
        }
        assert_eq!(spares(&test.trace_directory()).len(), SPARES + 1);
        test.recover();
        assert_eq!(spares(&test.trace_directory()), [""; 0]);
        assert_eq!(test.trace().records.len(), 30 + 2 * 60);
        assert_complete(&test, 30 + 2 * 60);
    }
}

/// A server that goes into a sandbox for each connection leaves the files of each.
#[test]
fn a_process_that_ends_in_a_sandbox_leaves_little_more_than_its_records() {
    /// Bytes on the disk that a process may leave beside its records, and files: its trbuf, trinfo, tr file and spare trbufs.
    const BYTES_MAX: u64 = 128 << 10;
    const FILES_MAX: usize = 3 + 4;
    const CONNECTIONS: usize = 5;
    for mode in [PLAIN, ("THR_TRACE_RING", "1M")] {
        let test = TestDirectory::new("sandbox-connections");
        if !takes(&test, &format!("pairs 10 connections {CONNECTIONS} pairs 10"), mode) {
            continue;
        }
        assert_complete(&test, 3 * 10 * (2 + CONNECTIONS));
        let files = fs::read_dir(test.trace_directory()).unwrap();
        let sizes: Vec<u64> = files.map(|file| file.unwrap().metadata().unwrap().blocks() * 512).collect();
        assert!(sizes.len() <= 3 + CONNECTIONS * FILES_MAX, "{sizes:?}");
        assert!(sizes.iter().sum::<u64>() <= CONNECTIONS as u64 * BYTES_MAX, "{mode:?}: {sizes:?}");
    }
}

/// What a process has given back to the file system at its end may be somebody else's when its last handlers record.
#[test]
fn a_process_that_records_after_its_end_in_a_sandbox_finds_a_full_disk() {
    for ring in ["", "1M"] {
        let test = TestDirectory::new("sandbox-late");
        let script = format!(
            "mount -t tmpfs -o size=12m none \"$trace\"; mkdir empty; status=0; \
             THR_TRACE_RING={ring} $traced {} pairs 10 late \"$trace/filler\" 1000 chroot || status=$?; \
             rm \"$trace/filler\"; \"$cat\" --stat \"$trace\"; exit $status",
            sandboxed().path().display()
        );
        let Some(run) = privately(&test, &script) else { return };
        let output = run.run();
        if !output.is_permitted(STEPS) {
            return;
        }
        let [records, lost] = counts(output.exited(DONE).stdout_text());
        assert!(lost > 0 && records + lost == 3 * (10 + 1000), "{ring}: {records}, {lost} lost");
    }
}

#[test]
fn a_program_that_goes_nowhere_makes_no_buffers() {
    for (way, made) in [("", 0), ("chroot ", SPARES + 1), ("unprivileged chroot ", SPARES + 1)] {
        let test = TestDirectory::new("sandbox-none");
        let mut running = command(&test, &format!("pairs 10 {way}stay")).spawn();
        // Also the reason why something is not permitted ends with a newline.
        running.wait_for("\n");
        if running.stdout() == b"here\n" {
            assert_eq!(spares(&test.trace_directory()).len(), made, "{way}");
            // A child may still come.
            test.trace_cat().arg("--recover").run().success();
            assert_eq!(spares(&test.trace_directory()).len(), made, "{way}");
            running.signal(libc::SIGKILL);
        }
        running.wait();
    }
}

/// In a new root the directory's path may lead to another one.
#[test]
fn another_directory_of_the_same_name_is_not_used() {
    for way in ["chroot", "unprivileged chroot"] {
        let test = TestDirectory::new("sandbox-same-name");
        let inner = test.directory().join("empty").join(test.trace_directory().strip_prefix("/").unwrap());
        fs::create_dir_all(&inner).unwrap();
        if takes(&test, &format!("pairs 10 {way} children 2 10 exit"), PLAIN) {
            assert_complete(&test, 30 + 2 * 60);
            assert_eq!(fs::read_dir(inner).unwrap().count(), 0);
        }
    }
}

/// As a service that has a mount namespace of its own, and goes on as another user, or has children whose numbers others have.
#[test]
fn a_process_that_may_move_but_stays_loses_nothing() {
    for (steps, pairs) in [
        ("pairs 10 mounts user 65534 children 3 3000 exit pairs 3000", 10 + 6 * 3000 + 3000),
        ("mounts spaces 3 3000 pairs 10", 3 * 6001 + 10),
    ] {
        println!("{steps}");
        let test = TestDirectory::new("sandbox-moves");
        if !super::privileged(&test) {
            return;
        }
        super::open_to_all(&test);
        if !takes(&test, steps, PLAIN) {
            continue;
        }
        assert_complete(&test, 3 * pairs);
    }
}

/// What bwrap executes cannot find the directory, and says so.
#[test]
fn a_container_says_that_nothing_is_recorded_in_it() {
    let is_permitted = |program: &str| {
        let output = Command::new("bwrap").args(["--unshare-all", "--ro-bind", "/", "/", program]).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !is_permitted("true") {
        return println!("skipped: no bwrap, or it may not do what it does");
    }
    let test = TestDirectory::new("sandbox-bwrap");
    let directory = test.trace_directory();
    let run = test.traced("bwrap").args(["--unshare-all", "--ro-bind", "/", "/", "--tmpfs"]).arg(&directory);
    let output = run.arg(sandboxed()).args(["pairs", "10"]).noise_expected().run();
    output.exited(DONE);
    // There is another directory of that name, which is gone when the container ends.
    let stderr = output.stderr_text();
    assert!(stderr.contains(&format!("cannot write a trace to '{}'", directory.display())), "{stderr}");
}
