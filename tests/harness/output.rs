//! The result of a command.

use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use super::excerpt;

/// The result of a command. Its `Debug` form shows the beginning and the end of long outputs.
pub struct CommandOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed on stdout.
    pub stdout: Vec<u8>,
    /// What it printed on stderr.
    pub stderr: Vec<u8>,
    /// The line for a shell that repeats it.
    pub command: String,
}

impl fmt::Debug for CommandOutput {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CommandOutput { status, stdout, stderr, command } = self;
        let [stdout, stderr] = [stdout, stderr].map(|text| excerpt(&String::from_utf8_lossy(text)));
        write!(out, "{command}: {status}\nstdout:\n{stdout}stderr:\n{stderr}")
    }
}

impl CommandOutput {
    /// Fails unless the exit status is 0.
    #[track_caller]
    pub fn success(&self) -> &CommandOutput {
        self.exited(0)
    }

    /// Fails unless it exited with this status.
    #[track_caller]
    pub fn exited(&self, code: i32) -> &CommandOutput {
        assert_eq!(self.status.code(), Some(code), "{self:?}");
        self
    }

    /// Whether the program could do what it is for. It ends with 77 where the kernel or the user's rights do not permit `what` it needs; that
    /// is said.
    pub fn is_permitted(&self, what: &str) -> bool {
        let is_permitted = self.status.code() != Some(77);
        if !is_permitted {
            println!("skipped, this is not permitted: {what} {}{}", self.stdout_text(), self.stderr_text());
        }
        is_permitted
    }

    /// Fails unless this signal ended it.
    #[track_caller]
    pub fn killed(&self, signal: i32) -> &CommandOutput {
        assert_eq!(self.status.signal(), Some(signal), "{self:?}");
        self
    }

    /// What it printed on stdout, as text.
    pub fn stdout_text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("stdout is text")
    }

    /// What it printed on stderr, as text.
    pub fn stderr_text(&self) -> &str {
        std::str::from_utf8(&self.stderr).expect("stderr is text")
    }

    /// The lines on stderr that are the library's.
    pub fn noise(&self) -> Vec<&str> {
        self.stderr_lines().filter(|line| line.starts_with("libthreadt: ")).collect()
    }

    fn stderr_lines(&self) -> impl Iterator<Item = &str> {
        self.stderr.split(|&byte| byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok())
    }
}
