//! The files of a trace directory: when they are made, with which mode, and what becomes of earlier ones.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use spec::buffer;

use super::super::harness::{Program, TestDirectory};
use super::{clean, names, pairs};

#[test]
fn files_have_mode_0600_whatever_the_umask() {
    for umask in ["000", "022", "777"] {
        let test = TestDirectory::new("umask");
        let command = format!("umask {umask} && exec \"$0\" return");
        test.traced("sh").args(["-c", &command]).arg(Program::c("lifecycle/endings.c")).run().exited(35);
        let files = names(&test.trace_directory());
        assert!(files.len() >= 5, "{files:?}");
        for name in files {
            let mode = fs::metadata(test.trace_directory().join(&name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o600, "{name}, umask {umask}");
        }
    }
}

#[test]
fn nothing_is_made_before_the_first_record() {
    let test = TestDirectory::new("none");
    let run = test.traced(Program::c("lifecycle/endings.c")).arg("return").env("THR_TRACE_EVENTS", "barrier");
    run.run().exited(35);
    assert!(names(&test.trace_directory()).is_empty());
    let mut running = test.traced("sh").args(["-c", "echo up; exec sleep 60"]).env("THR_TRACE_EVENTS", "mutex").spawn();
    running.wait_for("up");
    assert!(names(&test.trace_directory()).is_empty());
}

/// The program's own descriptors keep their numbers, and closing them all costs no record.
#[test]
fn no_descriptor_stays_open() {
    for unbuffered in [false, true] {
        let test = TestDirectory::new("descriptors");
        let program = Program::c("lifecycle/descriptors.c");
        let run = test.traced(&program);
        let traced = run.unbuffered_if(unbuffered).run();
        let native = test.native(&program).run();
        native.success();
        traced.success();
        assert_eq!(native.stdout_text(), traced.stdout_text());
        let trace = clean(&test);
        assert_eq!(pairs(&trace, trace.records[0].fields.pid), 4000);
    }
}

/// Files of an earlier process with the same number, as they would be found.
fn prepare(directory: &Path, files: &[(&str, Vec<u8>)]) {
    fs::create_dir(directory).unwrap();
    for (kind, bytes) in files {
        fs::write(directory.join(kind), bytes).unwrap();
    }
}

/// A trbuf's first page: a process of this boot that started at tick 12345 and is not there any more.
fn dead_header() -> Vec<u8> {
    let mut page = vec![0; buffer::SLOTS_OFFSET];
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    put(std::mem::offset_of!(buffer::Header, magic), &buffer::MAGIC);
    put(std::mem::offset_of!(buffer::Header, version), &buffer::VERSION.to_le_bytes());
    put(std::mem::offset_of!(buffer::Header, pid), &7u32.to_le_bytes());
    put(
        std::mem::offset_of!(buffer::Header, pid_namespace),
        &fs::metadata("/proc/self/ns/pid").unwrap().ino().to_le_bytes(),
    );
    put(std::mem::offset_of!(buffer::Header, start_time), &12345u64.to_le_bytes());
    let boot = fs::read("/proc/sys/kernel/random/boot_id").unwrap();
    put(std::mem::offset_of!(buffer::Header, boot_id), &boot[..36]);
    page
}

const OLD_RECORD: &[u8] = b"1700000000:000000001:0000007:0000007:0x7fc5de3f86c0:01:16:0:0:0:0:0:0\n";
const OLD_INFO: &[u8] = b"format 1\npid 7\nstart 12345\n";

#[test]
fn files_of_an_earlier_process_are_renamed() {
    for files in [
        vec![("tr", OLD_RECORD.to_vec()), ("trinfo", OLD_INFO.to_vec())],
        vec![("tr", OLD_RECORD.to_vec()), ("trinfo", OLD_INFO.to_vec()), ("trbuf", dead_header())],
        vec![("tr", OLD_RECORD.to_vec()), ("trbuf", dead_header())],
        vec![("trbuf", dead_header())],
    ] {
        println!("{:?}", files.iter().map(|(kind, _)| *kind).collect::<Vec<_>>());
        let test = TestDirectory::new("successor");
        let prepared = test.directory().join("prepared");
        prepare(&prepared, &files);
        let run = test.traced(Program::c("lifecycle/successor.c")).arg(&prepared).arg(test.trace_directory());
        let output = run.env("THR_TRACE_EVENTS", "mutex").run();
        output.success();
        let number = output.stdout_text().trim_end();
        let process = &number[..7];
        let own = names(&test.trace_directory());
        for (kind, bytes) in &files {
            let name = if *kind == "tr" { format!("tr.{number}") } else { format!("{kind}.{process}") };
            let renamed = own.iter().find(|found| found.starts_with("old.") && found.ends_with(&format!(".{name}")));
            let renamed = renamed.unwrap_or_else(|| panic!("{name} was not renamed: {own:?}"));
            assert_eq!(*renamed, format!("old.12345.{name}"));
            assert!(fs::read(test.trace_directory().join(renamed)).unwrap() == *bytes, "{renamed} was changed");
        }
        // The new process's own, and nothing else.
        let trace = clean(&test);
        let pid = u32::from_str_radix(process, 16).unwrap();
        assert_eq!((pairs(&trace, pid), trace.records.len()), (3, 9));
    }
}

/// Without a trinfo or a trbuf the start time of the earlier process is unknown. Its files are renamed all the same.
#[test]
fn a_lone_tr_file_is_renamed() {
    let test = TestDirectory::new("lone");
    let prepared = test.directory().join("prepared");
    prepare(&prepared, &[("tr", OLD_RECORD.to_vec())]);
    let run = test.traced(Program::c("lifecycle/successor.c")).arg(&prepared).arg(test.trace_directory());
    let output = run.env("THR_TRACE_EVENTS", "mutex").run();
    output.success();
    let name = format!(".tr.{}", output.stdout_text().trim_end());
    let files = names(&test.trace_directory());
    let renamed = files.iter().find(|found| found.starts_with("old.") && found.ends_with(&name));
    let renamed = renamed.unwrap_or_else(|| panic!("not renamed: {files:?}"));
    assert_eq!(fs::read(test.trace_directory().join(renamed)).unwrap(), OLD_RECORD);
    assert_eq!(clean(&test).records.len(), 9);
}

/// The same number twice: a second predecessor's files do not overwrite the first one's.
#[test]
fn a_renamed_file_is_not_overwritten() {
    let test = TestDirectory::new("twice");
    let prepared = test.directory().join("prepared");
    prepare(&prepared, &[("tr", OLD_RECORD.to_vec()), ("trinfo", OLD_INFO.to_vec())]);
    // Names that an earlier process of the same number may have used for renamed files: every number that may come.
    let program = Program::c("lifecycle/successor.c");
    let script = "number=$(printf %07x $$); echo kept > \"$2/old.12345.trinfo.$number\"; exec \"$0\" \"$1\" \"$2\"";
    let run = test.traced("sh").args(["-c", script]).arg(&program).arg(&prepared).arg(test.trace_directory());
    let output = run.env("THR_TRACE_EVENTS", "mutex").run();
    output.success();
    let process = &output.stdout_text()[..7];
    let directory = test.trace_directory();
    assert_eq!(fs::read(directory.join(format!("old.12345.trinfo.{process}"))).unwrap(), b"kept\n");
    let kept = names(&directory).into_iter().filter(|name| name.ends_with(&format!("trinfo.{process}")));
    let contents: Vec<Vec<u8>> = kept.map(|name| fs::read(directory.join(name)).unwrap()).collect();
    assert_eq!(contents.len(), 3, "the first, the second and its successor's own");
    assert!(contents.iter().any(|bytes| bytes == OLD_INFO), "the second predecessor's was lost");
}
