//! The rules for a library that is preloaded into programs that do not know it.

use std::collections::BTreeSet;

use object::elf::{DF_1_NODELETE, DF_1_NOW, DF_STATIC_TLS};

use super::elf_library::Library;

/// The oldest glibc that README.md promises to run on.
const OLDEST_GLIBC: [u32; 2] = [2, 28];

/// The linker keeps room for thread-local storage of libraries that are loaded late; more than this might not fit.
const THREAD_LOCAL_MAX: u64 = 128;

/// What may remain of the machinery of panics: bounds checks within itoa and of slices, which the compiler does not see
/// through. They lead to the handler in `src/lib.rs`; no message is put together on a host's stack.
///
/// And the landing pads of hooks, with what they call: `panic = "abort"` gives every `extern "C-unwind"` call one, but the
/// personality routine in `src/glibc/unwind_guard.rs` lets no unwinder enter it, as the tests of cancellation and exceptions
/// show.
const PANICS: [&str; 5] =
    ["panic_bounds_check", "panic_fmt", "panic_cannot_unwind", "panic_nounwind", "panic_nounwind_fmt"];

/// Hooks that record nothing: these functions change what the library may do, what the clock shows, what code is where, or who has
/// the memory. `libthreadt/build.rs` names them among its HELPERS, with what is called only; this list is what that is compared with.
const WITHOUT_RECORD: [&str; 29] = [
    "__clone",
    "__libc_start_main",
    "chroot",
    "clone",
    "close",
    "close_range",
    "closedir",
    "closefrom",
    "dlclose",
    "dup2",
    "dup3",
    "fclose",
    "freopen",
    "freopen64",
    "pclose",
    "prctl",
    "prlimit",
    "prlimit64",
    "seteuid",
    "setfsuid",
    "setns",
    "setresuid",
    "setreuid",
    "setrlimit",
    "setrlimit64",
    "setuid",
    "syscall",
    "ulimit",
    "unshare",
];

/// What programs call to record events of their own (`threadt.h`).
const FOR_PROGRAMS: [&str; 10] = [
    "threadt_put_barrier_spin_destroy",
    "threadt_put_barrier_spin_init",
    "threadt_put_barrier_spin_return",
    "threadt_put_barrier_spin_wait",
    "threadt_put_begin",
    "threadt_put_counter",
    "threadt_put_end",
    "threadt_put_event",
    "threadt_put_mark",
    "threadt_put_object",
];

/// The names of all hooks, and of what programs call to record.
pub fn hooked_symbols() -> impl Iterator<Item = &'static str> {
    spec::FUNCTIONS.iter().map(|row| row.export).chain(WITHOUT_RECORD).chain(FOR_PROGRAMS)
}

/// A rule: its name, and what it finds wrong with a library.
pub struct Rule {
    pub name: &'static str,
    pub faults: fn(&Library) -> Vec<String>,
}

/// All rules.
pub const RULES: [Rule; 9] = [
    Rule { name: "exports", faults: |library| exports(library, hooked_symbols()) },
    Rule { name: "imports", faults: |library| imports(library, include_str!("imports.txt")) },
    Rule { name: "needed", faults: needed },
    Rule { name: "releases", faults: releases },
    Rule { name: "thread-local", faults: thread_local },
    Rule { name: "text relocations", faults: |library| fault(library.text_relocations, "code is relocated") },
    Rule { name: "memory", faults: memory },
    Rule { name: "loading", faults: loading },
    Rule { name: "panics", faults: panics },
];

fn fault(broken: bool, what: &str) -> Vec<String> {
    if broken { vec![what.to_owned()] } else { Vec::new() }
}

/// The names that are in one set and not in the other.
fn differences(found: &BTreeSet<&str>, wanted: &BTreeSet<&str>, place: &str) -> Vec<String> {
    let extra = found.difference(wanted).map(|name| format!("{name} is not in {place}"));
    let missing = wanted.difference(found).map(|name| format!("{name} of {place} is not there"));
    extra.chain(missing).collect()
}

/// The hooks, and nothing else that could get in the way of a program's own names. Most are without a version, so that
/// the linker takes them for every version of a name that a program asks for. Where a name has versions, a hook without
/// one beside them would take all. What references without a version get is libc's first version.
pub fn exports<'a>(library: &Library, table: impl Iterator<Item = &'a str>) -> Vec<String> {
    let table: Vec<&str> = table.collect();
    let firsts = table.iter().filter_map(|export| export.strip_suffix("@GLIBC_2.2.5"));
    let firsts: Vec<String> = firsts.map(|name| format!("{name}@THREADT_UNVERSIONED")).collect();
    let found = library.exports.iter().map(String::as_str).collect();
    // What keeps it out of musl's programs.
    let wanted = table.iter().copied().chain(firsts.iter().map(String::as_str)).chain(["stdin@@THREADT_NOBODYS"]);
    differences(&found, &wanted.collect(), "functions.tsv")
}

/// The imports are exactly those of the list, which marks as weak the names that may be missing.
pub fn imports(library: &Library, list: &str) -> Vec<String> {
    let rows =
        list.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_once('\t').unwrap_or((line, "")));
    let (mut wanted, mut faults) = (BTreeSet::new(), Vec::new());
    for (name, reason) in rows {
        faults.extend(fault(reason.is_empty(), &format!("{name} of imports.txt has no reason")));
        faults.extend(fault(!wanted.insert(name), &format!("{name} is in imports.txt twice")));
        let weak = library.imports.get(name).is_none_or(|import| import.weak);
        faults.extend(fault(weak != reason.starts_with("weak"), &format!("{name} of imports.txt: weak or not?")));
    }
    let found = library.imports.keys().map(String::as_str).collect();
    faults.extend(differences(&found, &wanted, "imports.txt"));
    faults
}

/// libc and its linker, which every program has already.
fn needed(library: &Library) -> Vec<String> {
    let found = library.needed.iter().map(String::as_str).collect();
    differences(&found, &BTreeSet::from(["ld-linux-x86-64.so.2", "libc.so.6"]), "the libraries it may need")
}

/// No symbol's version is newer than the oldest libc to run on.
fn releases(library: &Library) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, import) in &library.imports {
        let Some(version) = &import.version else { continue };
        let numbers = version.strip_prefix("GLIBC_").map(|text| text.split('.').map(str::parse).collect());
        match numbers {
            Some(Ok::<Vec<u32>, _>(numbers)) if numbers.as_slice() <= &OLDEST_GLIBC[..] => {}
            _ => faults.push(format!("{name} is of {version}")),
        }
    }
    faults
}

/// Thread-local storage is small and at a fixed distance from the thread pointer.
fn thread_local(library: &Library) -> Vec<String> {
    let size = library.thread_local;
    let mut faults = fault(size > THREAD_LOCAL_MAX, &format!("{size} bytes of thread-local storage"));
    let is_static = library.flags[0] & u64::from(DF_STATIC_TLS) != 0;
    faults.extend(fault(size > 0 && !is_static, "thread-local storage is not of the initial-exec model"));
    faults.extend(fault(library.imports.contains_key("__tls_get_addr"), "__tls_get_addr may allocate"));
    faults
}

/// Nothing that hardened systems refuse.
fn memory(library: &Library) -> Vec<String> {
    let mut faults = fault(library.executable_stack, "the stack is to be executable");
    faults.extend(fault(library.writable_code, "code is writable"));
    faults
}

/// All symbols are bound when it is loaded (the binder is not safe everywhere a hook is), it stays (its hooks may be
/// running), and it searches for libraries nowhere else.
fn loading(library: &Library) -> Vec<String> {
    let flag = |flag: u32| library.flags[1] & u64::from(flag) != 0;
    let mut faults = fault(!flag(DF_1_NOW), "symbols are bound late");
    faults.extend(fault(!flag(DF_1_NODELETE), "it can be unloaded"));
    faults.extend(fault(library.search_path, "it has a search path"));
    faults
}

/// No message is formatted, and no way of panicking is left but the known ones.
fn panics(library: &Library) -> Vec<String> {
    let mut faults = fault(library.names.is_empty(), "stripped: no symbols show whether it can panic");
    // In Rust's mangling a name has its length in front.
    let known = |name: &str| PANICS.iter().any(|known| name.ends_with(&format!("9panicking{}{known}", known.len())));
    for name in &library.names {
        let panics = name.contains("4core9panicking") && !known(name);
        faults.extend(fault(panics || name.contains("4core3fmt"), &format!("{name} is linked")));
    }
    faults
}
