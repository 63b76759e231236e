//! C, C++ and Rust programs of `tests/programs`, compiled when a test first needs them.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::SystemTime;

use super::glibc;

/// A compiled program.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
}

impl AsRef<OsStr> for Program {
    fn as_ref(&self) -> &OsStr {
        self.path.as_os_str()
    }
}

/// What has been compiled in this run: by output file, so that two tests that want the same wait for one compiler.
static COMPILED: LazyLock<Mutex<HashMap<PathBuf, Arc<OnceLock<()>>>>> = LazyLock::new(Mutex::default);

impl Program {
    /// Compiles `tests/programs/<source>`: by g++ if its name ends in `.cpp`, by rustc if in `.rs`, else by gcc.
    ///
    /// # Panics
    /// If it does not compile without a warning.
    pub fn c(source: &str) -> Program {
        Program::with_flags(source, &[])
    }

    /// As [`Program::c`], with further flags, which come after the source (`-l…` among them).
    pub fn with_flags(source: &str, flags: &[&str]) -> Program {
        let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(source);
        let name: String = source.chars().chain(flags.concat().chars()).map(plain).collect();
        let programs =
            glibc::chosen().map_or_else(|| "programs".to_owned(), |glibc| format!("programs-{}", glibc.name()));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(programs).join(name);
        let once = Arc::clone(COMPILED.lock().unwrap().entry(path.clone()).or_default());
        once.get_or_init(|| compile(&input, &path, flags));
        Program { path }
    }

    /// A program of the package `tests/programs/crates`, whose libraries cargo fetches.
    ///
    /// # Panics
    /// If it does not compile, or cargo cannot fetch a library.
    pub fn of_crates(name: &str) -> Program {
        static BUILT: OnceLock<()> = OnceLock::new();
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crates");
        BUILT.get_or_init(|| {
            let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/crates");
            let mut command = Command::new(env!("CARGO"));
            command
                .args(["build", "--release", "--locked", "--quiet", "--target-dir"])
                .arg(&target)
                .current_dir(package);
            // Flags of the suite's own build are not for other people's programs.
            for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR"] {
                command.env_remove(name);
            }
            let result = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
            let messages = String::from_utf8_lossy(&result.stderr);
            assert!(result.status.success(), "{command:?} (the libraries come from cargo's registry)\n{messages}");
        });
        Program { path: target.join("release").join(name) }
    }

    /// The executable, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A character that a file name may have.
fn plain(character: char) -> char {
    if character.is_ascii_alphanumeric() || "-_.".contains(character) { character } else { '_' }
}

/// Compiles, unless the output is newer than the source and every header.
fn compile(input: &Path, output: &Path, flags: &[&str]) {
    fs::create_dir_all(output.parent().unwrap()).unwrap();
    // Another run of the tests may compile the same program right now: this one waits, and leaves the file as it is, which that one executes.
    let _lock = lock(&with_suffix(output, ".lock"));
    if modified(output).is_some_and(|built| sources(input).all(|source| modified(&source) < Some(built))) {
        return;
    }
    // A compiler that is killed leaves an incomplete file.
    let partial = with_suffix(output, ".partial");
    let (compiler, options): (&str, &[&str]) = match input.extension().and_then(OsStr::to_str) {
        Some("rs") => ("rustc", &["--edition=2024", "-O", "-g", "-Dwarnings"]),
        Some("cpp") => ("g++", &["-std=gnu++17"]),
        _ => ("gcc", &["-std=gnu11"]),
    };
    let mut command = Command::new(compiler);
    let of_libc = glibc::chosen().map(|glibc| glibc.flags()).unwrap_or_default();
    if compiler == "rustc" {
        command.args(options).arg("-o").arg(&partial).arg(input).args(flags);
        command.args(of_libc.iter().map(|flag| format!("-Clink-arg={flag}")));
    } else {
        command
            .args(options)
            .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-fno-builtin", "-o"])
            .arg(&partial)
            .arg(input)
            .args(flags)
            // Before glibc 2.34 dlopen and forkpty stand in libraries of their own.
            .args(["-ldl", "-lutil"])
            .args(of_libc);
    }
    let result = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let messages = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "{command:?}\n{messages}");
    fs::rename(&partial, output).unwrap();
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Locks a file, which is made if need be, until what is returned goes.
fn lock(path: &Path) -> File {
    let file = File::create(path).unwrap();
    // SAFETY: an open file's descriptor.
    let result = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) };
    assert_eq!(result, 0, "{}: {}", path.display(), io::Error::last_os_error());
    file
}

/// The source and what it may include: the headers of all programs.
fn sources(input: &Path) -> impl Iterator<Item = PathBuf> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let directories = entries(&programs).filter(|path| path.is_dir());
    let files = directories.chain([programs.clone()]).flat_map(|directory| entries(&directory));
    [input.to_owned()].into_iter().chain(files.filter(|path| path.extension() == Some(OsStr::new("h"))))
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path())
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}
