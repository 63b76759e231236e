//! The crates and the built library: layers of the sources, exports, imports, unwind information.

mod elf_library;
mod layers;
mod library_rules;
mod packages;
mod unwind_frames;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use self::elf_library::Import;
pub use self::elf_library::Library;
use self::library_rules::{RULES, exports, hooked_symbols, imports};
use crate::harness::{self, Program};

fn built() -> Library {
    Library::read(&harness::library())
}

/// The names of the rules that a library breaks, with the faults.
fn broken(library: &Library) -> BTreeMap<&'static str, Vec<String>> {
    let found = RULES.iter().map(|rule| (rule.name, (rule.faults)(library)));
    found.filter(|(_, faults)| !faults.is_empty()).collect()
}

#[test]
fn the_built_library_is_fit() {
    let broken = broken(&built());
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Where libc has several versions of a function that differ in their code, each has a hook of its own. A hook without a
/// version would take calls of all of them, and pass them on to one.
#[test]
fn every_version_of_a_function_has_its_hook() {
    let libc = Library::symbol_addresses(&c_library());
    let mut missing: Vec<&String> = Vec::new();
    for function in spec::FUNCTIONS.iter().filter(|function| !function.symbol.contains('@')) {
        let versions = libc.iter().filter(|(symbol, _)| symbol.split('@').next() == Some(function.symbol));
        let versions: Vec<_> = versions.collect();
        if versions.iter().any(|(_, address)| *address != versions[0].1) {
            let has_hook = |symbol: &str| spec::FUNCTIONS.iter().any(|function| function.export == symbol);
            missing.extend(versions.iter().map(|(symbol, _)| symbol).filter(|symbol| !has_hook(symbol)));
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

/// The C library that this program runs with.
fn c_library() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let paths = maps.lines().filter_map(|line| line.split_ascii_whitespace().nth(5));
    paths.map(PathBuf::from).find(|path| path.ends_with("libc.so.6")).expect("a C library")
}

/// The reader finds every fault of a library that is made to break each rule.
#[test]
fn an_unfit_library_is_detected() {
    let flags = "-shared -fPIC -Wl,-z,execstack,-z,notext,-z,lazy,-rpath,/unfit,--no-as-needed -lm";
    let unfit = Program::with_flags("artefact/unfit.c", &flags.split(' ').collect::<Vec<_>>());
    let unfit = Library::read(unfit.path());
    assert!(unfit.exports.contains("unfit_allocation") && unfit.imports.contains_key("malloc"), "{unfit:#?}");
    let broken = broken(&unfit);
    let mut expected: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    // Its symbols are as old as this machine's libc lets them be.
    expected.retain(|name| *name != "releases" || broken.contains_key("releases"));
    assert_eq!(broken.len(), expected.len(), "expected: {expected:?}, detected: {broken:#?}");
    for fault in [
        ("exports", "unfit_allocation is not in functions.tsv"),
        ("exports", "pthread_mutex_lock of functions.tsv is not there"),
        ("imports", "malloc is not in imports.txt"),
        ("imports", "on_exit of imports.txt is not there"),
        ("needed", "libm.so.6 is not in the libraries it may need"),
        ("thread-local", "256 bytes of thread-local storage"),
        ("thread-local", "thread-local storage is not of the initial-exec model"),
        ("thread-local", "__tls_get_addr may allocate"),
        ("text relocations", "code is relocated"),
        ("memory", "the stack is to be executable"),
        ("loading", "symbols are bound late"),
        ("loading", "it can be unloaded"),
        ("loading", "it has a search path"),
        ("panics", "_RNvNtCs0_4core9panicking13assert_failed is linked"),
    ] {
        assert!(broken[fault.0].iter().any(|message| message == fault.1), "{fault:?}: {:#?}", broken[fault.0]);
    }
}

/// Each rule notices the smallest change of our own library.
#[test]
fn a_small_change_is_detected() {
    let import = |version: &str| Import { weak: false, version: Some(version.to_owned()) };
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Library));
    let changes: [Change<'_>; 18] = [
        ("exports", &|library| {
            library.exports.remove("pthread_mutex_lock");
        }),
        ("exports", &|library| {
            library.exports.insert("rust_eh_personality".to_owned());
        }),
        ("exports", &|library| {
            library.exports.insert("pthread_kill".to_owned());
        }),
        ("exports", &|library| {
            library.exports.remove("pthread_kill@THREADT_UNVERSIONED");
        }),
        ("imports", &|library| {
            library.imports.insert("dlsym".to_owned(), import("GLIBC_2.2.5"));
        }),
        ("imports", &|library| {
            library.imports.remove("on_exit");
        }),
        ("imports", &|library| library.imports.get_mut("on_exit").unwrap().weak = true),
        ("needed", &|library| {
            library.needed.insert("libgcc_s.so.1".to_owned());
        }),
        ("releases", &|library| {
            library.imports.insert("memcpy".to_owned(), import("GLIBC_2.29"));
        }),
        ("releases", &|library| {
            library.imports.insert("memcpy".to_owned(), import("GLIBC_3.0"));
        }),
        ("releases", &|library| {
            library.imports.insert("memcpy".to_owned(), import("GLIBC_ABI_DT_RELR"));
        }),
        ("thread-local", &|library| library.thread_local = 129),
        ("thread-local", &|library| library.flags[0] = 0),
        ("text relocations", &|library| library.text_relocations = true),
        ("memory", &|library| library.executable_stack = true),
        ("memory", &|library| library.writable_code = true),
        ("loading", &|library| library.flags[1] &= !u64::from(object::elf::DF_1_NODELETE)),
        ("panics", &|library| {
            library.names.insert("_RNvNtCs0_4core3fmt5write".to_owned());
        }),
    ];
    for (index, (rule, change)) in changes.into_iter().enumerate() {
        let mut library = built();
        change(&mut library);
        assert_eq!(broken(&library).into_keys().collect::<Vec<_>>(), [rule], "change {index}");
    }
    let mut stripped = built();
    stripped.names.clear();
    assert!(broken(&stripped).contains_key("panics"));
}

/// The lists are held to the library, not only the library to the lists.
#[test]
fn doctored_lists_are_detected() {
    let library = built();
    let list = include_str!("imports.txt");
    assert_eq!(imports(&library, list), [""; 0]);
    for doctored in [
        list.lines().filter(|line| !line.starts_with("getauxval\t")).flat_map(|line| [line, "\n"]).collect(),
        format!("{list}open\tto open files\n"),
        format!("{list}memset\tonce more\n"),
        list.replace("getauxval\tAT_SECURE", "getauxval\tweak; AT_SECURE"),
        list.replace("memset\tcompiled from array initialisers; pure", "memset"),
    ] {
        assert_eq!(imports(&library, &doctored).len().min(1), 1, "{doctored}");
    }
    assert_eq!(exports(&library, hooked_symbols()), [""; 0]);
    assert_eq!(exports(&library, hooked_symbols().skip(1)), ["pthread_create is not in functions.tsv"]);
    assert_eq!(exports(&library, hooked_symbols().chain(["malloc"])), ["malloc of functions.tsv is not there"]);
}
