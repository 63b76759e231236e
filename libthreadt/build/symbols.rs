//! Names and versions of functions, as `functions.tsv` has them.

use std::collections::BTreeSet;

use super::linking::UNVERSIONED;

/// The version of glibc since which libc has the functions that libpthread had.
const MERGED_VERSION: &str = "GLIBC_2.34";

/// The version that libc's first functions have. References without a version get it, unless they come from `dlsym`.
pub const FIRST_VERSION: &str = "GLIBC_2.2.5";

/// A function's name as a cell of `functions.tsv` has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Symbol<'a> {
    /// Its name in C.
    pub name: &'a str,
    pub version: Option<&'a str>,
    pub is_default: bool,
}

impl Symbol<'_> {
    pub fn parse(cell: &str) -> Symbol<'_> {
        match cell.split_once('@') {
            None => Symbol { name: cell, version: None, is_default: true },
            Some((name, version)) => {
                let default = version.strip_prefix('@');
                Symbol { name, version: default.or(Some(version)), is_default: default.is_some() }
            }
        }
    }

    /// Its name in Rust.
    pub fn ident(&self) -> String {
        match self.version.filter(|_| !self.is_default) {
            Some(version) => format!("{}{}", self.name, version.trim_start_matches("GLIBC").replace('.', "_")),
            None => self.name.to_owned(),
        }
    }

    /// What follows the hook's name where it is defined: the versions under which it is exported.
    pub fn exports(&self) -> String {
        let Symbol { name, version, is_default } = *self;
        match version {
            None => String::new(),
            Some(version) if is_default => format!(" = \"{name}@@{version}\""),
            Some(FIRST_VERSION) => format!(" = \"{name}@{FIRST_VERSION}\" \"{name}@{}\"", UNVERSIONED),
            Some(version) => format!(" = \"{name}@{version}\""),
        }
    }
}

/// The numbers of a version of glibc.
fn release(version: &str) -> Vec<u32> {
    let numbers = version.trim_start_matches("GLIBC_").split('.');
    numbers.map(|number| number.parse().expect("a version of glibc")).collect()
}

/// The statics about functions that a program may be without, each a name and a version.
pub fn optional_functions(optional: &BTreeSet<(&str, &str)>) -> String {
    let list = |name: &str, is_later: bool| {
        let rows = optional.iter().filter(|(_, version)| (release(version) > release(MERGED_VERSION)) == is_later);
        let newest = rows.clone().map(|(_, version)| *version).max_by_key(|version| release(version));
        let rows: Vec<String> = rows.map(|(name, version)| format!("(c\"{name}\", c\"{version}\")")).collect();
        format!(
            "static {name}: Optional<{}> = Optional {{ newest: c\"{}\", functions: [{}] }};\n",
            rows.len(),
            newest.unwrap_or(MERGED_VERSION),
            rows.join(", ")
        )
    };
    list("UNTIL_MERGED", false) + &list("LATER", true)
}
