//! The structure of the crates: layers without circles, short files, and names that are there once.
//!
//! The documentation of each crate's `src/lib.rs` has a section `# Layers`, which lists the crate's top-level modules from the
//! top to the bottom, one layer a line: ``- `hooks`: interposed functions``. Modules on one line, as in
//! ``- `filter`, `arrange`: …``, do not use each other. These are the rules for libthreadt, trace-cat and spec:
//!
//! 1. A file below the top-level module A uses module B only if B is A, or if B's line is below A's. This counts for what a
//!    path names, in `use` and in code, and for the file that defines it. `src/lib.rs` and `src/main.rs` are above all layers.
//!    A program's `trace_cat::…` is its library's `crate::…`.
//! 2. The list and the top-level modules are the same. Modules in braces belong to the file that they stand in.
//! 3. There is no circle of files, within a folder either. What is named through a facade (a `mod.rs` with `pub use`) counts as
//!    the file that defines it. Importing a module is no dependency; what is named by its path is one.
//! 4. A file uses nothing that the file of an enclosing module defines: a `mod.rs` is a facade or above its children.
//! 5. Every file below `src` belongs to a module, and has at most 400 lines.
//! 6. Only trace-cat's `src/main.rs`, `cli` and `launch` print (`print!`, `println!`, `eprint!`, `eprintln!`, `dbg!`) and end the
//!    process (`process::exit`).
//! 7. Types (`struct`, `enum`, `union`, `trait`, `type`) have names that are unique in their crate; this rule includes tests,
//!    examples, benchmarks and the crates of tests. It leaves out associated types and the aliases within a function.
//!
//! Rules 1, 3, 4 and 6 leave out what is compiled for tests only: items under `#[cfg(test)]` and `#[test]`, modules called `tests`
//! or `…_tests`, files of such names, and modules that are declared under `#[cfg(test)]`. Code that build scripts generate is
//! not read. A macro is one that `macro_rules` defines; the paths in it count where it is written, not where it is called.

mod made_up_crates;
mod resolution;
mod rules;
mod scanner;
mod source_tree;

use std::path::Path;

use self::source_tree::read_source_files;
use crate::harness;

fn assert_no_faults(directory: &Path, faults: &[String]) {
    let lines = faults.iter().map(|fault| format!("\n{}/{fault}", directory.display()));
    assert!(faults.is_empty(), "{} faults:{}", faults.len(), lines.collect::<String>());
}

fn check(crate_name: &str) {
    let directory = harness::repository().join(crate_name);
    assert_no_faults(Path::new(crate_name), &rules::faults(crate_name, &read_source_files(&directory)));
}

#[test]
fn libthreadt_is_in_layers() {
    check("libthreadt");
}

#[test]
fn trace_cat_is_in_layers() {
    check("trace-cat");
}

#[test]
fn spec_is_in_layers() {
    check("spec");
}

#[test]
fn types_of_the_tests_have_unique_names() {
    for directory in ["tests", "tests/bench"] {
        let files = read_source_files(&harness::repository().join(directory));
        assert_no_faults(Path::new(directory), &rules::duplicate_type_faults(&files));
    }
}
