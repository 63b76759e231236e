//! The modules of a crate, read from its source files: what each module defines, imports and names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use super::scanner::{self, Scope};

/// The text of a crate's source files by their path below the crate's directory, such as `src/lib.rs`.
pub type SourceFiles = BTreeMap<String, String>;

/// Reads the Rust files below `directory`, without those of another crate in a directory within it.
pub fn read_source_files(directory: &Path) -> SourceFiles {
    let mut files = SourceFiles::new();
    collect_source_files(directory, "", &mut files).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    files
}

fn collect_source_files(directory: &Path, prefix: &str, files: &mut SourceFiles) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().into_string().expect("names of source files are UTF-8");
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            if name != "target" && !entry.path().join("Cargo.toml").exists() {
                collect_source_files(&entry.path(), &format!("{path}/"), files)?;
            }
        } else if name.ends_with(".rs") {
            files.insert(path, fs::read_to_string(entry.path())?);
        }
    }
    Ok(())
}

/// The number of a module in its [`SourceTree`].
pub type ModuleId = usize;

/// A name that `use` brings into a module.
#[derive(Debug)]
pub struct ImportedName {
    /// The name within the module; `None` for a glob.
    pub name: Option<String>,
    pub path: Vec<String>,
    pub line: usize,
    /// It stands in a function's body, where nobody else can take it from.
    pub in_body: bool,
    pub in_test: bool,
}

/// A path of two segments or more that code names without importing it.
#[derive(Debug)]
pub struct InlinePath {
    pub segments: Vec<String>,
    pub line: usize,
    /// It names a macro.
    pub is_macro: bool,
    pub in_test: bool,
}

/// A module: a file, or a part of one in braces.
#[derive(Debug)]
pub struct SourceModule {
    /// The names from the crate's root to here.
    pub path: Vec<String>,
    /// Itself, if it is a root.
    pub parent: ModuleId,
    pub root: ModuleId,
    pub file: String,
    pub in_test: bool,
    pub children: BTreeMap<String, ModuleId>,
    /// What it defines, its children not included.
    pub items: BTreeSet<String>,
    pub imports: Vec<ImportedName>,
    pub inline_paths: Vec<InlinePath>,
    /// Macros and functions that print or end the process, with their lines; without those in test code.
    pub prints: Vec<(String, usize)>,
}

/// All modules of a crate.
#[derive(Debug, Default)]
pub struct SourceTree {
    pub modules: Vec<SourceModule>,
    /// The name by which the crate's program calls its library.
    pub crate_name: String,
    pub library: Option<ModuleId>,
    pub program: Option<ModuleId>,
    /// Modules that are declared and have no file, with the place of the declaration.
    pub missing: Vec<String>,
}

impl SourceTree {
    /// Reads the modules from `src/lib.rs` and `src/main.rs` on.
    ///
    /// # Panics
    /// If a file is no Rust.
    pub fn parse(crate_name: &str, files: &SourceFiles) -> SourceTree {
        let mut tree = SourceTree { crate_name: crate_name.replace('-', "_"), ..SourceTree::default() };
        tree.library = tree.parse_root("src/lib.rs", files);
        tree.program = tree.parse_root("src/main.rs", files);
        tree
    }

    fn parse_root(&mut self, file: &str, files: &SourceFiles) -> Option<ModuleId> {
        files.get(file)?;
        let root = self.modules.len();
        self.add(root, Vec::new(), file, false);
        self.parse_file(root, files);
        Some(root)
    }

    fn add(&mut self, parent: ModuleId, path: Vec<String>, file: &str, in_test: bool) -> ModuleId {
        let id = self.modules.len();
        let root = if parent == id { id } else { self.modules[parent].root };
        self.modules.push(SourceModule {
            path,
            parent,
            root,
            file: file.to_owned(),
            in_test,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            imports: Vec::new(),
            inline_paths: Vec::new(),
            prints: Vec::new(),
        });
        id
    }

    fn parse_file(&mut self, module: ModuleId, files: &SourceFiles) {
        let file = self.modules[module].file.clone();
        let tokens = scanner::tokens(&file, &files[&file]);
        let scope = Scope { in_test: self.modules[module].in_test || scanner::is_test_file(&tokens), in_body: false };
        self.modules[module].in_test = scope.in_test;
        self.parse_module(module, &tokens, scope, &child_directory(&file), files);
    }

    /// Reads the tokens of a module whose children have their files in `directory`.
    fn parse_module(
        &mut self,
        module: ModuleId,
        tokens: &[proc_macro2::TokenTree],
        scope: Scope,
        directory: &str,
        files: &SourceFiles,
    ) {
        for child in scanner::scan(tokens, scope, &mut self.modules[module]) {
            let parent = &self.modules[module];
            let mut path = parent.path.clone();
            path.push(child.name.clone());
            let in_test = child.in_test || child.name == "tests" || child.name.ends_with("_tests");
            if let Some(body) = child.body {
                let file = parent.file.clone();
                let id = self.add(module, path, &file, in_test);
                self.modules[module].children.insert(child.name.clone(), id);
                let directory = format!("{directory}{}/", child.name);
                self.parse_module(id, &body, Scope { in_test, in_body: false }, &directory, files);
                continue;
            }
            let candidates = match child.file {
                Some(file) => vec![join(directory_of(&parent.file), &file)],
                None => vec![format!("{directory}{}.rs", child.name), format!("{directory}{}/mod.rs", child.name)],
            };
            let Some(file) = candidates.iter().find(|file| files.contains_key(*file)) else {
                self.missing.push(format!("{}:{}: module `{}` has no file", parent.file, child.line, child.name));
                continue;
            };
            let in_test = in_test || file.ends_with("/tests.rs") || file.ends_with("_tests.rs");
            let id = self.add(module, path, file, in_test);
            self.modules[module].children.insert(child.name, id);
            self.parse_file(id, files);
        }
    }
}

/// Where the children of a file's module have their files, with a slash at the end.
fn child_directory(file: &str) -> String {
    let directory = directory_of(file);
    match file[directory.len()..].strip_suffix(".rs") {
        Some("mod" | "lib" | "main") | None => directory.to_owned(),
        Some(stem) => format!("{directory}{stem}/"),
    }
}

/// The directory of a file, with a slash at the end.
fn directory_of(file: &str) -> &str {
    &file[..file.rfind('/').map_or(0, |slash| slash + 1)]
}

/// The path of `file`, which may begin with `../`, relative to `directory`.
fn join(directory: &str, file: &str) -> String {
    match file.strip_prefix("../") {
        Some(above) => join(directory_of(directory.trim_end_matches('/')), above),
        None => format!("{directory}{file}"),
    }
}
