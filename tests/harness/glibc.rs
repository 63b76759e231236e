//! Another version of glibc, under which the C programs of the suite run: `tests/glibc` unpacks it.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Where Debian's packages have libraries.
const LIBRARIES: &str = "lib/x86_64-linux-gnu";

/// An unpacked glibc, and the headers and stubs that programs are built with for it.
pub struct Glibc {
    root: PathBuf,
    headers: PathBuf,
}

/// That of `$THREADT_GLIBC` and `$THREADT_GLIBC_HEADERS`; `None` for this machine's own.
pub fn chosen() -> Option<Glibc> {
    let root = PathBuf::from(env::var_os("THREADT_GLIBC")?);
    let headers = env::var_os("THREADT_GLIBC_HEADERS").map_or_else(|| root.clone(), PathBuf::from);
    Some(Glibc { root, headers })
}

impl Glibc {
    /// The directory's name.
    pub fn name(&self) -> String {
        self.root.file_name().expect("a directory with a name").to_string_lossy().into_owned()
    }

    /// The directory of its libraries.
    pub fn libraries(&self) -> PathBuf {
        self.root.join(LIBRARIES)
    }

    /// Its dynamic linker.
    pub fn dynamic_linker(&self) -> PathBuf {
        self.libraries().join("ld-linux-x86-64.so.2")
    }

    /// Whether threads are in a library of their own, as before glibc 2.34. Later there is an empty one.
    pub fn has_libpthread(&self) -> bool {
        let size = |name| fs::metadata(self.libraries().join(name)).map_or(0, |metadata| metadata.len());
        size("libpthread.so.0") > size("libc.so.6") / 20
    }

    /// What a compiler is asked for: programs that this version's dynamic linker starts, with its libraries.
    pub fn flags(&self) -> Vec<String> {
        let path = |path: &Path| path.display().to_string();
        let libraries = path(&self.libraries());
        let stubs = self.headers.join("usr").join(LIBRARIES);
        vec![
            format!("--sysroot={}", path(&self.headers)),
            // Ahead of the directories that the compiler knows by itself.
            format!("-B{}", path(&stubs)),
            format!("-L{}", path(&stubs)),
            format!("-L{}", path(&self.headers.join(LIBRARIES))),
            format!("-Wl,--dynamic-linker={}", path(&self.dynamic_linker())),
            // The compiler's libstdc++ may need a newer glibc; the programs run with that of the packages.
            "-Wl,--allow-shlib-undefined".to_owned(),
            // The old kind of search path, which also serves the libraries of libraries.
            format!(
                "-Wl,--disable-new-dtags,-rpath,{libraries},-rpath,{}",
                path(&self.root.join("usr").join(LIBRARIES))
            ),
        ]
    }
}
