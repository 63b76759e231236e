//! How the library is linked.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Stands first among the library's versions, where the dynamic linker takes a function for references without a
/// version: old versions that libc has had from the first are exported under this one too.
pub const UNVERSIONED: &str = "THREADT_UNVERSIONED";

/// What no reference may find has this version (`src/glibc/libc_mark.rs`).
const NOBODYS: &str = "THREADT_NOBODYS";

/// Asks cargo for the linker and its options. The library's exports have these versions, or none.
pub fn request(target: &Path, versions: &BTreeSet<&str>) {
    // An undefined symbol has to stop the link, not the host.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
    // In a build of the whole workspace the crate libc has its feature std, and leaves this to the standard library.
    println!("cargo:rustc-cdylib-link-arg=-lc");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,now");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libthreadt.so");
    let script = target.join("versions.map");
    fs::write(&script, version_script(versions)).expect("OUT_DIR is writable");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={}", script.display());
    use_lld();
}

/// The linker's script with the versions of the library's exports, each of which names its version itself.
fn version_script(versions: &BTreeSet<&str>) -> String {
    let versions = [UNVERSIONED].into_iter().chain(versions.iter().copied()).chain([NOBODYS]);
    versions.map(|version| format!("{version} {{ }};\n")).collect()
}

/// Has the library linked by LLVM's linker. The compiler has a version script of its own, without versions, and GNU ld
/// takes none beside that.
fn use_lld() {
    println!("cargo:rerun-if-env-changed=PATH");
    let rustc = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let output = Command::new(rustc).args(["--print", "sysroot"]).output().expect("rustc runs");
    let sysroot = String::from_utf8(output.stdout).expect("a path of UTF-8");
    let target = env::var("TARGET").expect("cargo sets TARGET");
    // The compiler's own, as the option `link-self-contained=+linker` has it; else the system's.
    let own = format!("{}/lib/rustlib/{target}/bin/gcc-ld", sysroot.trim_end());
    if Path::new(&own).join("ld.lld").exists() {
        println!("cargo:rustc-cdylib-link-arg=-B{own}");
    } else {
        let found = Command::new("ld.lld").arg("--version").output().is_ok_and(|output| output.status.success());
        assert!(
            found,
            "the library is linked by ld.lld, which this compiler does not bring (Debian: apt-get install lld)"
        );
    }
    println!("cargo:rustc-cdylib-link-arg=-fuse-ld=lld");
}
