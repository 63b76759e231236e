//! The functions and lines of addresses in the code of recorded processes, and the names of their data.
//!
//! The files are what somebody put where a trace says that a program was, years later perhaps: they are used if their build ID is
//! the recorded one, read and never mapped (a mapped file that shrinks would raise SIGBUS), and what is damaged in them is
//! as if it were not there.

mod aliases;
mod code_maps;
#[cfg(test)]
mod damage_tests;
mod debug_files;
mod debug_info;
mod demangle;
mod dwarf_sections;
mod function_scopes;
mod module_file;
mod name_pattern;
mod split_debug;
mod symbol_table;
mod symbolizer;
mod variable_types;

pub use aliases::Aliases;
pub use code_maps::{CodeAddress, CodeMap, CodeMaps};
pub use debug_info::CodeFrame;
pub use symbolizer::{NameLack, Symbolizer};
