//! The files that a way leaves in its directory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The longest CTF trace whose events are counted: five hundred bytes take as long as a microsecond of recording.
const SHORT: u64 = 4 * 1024 * 1024;

/// Every file below a directory; none if it is not there.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.append(&mut files(&entry.path())),
            _ => found.push(entry.path()),
        }
    }
    found
}

/// The length of all files together.
pub fn length(directory: &Path) -> u64 {
    files(directory).iter().filter_map(|file| Some(fs::metadata(file).ok()?.len())).sum()
}

/// Lines of libthreadt's record files.
///
/// # Errors
/// If one cannot be read.
pub fn lines(directory: &Path) -> io::Result<u64> {
    let mut block = vec![0; 256 * 1024];
    let mut lines = 0;
    for path in files(directory).iter().filter(|path| named(path, "tr.")) {
        let mut file = File::open(path)?;
        loop {
            match file.read(&mut block)? {
                0 => break,
                length => lines += memchr::memchr_iter(b'\n', &block[..length]).count() as u64,
            }
        }
    }
    Ok(lines)
}

/// The records that libthreadt reports as lost; the last report of each process counts.
pub fn lost(directory: &Path) -> u64 {
    let reported = |path: &PathBuf| {
        let text = fs::read_to_string(path).ok()?;
        text.lines().rev().find_map(|line| line.strip_prefix("lost ")?.parse::<u64>().ok())
    };
    files(directory).iter().filter(|path| named(path, "trinfo.")).filter_map(reported).sum()
}

/// Records of uftrace: sixteen bytes at a call's entry and as many at its return.
pub fn uftrace_calls(directory: &Path) -> u64 {
    let data = files(directory).into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "dat"));
    data.filter_map(|file| Some(fs::metadata(file).ok()?.len())).sum::<u64>() / 32
}

/// Events in the CTF trace of an LTTng session, if babeltrace2 is there and the trace so short that it reads it soon.
pub fn ctf_events(directory: &Path) -> Option<u64> {
    if length(directory) > SHORT {
        return None;
    }
    let output = Command::new("babeltrace2").arg(directory).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| memchr::memchr_iter(b'\n', &output.stdout).count() as u64)
}

fn named(path: &Path, beginning: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_losses_of_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        assert_eq!((length(directory.path()), lines(directory.path()).unwrap()), (0, 0));
        fs::create_dir(directory.path().join("ns1")).unwrap();
        write("tr.0000001.001", "a\nb\n");
        write("ns1/tr.0000001.001", "c\n");
        write("trinfo.0000001", "lost 4\nnote x\nlost 6\n");
        write("ns1/trinfo.0000001", "pid 1\nlost 1\n");
        write("12.dat", &"x".repeat(96));
        assert_eq!(lines(directory.path()).unwrap(), 3);
        assert_eq!(lost(directory.path()), 7);
        assert_eq!(uftrace_calls(directory.path()), 3);
        assert_eq!(length(directory.path()), 4 + 2 + 21 + 13 + 96);
    }
}
