//! A program with its arguments, to be started natively, under the library, or by a peer.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a program gets of our environment. Anything else may change what it does, and by how much: a variable that has node
/// read the machine's certificates makes it lock 800,000 times before it begins.
const INHERITED: [&str; 4] = ["HOME", "JAVA_HOME", "PATH", "TMPDIR"];
/// What it does not get of the complete environment: settings of recorders.
const NOT_INHERITED: [&str; 3] = ["LD_PRELOAD", "THR_TRACE", "LTTNG_"];

/// One program, ready to be started as often as wanted.
#[derive(Clone, Debug)]
pub struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
    inherits_all: bool,
}

impl Launch {
    /// A program, by path or by a name that is looked for in PATH.
    pub fn new(program: impl Into<PathBuf>) -> Launch {
        Launch {
            program: program.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
            directory: None,
            inherits_all: false,
        }
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

    /// In the environment of the one who measures.
    pub fn in_complete_environment(mut self) -> Launch {
        self.inherits_all = true;
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
            inherits_all: self.inherits_all,
        }
    }

    /// The command, in an environment that is the same everywhere, or in the complete one.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if self.inherits_all {
            let is_setting = |name: &OsString| {
                NOT_INHERITED.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
            };
            for (name, _) in env::vars_os().filter(|(name, _)| is_setting(name)) {
                command.env_remove(name);
            }
        } else {
            command.env_clear().env("LC_ALL", "C");
            command.envs(INHERITED.iter().filter_map(|name| Some((name, env::var_os(name)?))));
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

    /// cargo has set variables of its own.
    #[test]
    fn little_is_inherited() {
        let output = Launch::new("env").env("A", "1").command().output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let known = |name| INHERITED.contains(&name) || ["A", "LC_ALL"].contains(&name);
        assert!(text.lines().all(|line| known(line.split('=').next().unwrap())), "{text}");
        assert!(text.contains("\nA=1\n") || text.starts_with("A=1\n"), "{text}");
    }

    #[test]
    fn all_but_settings_is_inherited() {
        let output = Launch::new("env").in_complete_environment().env("A", "1").command().output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("CARGO_MANIFEST_DIR=") && text.lines().any(|line| line == "A=1"), "{text}");
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
