//! The rules. Each returns its faults as lines that begin with a file and a line number.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::resolution::{Dependency, dependencies, top_module};
use super::scanner;
use super::source_tree::{ModuleId, SourceFiles, SourceTree};

/// The heading of the list of layers in the documentation of `src/lib.rs`.
const HEADING: &str = "# Layers";

/// No source file is longer.
const LINES_MAX: usize = 400;

/// The modules of trace-cat that may print and end the process, beside `src/main.rs`.
const PRINTING_MODULES: [&str; 2] = ["cli", "launch"];

/// Everything that is wrong with a crate's structure.
pub fn faults(crate_name: &str, files: &SourceFiles) -> Vec<String> {
    let tree = SourceTree::parse(crate_name, files);
    let dependencies = dependencies(&tree);
    let mut faults = tree.missing.clone();
    faults.extend(layer_faults(&tree, &dependencies, files));
    faults.extend(parent_faults(&tree, &dependencies));
    faults.extend(circle_faults(&tree, &dependencies));
    faults.extend(undeclared_faults(&tree, files));
    faults.extend(length_faults(files));
    faults.extend(printing_faults(&tree));
    faults.extend(duplicate_type_faults(files));
    faults
}

/// The list of layers: names of modules with their layers' numbers from the top, and the line in `src/lib.rs`.
fn layers(text: &str) -> Vec<(String, usize, usize)> {
    let documentation =
        text.lines().enumerate().filter_map(|(index, line)| Some((index + 1, line.strip_prefix("//!")?.trim())));
    let section =
        documentation.skip_while(|(_, line)| *line != HEADING).skip(1).take_while(|(_, line)| !line.starts_with("# "));
    let rows = section.filter(|(_, line)| line.starts_with("- `"));
    let mut layers = Vec::new();
    for (layer, (number, row)) in rows.enumerate() {
        let names = row.split_once("`:").map_or(row, |(names, _)| names);
        let names =
            names.trim_start_matches("- ").split(',').map(|name| name.trim().trim_matches('`').trim_end_matches('/'));
        layers.extend(names.map(|name| (name.to_owned(), layer, number)));
    }
    layers
}

/// Top-level modules and the list of layers name each other, and no layer is used from below or from beside it.
fn layer_faults(tree: &SourceTree, dependencies: &[Dependency], files: &SourceFiles) -> Vec<String> {
    let Some(library) = files.get("src/lib.rs") else {
        return vec![format!("src/lib.rs:1: there is none, so there is no `{HEADING}` list either")];
    };
    let rows = layers(library);
    if rows.is_empty() {
        return vec![format!("src/lib.rs:1: its documentation has no `{HEADING}` list")];
    }
    let mut faults = Vec::new();
    let mut layer_of = BTreeMap::new();
    for (name, layer, number) in &rows {
        if layer_of.insert(name.as_str(), *layer).is_some() {
            faults.push(format!("src/lib.rs:{number}: layer `{name}` is listed twice"));
        }
    }

    let is_listed = |module: &ModuleId| !tree.modules[*module].in_test && top_module(tree, *module) == *module;
    let roots = [tree.library, tree.program].into_iter().flatten();
    let top_modules: Vec<ModuleId> =
        roots.flat_map(|root| tree.modules[root].children.values().copied().filter(is_listed)).collect();
    let name = |module: ModuleId| tree.modules[module].path.first().map_or("", String::as_str);
    for module in &top_modules {
        if !layer_of.contains_key(name(*module)) {
            faults.push(format!(
                "{}:1: module `{}` is not in the list of layers",
                tree.modules[*module].file,
                name(*module)
            ));
        }
    }
    for (listed, _, number) in &rows {
        let is_program = listed == "main" && tree.program.is_some();
        if !is_program && !top_modules.iter().any(|module| name(*module) == listed) {
            faults.push(format!("src/lib.rs:{number}: there is no module `{listed}`"));
        }
    }

    for dependency in dependencies {
        let from = &tree.modules[dependency.from];
        // What is not listed has its fault already; the roots' own files are above all layers.
        let Some(user) = layer_of.get(name(top_module(tree, dependency.from))) else { continue };
        for passed in &dependency.passed {
            let used = match layer_of.get(name(*passed)) {
                Some(used) => *used,
                None if tree.modules[*passed].path.is_empty() => {
                    let root = &tree.modules[*passed].file;
                    let Dependency { line, path, .. } = dependency;
                    faults.push(format!(
                        "{}:{line}: `{path}` is defined in {root}, which is above all layers",
                        from.file
                    ));
                    continue;
                }
                None => continue,
            };
            if used <= *user {
                let relation = if used == *user { "beside" } else { "above" };
                faults.push(format!(
                    "{}:{}: `{}` leads to layer `{}`, which is {relation} `{}`",
                    from.file,
                    dependency.line,
                    dependency.path,
                    name(*passed),
                    name(top_module(tree, dependency.from)),
                ));
            }
        }
    }
    faults
}

/// No file uses what is defined in the file of a module that it lies in.
fn parent_faults(tree: &SourceTree, dependencies: &[Dependency]) -> Vec<String> {
    let mut faults = Vec::new();
    for dependency in dependencies {
        let Some(file) = &dependency.file else { continue };
        let mut module = dependency.from;
        while tree.modules[module].parent != module {
            module = tree.modules[module].parent;
            // The roots' files are above all layers: that has its own rule.
            if tree.modules[module].file == *file && !tree.modules[module].path.is_empty() {
                let user = &tree.modules[dependency.from].file;
                faults.push(format!(
                    "{user}:{}: `{}` is defined in the parent, {file}",
                    dependency.line, dependency.path
                ));
                break;
            }
        }
    }
    faults
}

/// No file depends on itself through others. One circle of each knot of files, with all its arrows.
fn circle_faults(tree: &SourceTree, dependencies: &[Dependency]) -> Vec<String> {
    let mut arrows: BTreeMap<&str, BTreeMap<&str, &Dependency>> = BTreeMap::new();
    for dependency in dependencies {
        if let Some(file) = &dependency.file {
            arrows.entry(&tree.modules[dependency.from].file).or_default().entry(file).or_insert(dependency);
        }
    }
    let (mut faults, mut reported) = (Vec::new(), BTreeSet::new());
    for start in arrows.keys() {
        if reported.contains(start) {
            continue;
        }
        let Some(circle) = shortest_circle(&arrows, start) else { continue };
        let reachable: BTreeSet<&str> = paths_from(&arrows, start).into_keys().collect();
        reported.extend(reachable.into_iter().filter(|file| paths_from(&arrows, file).contains_key(start)));
        let steps = circle.iter().zip(circle.iter().cycle().skip(1)).map(|(from, to)| {
            let Dependency { line, path, .. } = arrows[from][to];
            format!("\n    {from}:{line}: `{path}` is defined in {to}")
        });
        faults.push(format!(
            "{start}:{}: files in a circle:{}",
            arrows[start][circle[1]].line,
            steps.collect::<String>()
        ));
    }
    faults
}

type Arrows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a Dependency>>;

/// Each file that a file leads to, with the file before it on the shortest way.
fn paths_from<'a>(arrows: &Arrows<'a>, start: &'a str) -> BTreeMap<&'a str, &'a str> {
    let (mut before, mut queue) = (BTreeMap::new(), VecDeque::from([start]));
    while let Some(from) = queue.pop_front() {
        for to in arrows.get(from).into_iter().flat_map(BTreeMap::keys) {
            if !before.contains_key(to) {
                before.insert(*to, from);
                queue.push_back(to);
            }
        }
    }
    before
}

/// The files of the shortest circle that a file is in, beginning with it.
fn shortest_circle<'a>(arrows: &Arrows<'a>, start: &'a str) -> Option<Vec<&'a str>> {
    let before = paths_from(arrows, start);
    let mut circle = vec![*before.get(start)?];
    while let Some(last) = circle.last()
        && *last != start
    {
        circle.push(before[last]);
    }
    circle.reverse();
    Some(circle)
}

/// Every file below `src` is part of the crate, so that the other rules see it.
fn undeclared_faults(tree: &SourceTree, files: &SourceFiles) -> Vec<String> {
    let declared: BTreeSet<&str> = tree.modules.iter().map(|module| module.file.as_str()).collect();
    let sources = files.keys().filter(|file| file.starts_with("src/") && !declared.contains(file.as_str()));
    sources.map(|file| format!("{file}:1: no module declares this file")).collect()
}

/// No file below `src` is long.
fn length_faults(files: &SourceFiles) -> Vec<String> {
    let lengths =
        files.iter().filter(|(file, _)| file.starts_with("src/")).map(|(file, text)| (file, text.lines().count()));
    let long = lengths.filter(|(_, lines)| *lines > LINES_MAX);
    long.map(|(file, lines)| format!("{file}:{lines}: {lines} lines; {LINES_MAX} are the limit")).collect()
}

/// Only the program, and the modules that make its command line, print and end the process.
fn printing_faults(tree: &SourceTree) -> Vec<String> {
    let mut faults = Vec::new();
    for module in &tree.modules {
        let is_allowed = match module.path.first() {
            Some(top) => PRINTING_MODULES.contains(&top.as_str()),
            None => module.file == "src/main.rs",
        };
        for (call, line) in module.prints.iter().filter(|_| !is_allowed) {
            faults.push(format!("{}:{line}: `{call}` belongs to the program", module.file));
        }
    }
    faults
}

/// No two types of a crate have one name, in tests, examples and benchmarks too.
pub fn duplicate_type_faults(files: &SourceFiles) -> Vec<String> {
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    let mut faults = Vec::new();
    for (file, text) in files {
        for definition in scanner::type_definitions(&scanner::tokens(file, text)) {
            let place = format!("{file}:{}", definition.line);
            match places.get(&definition.name) {
                Some(first) => {
                    faults.push(format!("{place}: type `{}` is defined at {first} as well", definition.name))
                }
                None => {
                    places.insert(definition.name, place);
                }
            }
        }
    }
    faults
}
