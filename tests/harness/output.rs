//! What came of a command.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// What came of a command.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// What it complained of.
    pub stderr: Vec<u8>,
    /// The line for a shell that repeats it.
    pub command: String,
}

impl Output {
    /// Fails unless the exit status is 0.
    pub fn success(&self) -> &Output {
        self.exited(0)
    }

    /// Fails unless it exited with this status.
    pub fn exited(&self, code: i32) -> &Output {
        let Output { status, command, .. } = self;
        assert_eq!(status.code(), Some(code), "{command}: {status}\n{}{}", self.stdout_text(), self.stderr_text());
        self
    }

    /// Fails unless this signal ended it.
    pub fn killed(&self, signal: i32) -> &Output {
        let Output { status, command, .. } = self;
        assert_eq!(status.signal(), Some(signal), "{command}: {status}\n{}{}", self.stdout_text(), self.stderr_text());
        self
    }

    /// What it printed, as text.
    pub fn stdout_text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("stdout is text")
    }

    /// What it complained of, as text.
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
