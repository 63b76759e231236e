//! Finds the file that a program's name stands for, by the rules of `execvp`.
//!
//! The crate `which` does not keep those rules: it has no default path, and a file without permission is to it as if there
//! were none.

use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::refusal::{CANNOT_EXECUTE, NOT_FOUND, Refusal};

/// The search path when there is no PATH: glibc's own default.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file that `name` stands for: itself if it has a slash, else the first in PATH that may be executed.
///
/// # Errors
/// A refusal as `env` has it: [`NOT_FOUND`] if there is no such file, [`CANNOT_EXECUTE`] if it cannot be executed.
pub fn find(name: &OsStr) -> Result<PathBuf, Refusal> {
    let path = env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    find_in(name, &path)
}

fn find_in(name: &OsStr, path: &OsStr) -> Result<PathBuf, Refusal> {
    let not_found = || Refusal::new(NOT_FOUND, format_args!("{}: No such file or directory", name.display()));
    if name.is_empty() {
        return Err(not_found());
    }
    if name.as_bytes().contains(&b'/') {
        let file = PathBuf::from(name);
        return match check_executable(&file) {
            Ok(()) => Ok(file),
            Err(ErrorKind::NotFound) => Err(not_found()),
            Err(kind) => Err(cannot_execute(&file, kind)),
        };
    }
    let mut refusal = Refusal::new(NOT_FOUND, format_args!("{}: not found in PATH", name.display()));
    for directory in path.as_bytes().split(|&byte| byte == b':') {
        // An empty element is the working directory. With a slash in it, the name is not searched for again.
        let directory = if directory.is_empty() { b"." } else { directory };
        let file = PathBuf::from(OsString::from_vec([directory, b"/", name.as_bytes()].concat()));
        match check_executable(&file) {
            Ok(()) => return Ok(file),
            Err(kind @ ErrorKind::PermissionDenied) => refusal = cannot_execute(&file, kind),
            Err(_) => {}
        }
    }
    Err(refusal)
}

fn cannot_execute(file: &Path, kind: ErrorKind) -> Refusal {
    let why = if kind == ErrorKind::IsADirectory { "Is a directory" } else { "Permission denied" };
    Refusal::new(CANNOT_EXECUTE, format_args!("{}: {why}", file.display()))
}

/// Whether a path can be executed; if not, because it is a directory, or without permission, or not there.
fn check_executable(path: &Path) -> Result<(), ErrorKind> {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Err(ErrorKind::IsADirectory),
        Ok(metadata) if metadata.is_file() && may_be_executed(path) => Ok(()),
        Err(error) if error.kind() != ErrorKind::PermissionDenied => Err(ErrorKind::NotFound),
        _ => Err(ErrorKind::PermissionDenied),
    }
}

/// Whether this process may execute a file with its effective rights.
fn may_be_executed(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a NUL-terminated path that outlives the call. (Linux before 5.8 does not know the flag; libc emulates it.)
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::X_OK, libc::AT_EACCESS) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn file(path: &Path, mode: u32) {
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let directory = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
        fs::create_dir_all(first.join("folder")).unwrap();
        fs::create_dir(&second).unwrap();
        file(&first.join("plain"), 0o644);
        file(&second.join("plain"), 0o755);
        file(&first.join("data"), 0o644);
        file(&second.join("folder"), 0o755);
        let path = env::join_paths([&directory.path().join("none"), &first, &second]).unwrap();
        let found = |name: &str| find_in(name.as_ref(), &path).map_err(|refusal| (refusal.status, refusal.message));
        assert_eq!(found("plain").unwrap(), second.join("plain"), "a file that cannot be executed is skipped");
        assert_eq!(found("folder").unwrap(), second.join("folder"));
        let (status, message) = found("data").unwrap_err();
        assert_eq!((status, message), (126, format!("{}/data: Permission denied", first.display())));
        assert_eq!(found("nothing").unwrap_err(), (127, "nothing: not found in PATH".to_owned()));
        assert_eq!(found("").unwrap_err().0, 127);
        let inside = |name: &str| format!("{}/{name}", first.display());
        assert_eq!(found(&inside("data")).unwrap_err().0, 126);
        assert_eq!(found(&inside("folder")).unwrap_err(), (126, inside("folder: Is a directory")));
        assert_eq!(found(&inside("nothing")).unwrap_err().0, 127);
        assert_eq!(found(&inside("../second/plain")).unwrap(), PathBuf::from(inside("../second/plain")));
    }
}
