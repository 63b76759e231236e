//! Checks whether a program can be recorded, by its file, before it runs.
//!
//! ```text
//! program ──► #! interpreter ──► ELF: for which machine, with which dynamic linker, with whose rights
//! ```
//!
//! A file that may be executed but not read passes the check.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{StatVfsMountFlags, getxattr_query, statvfs};
use rustix::process::{getgid, getuid};
use rustix::thread::no_new_privs;
use spec::FUNCTIONS;

use super::elf::{self, Elf, Machine};
use super::program_path;
use super::refusal::{NOT_FOUND, Refusal};

/// How often an interpreter may itself be a script, as in Linux.
const SCRIPTS_MAX: usize = 5;
/// How many bytes of a script's first line Linux reads.
const FIRST_LINE_LEN: u64 = 256;

/// What matters of a program that can be recorded.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ProgramTraits {
    /// It links AddressSanitizer's shared runtime, which insists on being the first library.
    pub address_sanitizer: bool,
    /// Why its locks, or some of them, will not be recorded, if files show that.
    pub unrecorded_locks: Option<&'static str>,
}

/// Checks the program's file, and its interpreters' if it is a script.
pub fn check(path: &Path, library: &Elf) -> Result<ProgramTraits, Obstacle> {
    let mut path = path.to_owned();
    for _ in 0..SCRIPTS_MAX {
        match interpreter(&path)? {
            Some(next) => path = next,
            None => return binary(&path, library),
        }
    }
    // Linux refuses to execute it, and reports why.
    Ok(ProgramTraits::default())
}

/// Why a program is not run.
#[derive(Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// It runs, but nothing could be recorded.
    Unrecordable(String),
    /// It cannot be executed.
    Fatal(Refusal),
}

fn unrecordable<T>(path: &Path, why: impl std::fmt::Display) -> Result<T, Obstacle> {
    Err(Obstacle::Unrecordable(format!("{}: {why}", path.display())))
}

/// The interpreter of a script; `None` for other files.
fn interpreter(path: &Path) -> Result<Option<PathBuf>, Obstacle> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FIRST_LINE_LEN).read_to_end(&mut text));
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
        return unrecordable(path, why);
    }
    let Some(linker) = &elf.interpreter else {
        // The dynamic linker itself, run as a program, names none.
        return match path.file_name() {
            Some(name) if is_glibc_linker(name.as_bytes()) => Ok(ProgramTraits::default()),
            _ => unrecordable(path, "is linked statically, so no library can be loaded into it"),
        };
    };
    let linker = Path::new(OsStr::from_bytes(linker));
    if !linker.exists() {
        let what = format_args!("{}: its dynamic linker {} is not there", path.display(), linker.display());
        return Err(Obstacle::Fatal(Refusal::new(NOT_FOUND, what)));
    }
    if !linker.file_name().is_some_and(|name| is_glibc_linker(name.as_bytes())) {
        return unrecordable(
            path,
            format_args!("is for another C library ({}); libthreadt.so is for glibc", linker.display()),
        );
    }
    if let Some(right) = privilege(path) {
        return unrecordable(path, format_args!("{right}, so nothing is preloaded into it and nothing recorded"));
    }
    Ok(ProgramTraits {
        address_sanitizer: elf.needed.iter().any(|name| is_address_sanitizer(name)),
        unrecorded_locks: unrecorded_locks(path, &elf, linker),
    })
}

/// Whether a library, by its path or name, is AddressSanitizer's runtime: that of GCC or of Clang.
pub fn is_address_sanitizer(library: &[u8]) -> bool {
    let name = library.rsplit(|&byte| byte == b'/').next().unwrap_or(library);
    name.starts_with(b"libasan.so") || name.starts_with(b"libclang_rt.asan")
}

/// Why locks of the program at `path` will not be recorded: it uses a runtime that calls futex(2) by instructions of its own, or
/// neither it nor its libraries import a function by which the library could notice a lock.
fn unrecorded_locks(path: &Path, elf: &Elf, linker: &Path) -> Option<&'static str> {
    let mut imports = Imports::default();
    imports.add(elf);
    if elf.is_go {
        return Some(if imports.locks {
            "not all of its locks can be recorded: Go calls futex(2) by instructions of its own"
        } else {
            "nothing of this program's locking will be seen: Go calls futex(2) by instructions of its own"
        });
    }
    if elf.needed.iter().any(|name| name.starts_with(b"libgomp.so")) {
        return Some(
            "not all of its locks can be recorded: OpenMP (libgomp) calls futex(2) by instructions of its own",
        );
    }
    if !imports.locks {
        libraries(path, linker).iter().for_each(|library| imports.add(library));
    }
    imports.are_suspicious().then_some(
        "nothing of this program's locking will be seen: neither it nor its libraries import `syscall` or a function that locks",
    )
}

/// What a program and its libraries import of the recorded functions.
#[derive(Debug, Default)]
struct Imports {
    /// A function that locks, waits or wakes, or `syscall`.
    locks: bool,
    /// A function that creates a thread.
    threads: bool,
    /// A function that opens libraries, whose imports are not known: java's locks are in libjvm.so.
    libraries: bool,
    /// Any recorded function.
    recorded: bool,
}

impl Imports {
    fn add(&mut self, elf: &Elf) {
        for name in &elf.imports {
            self.locks |= name == b"syscall" || LOCKS.iter().any(|prefix| name.starts_with(prefix));
            self.threads |= THREADS.contains(&name.as_slice());
            self.libraries |= LIBRARIES.contains(&name.as_slice());
            let is_recorded =
                |function: &spec::Function| function.symbol.split('@').next().map(str::as_bytes) == Some(name);
            self.recorded |= FUNCTIONS.iter().any(is_recorded);
        }
    }

    /// Whether there may be locks, but none that is recorded. A program without threads has no need of any.
    fn are_suspicious(&self) -> bool {
        !self.locks && !self.libraries && (self.threads || !self.recorded)
    }
}

/// The libraries that the dynamic linker would load with a program, but for its own. None if it does not say.
fn libraries(path: &Path, linker: &Path) -> Vec<Elf> {
    // $ORIGIN in it is that of the file, not of a link to it.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let run = Command::new(linker).arg("--list").arg(path).env_remove("LD_PRELOAD").stdin(Stdio::null()).output();
    let text = run.map(|output| output.stdout).unwrap_or_default();
    // `	libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f46c4d8c000)`
    let paths = text.split(|&byte| byte == b'\n').filter_map(|line| {
        let path = line.trim_ascii().split(|&byte| byte == b' ').skip_while(|word| *word != b"=>").nth(1)?;
        let name = path.rsplit(|&byte| byte == b'/').next()?;
        let is_libc = [&b"libc.so"[..], b"libpthread.so", b"ld-linux"].iter().any(|own| name.starts_with(own));
        (!is_libc).then(|| PathBuf::from(OsStr::from_bytes(path)))
    });
    paths.filter_map(|path| File::open(path).ok().and_then(elf::read)).collect()
}

/// Functions by which a program opens libraries.
const LIBRARIES: [&[u8]; 2] = [b"dlopen", b"dlmopen"];

/// Functions by which a program gets threads.
const THREADS: [&[u8]; 3] = [b"pthread_create", b"thrd_create", b"clone"];

/// What the names of the functions begin with that lock, wait and wake.
const LOCKS: [&[u8]; 10] = [
    b"pthread_mutex_",
    b"pthread_cond_",
    b"pthread_rwlock_",
    b"pthread_barrier_",
    b"pthread_spin_",
    b"sem_",
    b"mtx_",
    b"cnd_",
    b"pthread_once",
    b"call_once",
];

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
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let mode = metadata.mode();
    // Without the group's right to execute, the set-group-ID bit means mandatory locking.
    let group_bits = libc::S_ISGID | libc::S_IXGRP;
    if mode & libc::S_ISUID != 0 && metadata.uid() != user {
        return Some("is set-user-ID");
    }
    if mode & group_bits == group_bits && metadata.gid() != group {
        return Some("is set-group-ID");
    }
    // Root has all capabilities anyway.
    (user != 0 && getxattr_query(path, "security.capability").is_ok_and(|length| length > 0))
        .then_some("has file capabilities")
}

/// Whether the kernel ignores such bits here: the file system is mounted nosuid, or `no_new_privs` is set.
fn ignores_privileges(path: &Path) -> bool {
    no_new_privs() == Ok(true) || statvfs(path).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::NOSUID))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn this_program() -> Elf {
        elf::read(File::open("/proc/self/exe").unwrap()).unwrap()
    }

    #[test]
    fn an_ordinary_program_is_no_obstacle() {
        assert_eq!(check(Path::new("/bin/sh"), &this_program()), Ok(ProgramTraits::default()));
    }

    #[test]
    fn locks_that_cannot_be_recorded_are_found_by_what_a_program_imports() {
        let linker = this_program().interpreter.map(|linker| PathBuf::from(OsStr::from_bytes(&linker))).unwrap();
        let hint = |needed: &str, is_go: bool, imports: &[&str]| {
            let imports = imports.iter().map(|name| name.as_bytes().to_owned()).collect();
            let elf = Elf { needed: vec![needed.as_bytes().to_owned()], imports, is_go, ..this_program() };
            unrecorded_locks(Path::new("/nonexistent"), &elf, &linker).unwrap_or_default()
        };
        assert!(hint("libgomp.so.1", false, &["pthread_mutex_lock", "syscall"]).contains("OpenMP"));
        assert!(hint("libc.so.6", true, &["printf"]).starts_with("nothing of this program's locking will be seen: Go"));
        // Those of its C part are recorded.
        assert!(hint("libc.so.6", true, &["pthread_mutex_lock", "printf"]).starts_with("not all of its locks"));
        for imports in [&["pthread_create", "exit"][..], &["clone", "printf"], &["printf"], &[]] {
            assert!(hint("libc.so.6", false, imports).starts_with("nothing of this program's locking"), "{imports:?}");
        }
        let unsuspicious = [&["syscall", "pthread_create"][..], &["pthread_create", "sem_wait"], &["fork", "printf"]];
        for imports in unsuspicious.into_iter().chain([&["pthread_create", "dlopen"][..]]) {
            assert_eq!(hint("libc.so.6", false, imports), "", "{imports:?}");
        }
        // The standard library calls futex(2) by syscall.
        assert_eq!(check(Path::new("/proc/self/exe"), &this_program()).unwrap().unrecorded_locks, None);
    }

    #[test]
    fn libraries_of_a_program_are_those_that_the_linker_finds() {
        let linker = this_program().interpreter.map(|linker| PathBuf::from(OsStr::from_bytes(&linker))).unwrap();
        let libraries = libraries(&std::env::current_exe().unwrap(), &linker);
        // libgcc, which unwinds.
        assert!(libraries.iter().any(|library| library.imports.iter().any(|name| name == b"malloc")));
        // libc, which it leaves out, imports nothing of its own.
        assert!(libraries.iter().all(|library| !library.needed.is_empty()));
    }

    /// The check's result for a script.
    fn script(first_line: &str) -> Result<ProgramTraits, Obstacle> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("script");
        fs::write(&path, format!("{first_line}\nexit 1\n")).unwrap();
        check(&path, &this_program())
    }

    #[test]
    fn the_interpreters_of_scripts_are_checked() {
        for line in ["#!/bin/sh", "#! /bin/sh -e", "#!/usr/bin/env sh", "#!/usr/bin/env -S A=b sh -e", "exit 0", "#!"] {
            assert_eq!(script(line), Ok(ProgramTraits::default()), "{line}");
        }
        let Err(Obstacle::Fatal(refusal)) = script("#!/nonexistent/interpreter -x") else { panic!() };
        assert!(refusal.status == 127 && refusal.message.contains("/nonexistent/interpreter is not there"));
        let Err(Obstacle::Fatal(refusal)) = script("#!/usr/bin/env no-such-program") else { panic!() };
        assert_eq!((refusal.status, &*refusal.message), (127, "no-such-program: not found in PATH"));
    }

    /// The check's result for a copy of this program with changed bytes.
    fn changed(change: impl FnOnce(&mut Vec<u8>)) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        let mut bytes = fs::read("/proc/self/exe").unwrap();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
        match check(&path, &this_program()) {
            Err(Obstacle::Unrecordable(why)) => why.replace(&format!("{}: ", path.display()), ""),
            Err(Obstacle::Fatal(refusal)) => format!("{} {}", refusal.status, refusal.message),
            Ok(traits) => format!("{traits:?}"),
        }
    }

    fn linker(name: &str) -> String {
        changed(|bytes| {
            let old = this_program().interpreter.unwrap();
            let at = bytes.windows(old.len() + 1).position(|bytes| bytes == [&old[..], b"\0"].concat()).unwrap();
            assert!(name.len() <= old.len());
            bytes[at..at + name.len()].copy_from_slice(name.as_bytes());
            bytes[at + name.len()] = 0;
        })
    }

    #[test]
    fn programs_for_other_systems_are_refused() {
        // e_machine is at byte 18, the class at byte 4.
        assert!(changed(|bytes| bytes[18] = 183).starts_with("is for another machine (aarch64, 64-bit); "));
        assert!(linker("/bin/sh").starts_with("is for another C library (/bin/sh); "));
        let missing = linker("/nonexistent/ld");
        assert!(missing.starts_with("127 ") && missing.ends_with("its dynamic linker /nonexistent/ld is not there"));
        assert_eq!(changed(|bytes| bytes.truncate(20)), format!("{:?}", ProgramTraits::default()));
    }
}
