//! The rules, on small crates that are made up: each fault is found, and what is legal passes.

use super::rules::{duplicate_type_faults, faults};
use super::source_tree::SourceFiles;

/// The list of layers that all made-up crates share, and its modules.
const ROOT: &str = "//! A crate.\n//!\n//! # Layers\n//!\n//! - `top`: uses all\n//! - `left`, `right`: do not use each \
                    other\n//! - `bottom`: used by all\n//!\n//! # More\n//! - `prose`: no layer\nmod bottom;\nmod left;\nmod right;\nmod top;\n";

/// A crate of these files and of a root and modules that are right.
fn made_up(files: &[(&str, &str)]) -> SourceFiles {
    let modules = ["top", "left", "right", "bottom"].map(|name| format!("src/{name}.rs"));
    let mut crate_files: SourceFiles = modules.into_iter().map(|file| (file, "pub fn call() {}".to_owned())).collect();
    crate_files.insert("src/lib.rs".to_owned(), ROOT.to_owned());
    for (file, text) in files {
        // A folder replaces the file of the same name.
        if let Some(module) = file.strip_suffix("/mod.rs") {
            crate_files.remove(&format!("{module}.rs"));
        }
        crate_files.insert((*file).to_owned(), (*text).to_owned());
    }
    crate_files
}

#[track_caller]
fn assert_legal(files: &[(&str, &str)]) {
    assert_eq!(faults("made-up", &made_up(files)), [""; 0]);
}

/// Each expected text begins a fault, and there are no other faults.
#[track_caller]
fn assert_faults(files: &[(&str, &str)], expected: &[&str]) {
    let found = faults("made-up", &made_up(files));
    let matches =
        found.len() == expected.len() && found.iter().zip(expected).all(|(fault, text)| fault.starts_with(text));
    assert!(matches, "found {found:#?}, expected {expected:#?}");
}

#[test]
fn downward_arrows_are_legal() {
    assert_legal(&[]);
    assert_legal(&[
        (
            "src/top.rs",
            "use crate::bottom;\nuse crate::{left::{self, call as other}, right::*};\nfn f() { bottom::call(); left::call() }",
        ),
        ("src/left.rs", "pub fn call() { crate::bottom::call() }"),
        ("src/right.rs", "use super::bottom::call as below;\npub fn call() { below() }"),
    ]);
}

#[test]
fn what_is_not_of_the_crate_is_no_arrow() {
    assert_legal(&[(
        "src/bottom.rs",
        "use std::io::{self, Read};\nuse ::top::x;\npub(in crate::top) fn call() { io::stdin(); std::top::left(); let top = 1; \
         Type::top(); \"crate::top::call()\"; /* crate::top::call() */ crate::exported!() }\n/// crate::top::call()\nstruct Type;",
    )]);
}

#[test]
fn an_upward_import_is_found() {
    let fault = "src/bottom.rs:2: `crate::top::call` leads to layer `top`, which is above `bottom`";
    assert_faults(&[("src/bottom.rs", "\nuse crate::top::call;")], &[fault]);
    assert_faults(&[("src/bottom.rs", "\nuse crate::{top::call as other};")], &[fault]);
    assert_faults(&[("src/bottom.rs", "use crate::{\ntop::{call},\n};")], &[fault]);
    assert_faults(&[("src/bottom.rs", "\nuse super::top::call;")], &["src/bottom.rs:2: `super::top::call` leads"]);
    assert_faults(&[("src/bottom.rs", "use crate::top;")], &["src/bottom.rs:1: `crate::top` leads to layer `top`"]);
    assert_faults(&[("src/bottom.rs", "use crate::top::*;")], &["src/bottom.rs:1: `crate::top::*` leads"; 2]);
    assert_faults(
        &[("src/bottom.rs", "fn f() { use crate::top::call; }")],
        &["src/bottom.rs:1: `crate::top::call` leads"],
    );
}

#[test]
fn an_upward_inline_path_is_found() {
    let fault = "src/bottom.rs:2: `crate::top::call` leads to layer `top`, which is above `bottom`";
    assert_faults(&[("src/bottom.rs", "fn f() {\n crate::top::call() }")], &[fault]);
    assert_faults(&[("src/bottom.rs", "fn f() {\n println_of!(\"\", g(crate::top::call)) }")], &[fault]);
    assert_faults(&[("src/bottom.rs", "fn f(\n x: &impl crate::top::call) {}")], &[fault]);
    assert_faults(&[("src/bottom.rs", "macro_rules! m { () => {\n $crate::top::call() } }")], &[fault]);
    assert_faults(
        &[("src/bottom.rs", "fn f() { super::top::call::<u8>() }")],
        &["src/bottom.rs:1: `super::top::call`"],
    );
    assert_faults(
        &[("src/bottom.rs", "mod inner {\n fn f() { super::super::top::call() } }")],
        &["src/bottom.rs:2: `super::super::top::call` leads"],
    );
}

#[test]
fn an_arrow_within_a_layer_is_found() {
    assert_faults(
        &[("src/left.rs", "use crate::right::call;")],
        &["src/left.rs:1: `crate::right::call` leads to layer `right`, which is beside"],
    );
}

#[test]
fn an_arrow_to_the_root_is_found() {
    let root = format!("{ROOT}pub fn of_root() {{}}\npub use top::call;\n");
    assert_faults(
        &[("src/lib.rs", root.as_str()), ("src/bottom.rs", "use crate::of_root;")],
        &["src/bottom.rs:1: `crate::of_root` is defined in src/lib.rs, which is above all layers"],
    );
    assert_faults(
        &[("src/lib.rs", root.as_str()), ("src/bottom.rs", "use crate::call;")],
        &["src/bottom.rs:1: `crate::call` leads to layer `top`"],
    );
}

#[test]
fn a_circle_within_a_folder_is_found() {
    let fault = "src/left/first.rs:1: files in a circle:\n    \
                 src/left/first.rs:1: `super::second::b` is defined in src/left/second.rs\n    \
                 src/left/second.rs:2: `crate::left::first::a` is defined in src/left/first.rs";
    let facade = ("src/left/mod.rs", "mod first;\nmod second;");
    let second = ("src/left/second.rs", "\nuse crate::left::first::a;\npub fn b() {}");
    assert_faults(&[facade, ("src/left/first.rs", "use super::second::b;\npub fn a() {}"), second], &[fault]);
    assert_faults(&[facade, ("src/left/first.rs", "pub fn a() { super::second::b() }"), second], &[fault]);
    assert_legal(&[facade, ("src/left/first.rs", "use super::second;\npub fn a() {}"), second]);
}

#[test]
fn a_circle_of_three_is_found_once() {
    assert_faults(
        &[
            ("src/left/mod.rs", "mod a;\nmod b;\nmod c;\nmod outside;"),
            ("src/left/a.rs", "use super::b;\npub fn f() { b::f() }"),
            ("src/left/b.rs", "pub fn f() { super::c::f() }"),
            ("src/left/c.rs", "pub use crate::left::a::f as other;\npub fn f() {}"),
            ("src/left/outside.rs", "fn f() { super::a::f() }"),
        ],
        &["src/left/a.rs:2: files in a circle:\n    src/left/a.rs:2: `b::f` is defined in src/left/b.rs\n"],
    );
}

#[test]
fn a_facade_stands_for_the_files_behind_it() {
    let facade =
        ("src/left/mod.rs", "mod first;\nmod second;\npub use first::{a as renamed, Kind};\npub use second::*;");
    let first = ("src/left/first.rs", "pub fn a() {}\npub enum Kind { One }");
    assert_legal(&[
        facade,
        first,
        ("src/left/second.rs", "use super::{Kind, renamed};\npub fn b() { renamed(); super::Kind::One; }"),
        ("src/top.rs", "use crate::left::b;\nfn f() { crate::left::renamed() }"),
    ]);
    assert_faults(
        &[
            facade,
            ("src/left/first.rs", "use super::b;\npub fn a() {}\npub enum Kind { One }"),
            ("src/left/second.rs", "pub fn b() { super::Kind::One; }"),
        ],
        &[
            "src/left/first.rs:1: files in a circle:\n    src/left/first.rs:1: `super::b` is defined in src/left/second.rs\n    \
           src/left/second.rs:1: `super::Kind::One` is defined in src/left/first.rs",
        ],
    );
    assert_faults(
        &[
            facade,
            ("src/left/first.rs", "use super::*;\npub fn a() {}\npub enum Kind { One }"),
            ("src/left/second.rs", "pub fn b() { super::Kind::One; }"),
        ],
        &["src/left/first.rs:1: files in a circle:"],
    );
}

#[test]
fn a_facade_of_another_layer_hides_no_arrow() {
    // The list allows `right` to use `bottom`, whose facade takes the function from the top.
    assert_faults(
        &[("src/bottom.rs", "pub use crate::top::call;"), ("src/right.rs", "pub fn f() { crate::bottom::call() }")],
        &[
            "src/bottom.rs:1: `crate::top::call` leads to layer `top`",
            "src/right.rs:1: `crate::bottom::call` leads to layer `top`",
        ],
    );
}

#[test]
fn a_child_that_uses_its_parent_is_found() {
    let fault = "src/left/child.rs:1: `super::of_parent` is defined in the parent, src/left/mod.rs";
    let child = ("src/left/child.rs", "use super::of_parent;\npub fn f() {}");
    assert_faults(&[("src/left/mod.rs", "mod child;\npub fn of_parent() {}"), child], &[fault]);
    // Above its children it may stand.
    assert_legal(&[
        ("src/left/mod.rs", "mod child;\npub fn of_parent() { child::f() }"),
        ("src/left/child.rs", "pub fn f() {}"),
    ]);
    let circle = "src/left/child.rs:1: files in a circle";
    assert_faults(&[("src/left/mod.rs", "mod child;\npub fn of_parent() { child::f() }"), child], &[fault, circle]);
    // A file beside its folder is the same as a mod.rs in it.
    assert_faults(
        &[("src/left.rs", "mod child;\npub fn of_parent() {}"), child],
        &["src/left/child.rs:1: `super::of_parent` is defined in the parent, src/left.rs"],
    );
}

#[test]
fn an_alias_of_a_module_is_followed() {
    assert_faults(
        &[
            ("src/left/mod.rs", "mod first;\nmod second;"),
            ("src/left/first.rs", "use crate::left as here;\nuse here::second as other;\npub fn a() { other::b() }"),
            ("src/left/second.rs", "pub fn b() { super::first::a() }"),
        ],
        &[
            "src/left/first.rs:3: files in a circle:\n    src/left/first.rs:3: `other::b` is defined in src/left/second.rs",
        ],
    );
}

#[test]
fn tests_may_use_everything() {
    assert_legal(&[
        (
            "src/bottom.rs",
            "#[cfg(test)]\nmod tests { use crate::top::call; }\n#[cfg(test)]\nmod images;\nmod clock_tests;\n\
             #[cfg(all(test, unix))]\nuse crate::{left, right};\n#[test]\nfn f() { crate::top::call() }\n\
             pub struct S {\n #[cfg(test)]\n pub a: crate::top::T,\n b: u8 }",
        ),
        ("src/bottom/images.rs", "mod deeper;\nuse crate::top::call;"),
        ("src/bottom/images/deeper.rs", "use crate::top::call;\nfn f() { println!() }"),
        ("src/bottom/clock_tests.rs", "use crate::top::call;"),
    ]);
    let fault = "src/bottom.rs:2: `crate::top::call` leads to layer `top`";
    assert_faults(&[("src/bottom.rs", "#[cfg(not(test))]\nuse crate::top::call;")], &[fault]);
    assert_faults(&[("src/bottom.rs", "#[cfg(test)] use crate::{left, right};\nuse crate::top::call;")], &[fault]);
    assert_faults(&[("src/bottom.rs", "struct S { #[cfg(test)] pub a: u8,\n b: crate::top::call }")], &[fault]);
    assert_faults(&[("src/bottom.rs", "#[cfg(any(test, unix))] const A: u8 =\n crate::top::call;")], &[fault]);
}

#[test]
fn the_list_names_the_modules() {
    let without_bottom = ROOT.replace("//! - `bottom`: used by all\n", "");
    assert_faults(
        &[("src/lib.rs", without_bottom.as_str())],
        &["src/bottom.rs:1: module `bottom` is not in the list of layers"],
    );
    let with_another = ROOT.replace("`bottom`:", "`bottom`, `cellar`:");
    assert_faults(&[("src/lib.rs", with_another.as_str())], &["src/lib.rs:7: there is no module `cellar`"]);
    let twice = ROOT.replace("`bottom`:", "`bottom`, `top`:");
    assert_faults(&[("src/lib.rs", twice.as_str())], &["src/lib.rs:7: layer `top` is listed twice"]);
    let without_list = ROOT.replace("# Layers", "# Players");
    assert_faults(
        &[("src/lib.rs", without_list.as_str())],
        &["src/lib.rs:1: its documentation has no `# Layers` list"],
    );
    assert_faults(
        &[("src/left.rs", "mod lost;"), ("src/stray.rs", "")],
        &["src/left.rs:1: module `lost` has no file", "src/stray.rs:1: no module declares this file"],
    );
}

#[test]
fn a_program_stands_above_its_library() {
    let program = "fn main() { made_up::top::call(); println!(); std::process::exit(1) }";
    assert_legal(&[("src/main.rs", program)]);
    let root = ROOT.replace("//! - `top`", "//! - `main`: the program\n//! - `cli`: its options\n//! - `top`");
    let cli = "use made_up::bottom::call;\nuse std::process;\npub fn f() { process::exit(1) }";
    assert_legal(&[("src/lib.rs", root.as_str()), ("src/main.rs", "mod cli;\nuse cli::f;"), ("src/cli.rs", cli)]);
}

#[test]
fn the_engine_prints_nothing() {
    let text = "fn f() {\n println!(\"\");\n eprint!();\n std::process::exit(1);\n writeln!(out) }\nuse std::process::exit;\n\
                #[cfg(test)]\nfn g() { println!() }";
    assert_faults(
        &[("src/left.rs", text)],
        &[
            "src/left.rs:2: `println!` belongs to the program",
            "src/left.rs:3: `eprint!`",
            "src/left.rs:4: `process::exit`",
            "src/left.rs:6: `process::exit`",
        ],
    );
}

#[test]
fn a_long_file_is_found() {
    let line = "// One of many.\n";
    let (long, fits) = (line.repeat(401), line.repeat(400));
    assert_faults(&[("src/left.rs", &long)], &["src/left.rs:401: 401 lines; 400 are the limit"]);
    assert_legal(&[("src/left.rs", &fits), ("tests/long.rs", &long)]);
}

#[test]
fn two_types_of_one_name_are_found() {
    let files = |text: &str| made_up(&[("src/left.rs", "pub struct Clock;"), ("tests/cli.rs", text)]);
    for text in [
        "enum Clock {}",
        "mod tests { fn f() { struct Clock; } }",
        "static F: fn() = f; mod m { pub type Clock = u8; }",
        "macro_call! { trait Clock {} }",
    ] {
        let expected = "tests/cli.rs:1: type `Clock` is defined at src/left.rs:1 as well";
        assert_eq!(duplicate_type_faults(&files(text)), [expected], "{text}");
    }
    for text in [
        "impl Iterator for Watch { type Clock = u8; }\ntrait Tick { type Clock; }\nfn clock(struct_clock: Clock) -> impl Clock {}",
        "fn f() { type Clock = u8; } impl A { fn f() { type Clock = u8; } }",
        "// struct Clock;\nconst TEXT: &str = \"struct Clock;\";\nmacro_rules! m { ($Clock:ident) => { struct $Clock; } }",
    ] {
        assert_eq!(duplicate_type_faults(&files(text)), [""; 0], "{text}");
    }
}
