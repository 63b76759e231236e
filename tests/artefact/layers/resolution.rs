//! Finds the file that defines what a path names: also through facades, renames and globs.

use super::source_tree::{ImportedName, ModuleId, SourceTree};

/// As many imports as one path may lead through. More are a circle of re-exports.
const IMPORTS_MAX: usize = 16;

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    Module(ModuleId),
    /// An item, in the module that defines it.
    Item(ModuleId),
    /// A name that nothing in the module defines, such as one that a macro makes; in the last module that the path leads to.
    Unknown(ModuleId),
}

/// One step of code from its own file to another place of its crate.
#[derive(Clone, Debug)]
pub struct Dependency {
    pub from: ModuleId,
    /// The file that defines what is named.
    pub file: Option<String>,
    /// The roots' children that the path leads through, or the root itself if the item is defined there.
    pub passed: Vec<ModuleId>,
    pub line: usize,
    pub path: String,
}

/// Every dependency of code that is no test.
pub fn dependencies(tree: &SourceTree) -> Vec<Dependency> {
    let mut found = Vec::new();
    for (from, module) in tree.modules.iter().enumerate() {
        for import in module.imports.iter().filter(|import| !import.in_test) {
            import_dependencies(tree, from, import, &mut found);
        }
        for path in module.inline_paths.iter().filter(|path| !path.in_test) {
            let mut passed = Vec::new();
            let Some(definition) = resolve(tree, from, &path.segments, &mut passed, 0) else { continue };
            // `#[macro_export]` puts macros into the root, wherever they are defined.
            if path.is_macro && matches!(definition, Definition::Unknown(_)) {
                continue;
            }
            let file = match definition {
                Definition::Module(_) => None,
                Definition::Item(module) | Definition::Unknown(module) => Some(module),
            };
            found.push(dependency(tree, from, file, passed, path.line, path.segments.join("::")));
        }
    }
    found.retain(|dependency| dependency.file.is_some() || !dependency.passed.is_empty());
    found
}

fn dependency(
    tree: &SourceTree,
    from: ModuleId,
    defined_in: Option<ModuleId>,
    mut passed: Vec<ModuleId>,
    line: usize,
    path: String,
) -> Dependency {
    passed.extend(defined_in);
    let mut passed: Vec<ModuleId> = passed.into_iter().map(|module| top_module(tree, module)).collect();
    passed.sort_unstable();
    passed.dedup();
    passed.retain(|module| *module != top_module(tree, from));
    let file =
        defined_in.map(|module| tree.modules[module].file.clone()).filter(|file| *file != tree.modules[from].file);
    Dependency { from, file, passed, line, path }
}

/// The root's child that a module is or lies in, or the root; a module within the root's file belongs to the root.
pub fn top_module(tree: &SourceTree, module: ModuleId) -> ModuleId {
    let root = tree.modules[module].root;
    let mut top = module;
    while tree.modules[top].parent != root && top != root {
        top = tree.modules[top].parent;
    }
    if tree.modules[top].file == tree.modules[root].file { root } else { top }
}

/// A module by itself is no dependency of files; what is named by its path later is. A glob depends on all that the module
/// has.
fn import_dependencies(tree: &SourceTree, from: ModuleId, import: &ImportedName, found: &mut Vec<Dependency>) {
    let mut passed = Vec::new();
    let Some(definition) = resolve(tree, from, &import.path, &mut passed, 0) else { return };
    let path = format!("{}{}", import.path.join("::"), if import.name.is_none() { "::*" } else { "" });
    match definition {
        Definition::Module(module) if import.name.is_none() => {
            if !tree.modules[module].items.is_empty() {
                found.push(dependency(tree, from, Some(module), passed.clone(), import.line, path.clone()));
            }
            for export in tree.modules[module].imports.iter().filter(|export| !export.in_body && !export.in_test) {
                let mut passed = passed.clone();
                let target = match resolve(tree, module, &export.path, &mut passed, 0) {
                    Some(Definition::Item(target) | Definition::Unknown(target)) => Some(target),
                    Some(Definition::Module(target)) if export.name.is_none() => Some(target),
                    _ => continue,
                };
                found.push(dependency(tree, from, target, passed, import.line, path.clone()));
            }
            found.push(dependency(tree, from, None, passed, import.line, path));
        }
        Definition::Module(_) => found.push(dependency(tree, from, None, passed, import.line, path)),
        Definition::Item(module) | Definition::Unknown(module) => {
            found.push(dependency(tree, from, Some(module), passed, import.line, path));
        }
    }
}

/// Follows a path that stands in module `from`, and notes the modules that it leads through. `None` if it leads out of the
/// crate.
fn resolve(
    tree: &SourceTree,
    from: ModuleId,
    path: &[String],
    passed: &mut Vec<ModuleId>,
    depth: usize,
) -> Option<Definition> {
    let (first, others) = path.split_first()?;
    let module = &tree.modules[from];
    let mut place = match first.as_str() {
        "crate" => Definition::Module(module.root),
        "self" => Definition::Module(from),
        "super" => Definition::Module(module.parent),
        name if *name == tree.crate_name && !module.children.contains_key(name) => Definition::Module(tree.library?),
        name => lookup(tree, from, name, !others.is_empty(), passed, depth)?,
    };
    for (index, segment) in others.iter().enumerate() {
        let Definition::Module(module) = place else { break };
        place = match segment.as_str() {
            "super" => Definition::Module(tree.modules[module].parent),
            "self" => place,
            name => {
                let is_prefix = index + 1 < others.len();
                lookup(tree, module, name, is_prefix, passed, depth).unwrap_or(Definition::Unknown(module))
            }
        };
    }
    Some(place)
}

/// Finds a name in a module. `is_prefix`: more of the path follows, so that a module goes before an item.
fn lookup(
    tree: &SourceTree,
    module: ModuleId,
    name: &str,
    is_prefix: bool,
    passed: &mut Vec<ModuleId>,
    depth: usize,
) -> Option<Definition> {
    let here = &tree.modules[module];
    if here.items.contains(name) && !(is_prefix && here.children.contains_key(name)) {
        return Some(Definition::Item(module));
    }
    if let Some(child) = here.children.get(name) {
        passed.extend((here.parent == module).then_some(*child));
        return Some(Definition::Module(*child));
    }
    if depth == IMPORTS_MAX {
        return None;
    }
    for import in here.imports.iter().filter(|import| import.name.as_deref() == Some(name)) {
        // A name that is imported under itself from another crate.
        if import.path.first().is_some_and(|first| first == name) && !here.children.contains_key(name) {
            continue;
        }
        if let Some(found) = resolve(tree, module, &import.path, passed, depth + 1) {
            return Some(found);
        }
    }
    for glob in here.imports.iter().filter(|import| import.name.is_none()) {
        let mut led = Vec::new();
        if let Some(Definition::Module(target)) = resolve(tree, module, &glob.path, &mut led, depth + 1)
            && target != module
            && let Some(found) = lookup(tree, target, name, is_prefix, &mut led, depth + 1)
        {
            passed.append(&mut led);
            return Some(found);
        }
    }
    None
}
