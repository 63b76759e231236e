//! A program with its arguments, to be started natively, under the library, or by a peer.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Beginnings of the variables that decide whether and how a program is traced, and must not come from outside.
const TRACING: [&str; 4] = ["LD_PRELOAD", "LTTNG_", "THR_TRACE_", "UFTRACE_"];

fn decides_on_tracing(name: &OsStr) -> bool {
    TRACING.iter().any(|beginning| name.as_encoded_bytes().starts_with(beginning.as_bytes()))
}

/// One program, ready to be started as often as wanted.
#[derive(Clone, Debug)]
pub struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
}

impl Launch {
    /// A program, by path or by a name that is looked for in PATH.
    pub fn new(program: impl Into<PathBuf>) -> Launch {
        Launch { program: program.into(), arguments: Vec::new(), variables: Vec::new(), directory: None }
    }

    /// With further arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Launch {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// With a further argument.
    pub fn arg(self, argument: impl AsRef<OsStr>) -> Launch {
        self.args([argument])
    }

    /// With an environment variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Launch {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// In a working directory.
    pub fn within(mut self, directory: &Path) -> Launch {
        self.directory = Some(directory.to_owned());
        self
    }

    /// Another program that gets this one and its arguments at the end of its own.
    pub fn under(self, outer: Launch) -> Launch {
        let inner = [self.program.into_os_string()].into_iter().chain(self.arguments);
        Launch {
            program: outer.program,
            arguments: outer.arguments.into_iter().chain(inner).collect(),
            variables: self.variables.into_iter().chain(outer.variables).collect(),
            directory: self.directory,
        }
    }

    /// The command, in an environment in which nothing else traces.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        for (name, _) in env::vars_os().filter(|(name, _)| decides_on_tracing(name)) {
            command.env_remove(name);
        }
        command.args(&self.arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_traces() {
        let names = ["THR_TRACE_RING", "LD_PRELOAD", "LTTNG_UST_REGISTER_TIMEOUT", "UFTRACE_FILTER"];
        assert!(names.iter().all(|name| decides_on_tracing(name.as_ref())));
        assert!(["PATH", "LD_LIBRARY_PATH"].iter().all(|name| !decides_on_tracing(name.as_ref())));
    }

    #[test]
    fn a_program_under_another() {
        let inner = Launch::new("sort").args(["-n", "x"]).env("A", "1").within(Path::new("/"));
        let command = inner.under(Launch::new("uftrace").args(["record"]).env("B", "2")).command();
        assert_eq!(command.get_program(), "uftrace");
        assert!(command.get_args().eq(["record", "sort", "-n", "x"]));
        assert_eq!(command.get_current_dir(), Some(Path::new("/")));
        let variables: Vec<_> = command.get_envs().collect();
        assert!(variables.contains(&(OsStr::new("A"), Some(OsStr::new("1")))));
        assert!(variables.contains(&(OsStr::new("B"), Some(OsStr::new("2")))));
    }
}
