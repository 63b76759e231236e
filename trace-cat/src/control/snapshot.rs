//! `--snapshot`: a copy of what processes have recorded so far, as a trace directory.
//!
//! Buffers and rings of running processes are copied as all readers copy them, so that each record is there once
//! and none is torn.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use spec::names::FileName;

use super::controlled_process::ControlledProcess;
use crate::options::CommandError;
use crate::support::diagnostics::Diagnostics;
use crate::support::error::Error;
use crate::support::output_directory::make_empty;
use crate::trace::file_handle::{DescriptorBudget, read_info};
use crate::trace::file_names::{is_subdirectory, listed_directory};
use crate::trace::inputs;
use crate::trace::record_text::RecordText;

/// Copies what the processes have recorded into `directory`.
///
/// # Errors
/// The directory is not empty, or cannot be written.
pub fn copy(processes: &[ControlledProcess], directory: &Path, diagnostics: &Diagnostics) -> Result<(), CommandError> {
    let name_error = |error| Error::new(directory.display().to_string(), error);
    make_empty(directory, "--snapshot").map_err(name_error)?;
    let files = processes.iter().filter_map(ControlledProcess::files).collect();
    let inputs = inputs::collect_processes(files, &DescriptorBudget::from_limit(), diagnostics);
    for text in &inputs.texts {
        copy_text(text, directory).map_err(name_error)?;
    }
    // Who has ended meanwhile has a trinfo that is complete.
    for process in processes {
        let running = inputs.running.iter().find(|(files, _)| files.buffers_path() == process.path);
        let overwritten = running.iter().flat_map(|(_, copied)| &copied.leftovers.complete_from);
        let lines: String = overwritten.map(|thread| thread.line()).collect();
        copy_info(process, &lines, directory).map_err(name_error)?;
    }
    Ok(())
}

/// The place in `directory` for the file at `path`: in a subdirectory of the same name if it is in one of a trace directory.
fn place_for(path: &Path, directory: &Path) -> io::Result<PathBuf> {
    let mut inner = directory.to_owned();
    let parents: Vec<&Path> = path.ancestors().skip(1).take_while(|parent| is_subdirectory(parent)).collect();
    for name in parents.iter().rev().filter_map(|parent| parent.file_name()) {
        inner.push(name);
    }
    fs::create_dir_all(&inner)?;
    Ok(inner.join(path.file_name().unwrap_or_default()))
}

/// Makes a file that only this user reads, as those of a trace are.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path)
}

/// Copies the complete lines of a text.
fn copy_text(text: &RecordText, directory: &Path) -> io::Result<()> {
    let mut out = BufWriter::new(create(&place_for(&text.path, directory)?)?);
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    while let Some(stretch) = text.stretch(at) {
        at = stretch.start;
        // What follows the last newline of a stretch is a record whose end its process has not written yet.
        let mut line: Vec<u8> = Vec::new();
        while at < stretch.end {
            let length = text.read_at(&mut buffer, at)?.min((stretch.end - at) as usize);
            if length == 0 {
                return out.flush();
            }
            at += length as u64;
            line.extend_from_slice(&buffer[..length]);
            let complete = memchr::memrchr(b'\n', &line).map_or(0, |newline| newline + 1);
            out.write_all(&line[..complete])?;
            line.drain(..complete);
        }
    }
    out.flush()
}

/// Copies the trinfo of a process, with more `lines`, and what its directory has for all of its processes.
fn copy_info(process: &ControlledProcess, lines: &str, directory: &Path) -> io::Result<()> {
    let Some(files) = process.files() else { return Ok(()) };
    let info = files.path(FileName::Info(files.number));
    let mut text = read_info(&info).or_else(none_if_absent)?;
    // The process may be writing.
    text.truncate(memchr::memrchr(b'\n', &text).map_or(0, |newline| newline + 1));
    text.extend_from_slice(lines.as_bytes());
    create(&place_for(&info, directory)?)?.write_all(&text)?;
    let clock = listed_directory(&files.directory).join("trclock");
    if let Ok(text) = read_info(&clock) {
        create(&place_for(&clock, directory)?)?.write_all(&text)?;
    }
    Ok(())
}

fn none_if_absent(error: io::Error) -> io::Result<Vec<u8>> {
    if error.kind() == io::ErrorKind::NotFound { Ok(Vec::new()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::diagnostics::tests::recorded_diagnostics;
    use crate::testing::test_trace::{TestTrace, record_lines};

    /// It has removed its trbuf, and what it had in its buffers is in its record files.
    #[test]
    fn a_process_that_has_ended_since_it_was_found_is_copied() {
        let trace = TestTrace::new();
        let records = record_lines(1..9, 1);
        trace
            .file("tr.0000001.000", &records)
            .file("tr.0000002.000", record_lines(1..9, 2))
            .file("trinfo.0000001", "format 1\n");
        let process =
            ControlledProcess { path: trace.path("trbuf.0000001"), pid: 1, pid_here: Some(1), is_of_directory: true };
        let (diagnostics, messages) = recorded_diagnostics();
        let directory = trace.path("snapshot");
        copy(&[process], &directory, &diagnostics).unwrap();
        assert_eq!((messages.text(), diagnostics.has_damage()), (String::new(), false));
        let copied = |name| fs::read_to_string(directory.join(name)).ok();
        assert_eq!(copied("tr.0000001.000"), Some(records));
        assert_eq!(copied("trinfo.0000001").as_deref(), Some("format 1\n"));
        assert_eq!(copied("tr.0000002.000"), None);
    }

    /// They are of two PID namespaces, and records are shown with other numbers where they are read together.
    #[test]
    fn records_of_processes_of_one_number_are_copied_as_they_are() {
        let trace = TestTrace::new();
        let records = record_lines(1..9, 1);
        let info = |namespace| format!("boot_id 1f\nhost h\npid 1\nstart {namespace}\npidns {namespace}\n");
        fs::create_dir(trace.path("ns8")).unwrap();
        trace.file("tr.0000001.000", &records).file("ns8/tr.0000001.000", &records);
        trace.file("trinfo.0000001", info(7)).file("ns8/trinfo.0000001", info(8));
        let processes = ["trbuf.0000001", "ns8/trbuf.0000001"].map(|name| ControlledProcess {
            path: trace.path(name),
            pid: 1,
            pid_here: None,
            is_of_directory: true,
        });
        let (diagnostics, messages) = recorded_diagnostics();
        let directory = trace.path("snapshot");
        copy(&processes, &directory, &diagnostics).unwrap();
        let copied =
            ["tr.0000001.000", "ns8/tr.0000001.000"].map(|name| fs::read_to_string(directory.join(name)).unwrap());
        assert_eq!((copied, messages.text()), ([records.clone(), records], String::new()));
    }
}
