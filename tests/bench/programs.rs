//! Real programs, with inputs that are always the same and take them about half a second.

use std::fs;
use std::path::Path;

use crate::launch::Launch;
use crate::process::{self, Stop};

/// A program that is in use elsewhere.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    /// coreutils' sort.
    Sort,
    /// xz.
    Xz,
    /// Node.js.
    Node,
    /// Node.js reads its root certificates, and those that the environment names, as every program does that uses TLS.
    NodeTls,
    /// A Java virtual machine.
    Java,
    /// git.
    Git,
}

/// Versions of the repository's files, one commit each.
const VERSIONS: u64 = 8;
/// Files in each.
const FILES: u64 = 600;

impl Program {
    /// Makes its input in `scratch`.
    ///
    /// # Errors
    /// If that cannot be done, or takes a program that is missing.
    pub fn prepare(self, sources: &Path, scratch: &Path) -> Result<(), Stop> {
        let run = |launch: Launch| process::run(&mut launch.command(), scratch).map(drop);
        match self {
            Program::Sort => write(&scratch.join("numbers"), &numbers(1_500_000))?,
            Program::Xz => write(&scratch.join("plain"), &numbers(1_200_000))?,
            Program::Node | Program::NodeTls => {}
            Program::Java => run(Launch::new("javac").arg("-d").args([scratch]).args([sources.join("Pool.java")]))?,
            Program::Git => {
                let repository = scratch.join("repository");
                let git = |arguments: &[&str]| run(git(scratch).args(arguments));
                run(Launch::new("git").args(["init", "-q"]).args([&repository]))?;
                for version in 0..VERSIONS {
                    write_files(&repository, version)?;
                    git(&["add", "."])?;
                    git(&["commit", "-q", "-m", "version"])?;
                }
            }
        }
        // An unmeasured run first: it reads the files into memory, and git's first repack differs from all later ones.
        run(self.launch(sources, scratch))
    }

    /// How it is run.
    pub fn launch(self, sources: &Path, scratch: &Path) -> Launch {
        match self {
            Program::Sort => {
                let sort = Launch::new("sort").args(["--parallel=2", "-S", "200M", "-n", "-o"]);
                sort.args([scratch.join("sorted"), scratch.join("numbers")])
            }
            Program::Xz => {
                Launch::new("xz").args(["-T2", "-1", "--block-size=1MiB", "-k", "-f"]).args([scratch.join("plain")])
            }
            Program::Node => Launch::new("node").args([sources.join("pool.js")]),
            Program::NodeTls => {
                Launch::new("node").args(["-e", "require('node:tls').createSecureContext()"]).in_complete_environment()
            }
            Program::Java => Launch::new("java").arg("-cp").args([scratch]).arg("Pool"),
            Program::Git => git(scratch).args(["repack", "-a", "-d", "-f", "-q"]),
        }
    }
}

/// git in our repository, which knows nothing of the machine's own settings.
fn git(scratch: &Path) -> Launch {
    Launch::new("git")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", "1700000000 +0000")
        .env("GIT_COMMITTER_DATE", "1700000000 +0000")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "gc.auto=0", "-c", "pack.threads=2"])
        .within(&scratch.join("repository"))
}

/// Pseudo-random 32-bit numbers, one a line.
fn numbers(count: usize) -> String {
    let numbers = std::iter::successors(Some(1u64), |&number| Some(number * 16807 % 2_147_483_647));
    numbers.take(count).map(|number| format!("{number}\n")).collect()
}

/// Files that resemble each other and their former versions, so that the repack has something to search.
fn write_files(repository: &Path, version: u64) -> Result<(), Stop> {
    for file in 0..FILES {
        let lines: String =
            (0..150).map(|line| format!("{line} of {file}, {}\n", line * (file + version) % 977)).collect();
        write(&repository.join(format!("file{file}")), &lines)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Stop> {
    fs::write(path, text).map_err(|error| Stop::Cannot(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_is_always_the_same() {
        assert_eq!(numbers(4), "1\n16807\n282475249\n1622650073\n");
    }
}
