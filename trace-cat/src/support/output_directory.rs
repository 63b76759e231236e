//! Directories that an output makes.

use std::fs;
use std::io;
use std::path::Path;

/// Makes `directory`, unless there is an empty one. `option` is what the directory is for.
///
/// # Errors
/// The failure to make the directory, and that it is not empty.
pub fn make_empty(directory: &Path, option: &str) -> io::Result<()> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Err(_) if fs::read_dir(directory)?.next().is_some() => {
            Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("the directory for {option} is not empty")))
        }
        _ => Ok(()),
    }
}
