//! The files of a trace directory: when they are made, with which mode, and what becomes of earlier ones.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use spec::buffer;

use super::super::harness::{Program, Trial};
use super::{clean, names, pairs};

#[test]
fn files_have_mode_0600_whatever_the_umask() {
    for umask in ["000", "022", "777"] {
        let trial = Trial::new("umask");
        let command = format!("umask {umask} && exec \"$0\" return");
        trial.traced("sh").args(["-c", &command]).arg(Program::c("life/endings.c")).run().exited(35);
        let files = names(&trial.trace_directory());
        assert!(files.len() >= 5, "{files:?}");
        for name in files {
            let mode = fs::metadata(trial.trace_directory().join(&name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o600, "{name}, umask {umask}");
        }
    }
}

#[test]
fn nothing_is_made_before_the_first_record() {
    let trial = Trial::new("none");
    let run = trial.traced(Program::c("life/endings.c")).arg("return").env("THR_TRACE_EVENTS", "barrier");
    run.run().exited(35);
    assert!(names(&trial.trace_directory()).is_empty());
    let mut running =
        trial.traced("sh").args(["-c", "echo up; exec sleep 60"]).env("THR_TRACE_EVENTS", "mutex").spawn();
    running.wait_for("up");
    assert!(names(&trial.trace_directory()).is_empty());
}

/// The program's own descriptors keep their numbers, and closing them all costs no record.
#[test]
fn no_descriptor_stays_open() {
    for unbuffered in [false, true] {
        let trial = Trial::new("descriptors");
        let program = Program::c("life/descriptors.c");
        let run = trial.traced(&program);
        let traced = if unbuffered { run.env("THR_TRACE_BUF", "1") } else { run }.run();
        let native = trial.native(&program).run();
        native.success();
        traced.success();
        assert_eq!(native.stdout_text(), traced.stdout_text());
        let trace = clean(&trial);
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
fn files_of_an_earlier_process_are_set_aside() {
    for files in [
        vec![("tr", OLD_RECORD.to_vec()), ("trinfo", OLD_INFO.to_vec())],
        vec![("tr", OLD_RECORD.to_vec()), ("trinfo", OLD_INFO.to_vec()), ("trbuf", dead_header())],
        vec![("tr", OLD_RECORD.to_vec()), ("trbuf", dead_header())],
        vec![("trbuf", dead_header())],
    ] {
        println!("{:?}", files.iter().map(|(kind, _)| *kind).collect::<Vec<_>>());
        let trial = Trial::new("successor");
        let prepared = trial.directory().join("prepared");
        prepare(&prepared, &files);
        let run = trial.traced(Program::c("life/successor.c")).arg(&prepared).arg(trial.trace_directory());
        let output = run.env("THR_TRACE_EVENTS", "mutex").run();
        output.success();
        let number = output.stdout_text().trim_end();
        let process = &number[..7];
        let own = names(&trial.trace_directory());
        for (kind, bytes) in &files {
            let name = if *kind == "tr" { format!("tr.{number}") } else { format!("{kind}.{process}") };
            let aside = own.iter().find(|found| found.starts_with("old.") && found.ends_with(&format!(".{name}")));
            let aside = aside.unwrap_or_else(|| panic!("{name} was not set aside: {own:?}"));
            assert_eq!(*aside, format!("old.12345.{name}"));
            assert!(fs::read(trial.trace_directory().join(aside)).unwrap() == *bytes, "{aside} was changed");
        }
        // The new process's own, and nothing else.
        let trace = clean(&trial);
        let pid = u32::from_str_radix(process, 16).unwrap();
        assert_eq!((pairs(&trace, pid), trace.records.len()), (3, 9));
    }
}

/// Without a trinfo or a trbuf nothing says when the earlier process started; its records are set aside all the same.
#[test]
fn a_lone_tr_file_is_set_aside() {
    let trial = Trial::new("lone");
    let prepared = trial.directory().join("prepared");
    prepare(&prepared, &[("tr", OLD_RECORD.to_vec())]);
    let run = trial.traced(Program::c("life/successor.c")).arg(&prepared).arg(trial.trace_directory());
    let output = run.env("THR_TRACE_EVENTS", "mutex").run();
    output.success();
    let name = format!(".tr.{}", output.stdout_text().trim_end());
    let files = names(&trial.trace_directory());
    let aside = files.iter().find(|found| found.starts_with("old.") && found.ends_with(&name));
    let aside = aside.unwrap_or_else(|| panic!("not set aside: {files:?}"));
    assert_eq!(fs::read(trial.trace_directory().join(aside)).unwrap(), OLD_RECORD);
    assert_eq!(clean(&trial).records.len(), 9);
}

/// The same number twice: a second predecessor's files do not overwrite the first one's.
#[test]
fn what_was_set_aside_is_not_overwritten() {
    let trial = Trial::new("twice");
    let prepared = trial.directory().join("prepared");
    prepare(&prepared, &[("tr", OLD_RECORD.to_vec()), ("trinfo", OLD_INFO.to_vec())]);
    // What an earlier successor would have set aside, had it had the same number: every number that may come.
    let program = Program::c("life/successor.c");
    let script = "number=$(printf %07x $$); echo kept > \"$2/old.12345.trinfo.$number\"; exec \"$0\" \"$1\" \"$2\"";
    let run = trial.traced("sh").args(["-c", script]).arg(&program).arg(&prepared).arg(trial.trace_directory());
    let output = run.env("THR_TRACE_EVENTS", "mutex").run();
    output.success();
    let process = &output.stdout_text()[..7];
    let directory = trial.trace_directory();
    assert_eq!(fs::read(directory.join(format!("old.12345.trinfo.{process}"))).unwrap(), b"kept\n");
    let kept = names(&directory).into_iter().filter(|name| name.ends_with(&format!("trinfo.{process}")));
    let contents: Vec<Vec<u8>> = kept.map(|name| fs::read(directory.join(name)).unwrap()).collect();
    assert_eq!(contents.len(), 3, "the first, the second and its successor's own");
    assert!(contents.iter().any(|bytes| bytes == OLD_INFO), "the second predecessor's was lost");
}
