//! Why a program cannot be recorded, as far as its file tells before it runs.
//!
//! ```text
//! program ──► #! interpreter ──► ELF: for which machine, with which dynamic linker, with whose rights
//! ```
//!
//! Where nothing can be told (a file that may be executed but not read), nothing is said.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::elf;
use super::elf::{Elf, Machine};
use super::program_path;
use super::refusal::{NOT_FOUND, Refusal};

/// How often an interpreter may itself be a script, as in Linux.
const SCRIPTS: usize = 5;
/// How much of a script's first line Linux reads.
const FIRST_LINE: u64 = 256;

/// What there is to know of a program that can be recorded.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ProgramTraits {
    /// It links AddressSanitizer's shared runtime, which insists on being the first library.
    pub address_sanitizer: bool,
}

/// Looks at the program's file, and at its interpreters' if it is a script.
///
/// # Errors
/// Why nothing could be recorded, or why it cannot be executed.
pub fn look(path: &Path, library: &Elf) -> Result<ProgramTraits, Obstacle> {
    let mut path = path.to_owned();
    for _ in 0..SCRIPTS {
        match interpreter(&path)? {
            Some(next) => path = next,
            None => return binary(&path, library),
        }
    }
    // Linux refuses it, and says so.
    Ok(ProgramTraits::default())
}

/// Why a program is not run.
#[derive(Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// It runs, but nothing could be recorded.
    Unseen(String),
    /// It cannot be executed.
    Fatal(Refusal),
}

fn unseen<T>(path: &Path, why: impl std::fmt::Display) -> Result<T, Obstacle> {
    Err(Obstacle::Unseen(format!("{}: {why}", path.display())))
}

/// The program that a script is for.
fn interpreter(path: &Path) -> Result<Option<PathBuf>, Obstacle> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FIRST_LINE).read_to_end(&mut text));
    let Some(line) = read.ok().and_then(|_| text.strip_prefix(b"#!")) else { return Ok(None) };
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| b" \t\r".contains(byte)).filter(|word| !word.is_empty());
    let Some(name) = words.next().map(OsStr::from_bytes) else { return Ok(None) };
    let interpreter = PathBuf::from(name);
    if !interpreter.exists() {
        let what = format_args!("{}: its interpreter {} is not there", path.display(), interpreter.display());
        return Err(Obstacle::Fatal(Refusal::new(NOT_FOUND, what)));
    }
    if interpreter.file_name() == Some(OsStr::new("env"))
        && let Some(name) = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))
    {
        return program_path::find(OsStr::from_bytes(name)).map(Some).map_err(Obstacle::Fatal);
    }
    Ok(Some(interpreter))
}

fn binary(path: &Path, library: &Elf) -> Result<ProgramTraits, Obstacle> {
    let Some(elf) = File::open(path).ok().and_then(elf::read) else { return Ok(ProgramTraits::default()) };
    if let Some(why) = foreign(elf.machine, library.machine) {
        return unseen(path, why);
    }
    let Some(linker) = &elf.interpreter else {
        // The dynamic linker, started by hand, has none itself.
        return match path.file_name() {
            Some(name) if is_glibc_linker(name.as_bytes()) => Ok(ProgramTraits::default()),
            _ => unseen(path, "is linked statically, so no library can be loaded into it"),
        };
    };
    let linker = Path::new(OsStr::from_bytes(linker));
    if !linker.exists() {
        let what = format_args!("{}: its dynamic linker {} is not there", path.display(), linker.display());
        return Err(Obstacle::Fatal(Refusal::new(NOT_FOUND, what)));
    }
    if !linker.file_name().is_some_and(|name| is_glibc_linker(name.as_bytes())) {
        return unseen(
            path,
            format_args!("is for another C library ({}); libthreadt.so is for glibc", linker.display()),
        );
    }
    if let Some(right) = privilege(path) {
        return unseen(path, format_args!("{right}, so nothing is preloaded into it and nothing recorded"));
    }
    Ok(ProgramTraits { address_sanitizer: elf.needed.iter().any(|name| name.starts_with(b"libasan.so")) })
}

fn foreign(program: Machine, library: Machine) -> Option<String> {
    (program != library).then(|| format!("is for another machine ({program}); libthreadt.so is for {library}"))
}

fn is_glibc_linker(name: &[u8]) -> bool {
    name.starts_with(b"ld-linux") || name.starts_with(b"ld64.so") || name.starts_with(b"ld-2.")
}

/// What makes the program run with more rights than its user has, so that the kernel sets AT_SECURE.
fn privilege(path: &Path) -> Option<&'static str> {
    let metadata = path.metadata().ok()?;
    if ignores_privileges(path) {
        return None;
    }
    // SAFETY: these take nothing and always succeed.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let mode = metadata.mode();
    // Without the group's right to execute, the bit means mandatory locking.
    let group_bits = libc::S_ISGID | libc::S_IXGRP;
    if mode & libc::S_ISUID != 0 && metadata.uid() != user {
        return Some("is set-user-ID");
    }
    if mode & group_bits == group_bits && metadata.gid() != group {
        return Some("is set-group-ID");
    }
    // Root has all of them already.
    (user != 0 && has_capabilities(path)).then_some("has file capabilities")
}

/// Whether the kernel takes no notice of such bits here: a file system mounted nosuid, or `no_new_privs`.
fn ignores_privileges(path: &Path) -> bool {
    // SAFETY: no pointers; the arguments behind the first have to be 0.
    if unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } == 1 {
        return true;
    }
    super::trace_directory::file_system(path).is_some_and(|system| system.f_flag & libc::ST_NOSUID != 0)
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: two NUL-terminated strings that outlive the call; with size 0 nothing is stored.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn this() -> Elf {
        elf::read(File::open("/proc/self/exe").unwrap()).unwrap()
    }

    #[test]
    fn an_ordinary_program_is_no_obstacle() {
        assert_eq!(look(Path::new("/proc/self/exe"), &this()), Ok(ProgramTraits::default()));
    }

    /// A script, and whatever look says of it.
    fn script(first_line: &str) -> Result<ProgramTraits, Obstacle> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("script");
        fs::write(&path, format!("{first_line}\nexit 1\n")).unwrap();
        look(&path, &this())
    }

    #[test]
    fn scripts_are_followed_to_their_interpreters() {
        for line in ["#!/bin/sh", "#! /bin/sh -e", "#!/usr/bin/env sh", "#!/usr/bin/env -S A=b sh -e", "exit 0", "#!"] {
            assert_eq!(script(line), Ok(ProgramTraits::default()), "{line}");
        }
        let Err(Obstacle::Fatal(refusal)) = script("#!/nonexistent/interpreter -x") else { panic!() };
        assert!(refusal.status == 127 && refusal.message.contains("/nonexistent/interpreter is not there"));
        let Err(Obstacle::Fatal(refusal)) = script("#!/usr/bin/env no-such-program") else { panic!() };
        assert_eq!((refusal.status, &*refusal.message), (127, "no-such-program: not found in PATH"));
    }

    /// Bytes of a copy of this program are changed, and then look is asked.
    fn changed(change: impl FnOnce(&mut Vec<u8>)) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        let mut bytes = fs::read("/proc/self/exe").unwrap();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
        match look(&path, &this()) {
            Err(Obstacle::Unseen(why)) => why.replace(&format!("{}: ", path.display()), ""),
            Err(Obstacle::Fatal(refusal)) => format!("{} {}", refusal.status, refusal.message),
            Ok(seen) => format!("{seen:?}"),
        }
    }

    fn linker(name: &str) -> String {
        changed(|bytes| {
            let old = this().interpreter.unwrap();
            let at = bytes.windows(old.len() + 1).position(|part| part == [&old[..], b"\0"].concat()).unwrap();
            assert!(name.len() <= old.len());
            bytes[at..at + name.len()].copy_from_slice(name.as_bytes());
            bytes[at + name.len()] = 0;
        })
    }

    #[test]
    fn programs_for_others_are_told_from_ours() {
        // e_machine is at byte 18, the class at byte 4.
        assert!(changed(|bytes| bytes[18] = 183).starts_with("is for another machine (aarch64, 64-bit); "));
        assert!(linker("/bin/sh").starts_with("is for another C library (/bin/sh); "));
        let missing = linker("/nonexistent/ld");
        assert!(missing.starts_with("127 ") && missing.ends_with("its dynamic linker /nonexistent/ld is not there"));
        assert_eq!(changed(|bytes| bytes.truncate(20)), "ProgramTraits { address_sanitizer: false }");
    }
}
