//! uftrace, which hooks the calls that programs make through their PLT: without arguments, and without its other events.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::launch::Launch;
use crate::process::{self, Stop, Usage, not_started};

/// uftrace, installed.
#[derive(Debug)]
pub struct Uftrace {
    /// The version that `uftrace --version` prints.
    pub version: String,
}

/// Which calls are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Calls {
    /// All of the program's own; cheapest, for programs that call nothing else.
    All,
    /// Those of pthreads and semaphores, by the program and by the libraries that it is linked with. What is left out
    /// is hooked all the same, and passed over.
    Threads,
}

impl Uftrace {
    /// Looks for it.
    ///
    /// # Errors
    /// Why it cannot be measured here, in one line.
    pub fn find() -> Result<Uftrace, String> {
        let output = Command::new("uftrace").arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|error| not_started("uftrace", &error))?;
        let version = String::from_utf8_lossy(&output.stdout);
        Ok(Uftrace { version: version.split(" (").next().unwrap_or_default().trim().to_owned() })
    }

    /// Runs a program, whose records go to `output`.
    ///
    /// # Errors
    /// As [`process::run`].
    pub fn record(&self, calls: Calls, launch: Launch, output: &Path, scratch: &Path) -> Result<Usage, Stop> {
        let mut uftrace = Launch::new("uftrace").args(["record", "--force", "--no-event", "-d"]).args([output]);
        if calls == Calls::Threads {
            uftrace = uftrace.args(["--nest-libcall", "-F", "^pthread_", "-F", "^sem_"]);
        }
        let before = shared_memory();
        let usage = process::run(&mut launch.under(uftrace).command(), scratch);
        // It removes its buffers itself, unless it was killed. Another uftrace's have another session.
        let sessions = sessions(output);
        for path in shared_memory().difference(&before) {
            if sessions.iter().any(|session| path.to_string_lossy().contains(session.as_str())) {
                let _ = fs::remove_file(path);
            }
        }
        usage
    }
}

/// The sessions of a data directory: it has a file `sid-SESSION.map` for each.
fn sessions(output: &Path) -> Vec<String> {
    let entries = fs::read_dir(output).into_iter().flatten().flatten();
    let session = |name: String| Some(name.strip_prefix("sid-")?.strip_suffix(".map")?.to_owned());
    entries.filter_map(|entry| session(entry.file_name().into_string().ok()?)).collect()
}

fn shared_memory() -> HashSet<PathBuf> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let theirs = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("uftrace-"));
    theirs.map(|entry| entry.path()).collect()
}
