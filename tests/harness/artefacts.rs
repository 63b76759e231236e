//! The files that the suite tests: the library and trace-cat as built, and the root of the source tree.

use std::env;
use std::path::{Path, PathBuf};

/// `libthreadt.so`, absolute.
pub fn library() -> PathBuf {
    built("libthreadt.so")
}

/// `trace-cat`, absolute.
pub fn trace_cat() -> PathBuf {
    built("trace-cat")
}

/// The root of the source tree.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests have their own directory in it")
}

/// A file of `$THREADT_TARGET`, or else of the workspace's `target/release`.
fn built(name: &str) -> PathBuf {
    let directory = match env::var_os("THREADT_TARGET") {
        Some(directory) => PathBuf::from(directory),
        None => repository().join("target/release"),
    };
    let path = directory.join(name);
    match path.canonicalize() {
        Ok(path) => path,
        Err(error) => panic!("{}: {error}; run make (or set THREADT_TARGET)", path.display()),
    }
}
