//! Names of sites, objects and threads: those of the program's source.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::super::harness::{Program, TestDirectory, repository, trace_cat};
use super::{document, report};

/// `FILE:LINE` of the line of a program's source that ends in this comment.
pub fn place(source: &str, comment: &str) -> String {
    let path = repository().join("tests/programs/report").join(source);
    let text = fs::read_to_string(path).unwrap();
    let ending = format!("// {comment}");
    let line = text.lines().position(|line| line.ends_with(&ending)).unwrap() + 1;
    format!("{source}:{line}")
}

fn texts<'a>(document: &'a Value, list: &str, key: &str) -> Vec<&'a str> {
    document[list].as_array().unwrap().iter().filter_map(|entry| entry[key].as_str()).collect()
}

/// The report on what was recorded in the test's directory.
pub fn reported(test: &TestDirectory, options: &[&str]) -> Value {
    document(report(test, &[&["-F", "json"], options].concat()).run().success())
}

pub fn assert_names(document: &Value, list: &str, key: &str, expected: &[&str]) {
    let found = texts(document, list, key);
    for name in expected {
        assert!(found.contains(name), "{name} is not among {found:#?}");
    }
}

#[test]
fn names_are_those_of_the_source() {
    let [take, init, worker] = ["take", "new_queue", "worker"].map(|comment| place("names.c", comment));
    for flags in [&[][..], &["-O2"], &["-O2", "-no-pie"], &["-O2", "-gz", "-gdwarf-4"], &["-O2", "-flto"]] {
        let test = TestDirectory::new("report-names");
        test.traced(Program::with_flags("report/names.c", flags)).env("THR_TRACE_DETAIL", "1").run().success();
        let document = reported(&test, &[]);
        let objects = [
            "queue_lock",
            "table.rows[1][2].lock",
            &format!("mutex of new_queue {init}"),
            &format!("mutex of new_queue {init} #2"),
            &format!("mutex first used in take {take}"),
        ];
        assert_names(&document, "objects", "name", &objects);
        let mut files = fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().path());
        let info = files.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("trinfo."));
        let info = fs::read_to_string(info.unwrap()).unwrap();
        let comm = info.lines().find_map(|line| line.strip_prefix("comm ")).unwrap();
        assert_names(&document, "threads", "name", &["worker", "given", comm]);
        assert_names(&document, "sites", "site", &[&format!("take {take}"), "[jit]"]);
        let stacks = document["sites"].as_array().unwrap().iter().map(|site| &site["stack"]);
        let stack = stacks.into_iter().find(|stack| stack[0]["function"] == "take").unwrap();
        let callers = stack.as_array().unwrap().iter().map(|frame| frame["function"].as_str().unwrap());
        assert!(
            [["take", "worker"], ["take", "main"]]
                .contains(&<[&str; 2]>::try_from(callers.collect::<Vec<_>>()).unwrap())
        );
        assert_names(&reported(&test, &["--skip", "ta?e*"]), "sites", "site", &[&format!("worker {worker}")]);
    }
}

#[test]
fn names_of_classes_and_of_libraries_are_demangled() {
    let library = Program::with_flags("report/names_library.c", &["-shared", "-fPIC"]);
    let test = TestDirectory::new("report-names-cpp");
    let flags = ["-O2", library.path().to_str().unwrap()];
    test.traced(Program::with_flags("report/names.cpp", &flags)).env("THR_TRACE_DETAIL", "1").run().success();
    let document = reported(&test, &[]);
    let [push, used] = [place("names.cpp", "push"), place("names_library.c", "use_library")];
    let sites = [format!("app::Queue<long>::push {push}"), format!("use_library {used}")];
    assert_names(&document, "sites", "site", &sites.each_ref().map(String::as_str));
    assert_names(&document, "objects", "name", &["app::queue.mutex", "of_library.lock"]);
}

fn run_tool(tool: &str, arguments: &[&Path], options: &[&str]) {
    let status = Command::new(tool).args(options).args(arguments).status().unwrap();
    assert!(status.success(), "{tool} {options:?}");
}

#[test]
fn debug_files_and_changed_programs_are_told_by_build_ids() {
    let test = TestDirectory::new("report-debug-files");
    let [program, debug] = ["program", "program.debug"].map(|name| test.directory().join(name));
    test.install(Program::c("report/names.c").path(), &program);
    run_tool("objcopy", &[&program, &debug], &["--only-keep-debug"]);
    let link = format!("--add-gnu-debuglink={}", debug.display());
    run_tool("objcopy", &[&program], &["--strip-all", &link]);
    test.traced(&program).env("THR_TRACE_DETAIL", "1").run().success();
    let named = format!("take {}", place("names.c", "take"));
    assert_names(&reported(&test, &[]), "sites", "site", &[&named]);

    // By build ID, in a directory of its own.
    let notes = Command::new("readelf").arg("-n").arg(&program).output().unwrap();
    let notes = String::from_utf8(notes.stdout).unwrap();
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap();
    let moved = test.directory().join(format!("debug/.build-id/{}/{}.debug", &id[..2], &id[2..]));
    fs::create_dir_all(moved.parent().unwrap()).unwrap();
    fs::rename(&debug, &moved).unwrap();
    let without = reported(&test, &[]);
    let offset = format!("{}+0x", program.file_name().unwrap().to_str().unwrap());
    assert!(texts(&without, "sites", "site").iter().any(|site| site.starts_with(&offset)), "{without:#}");
    assert_reason(&test, "names from program: no debug information (build with -g, or install it: package -dbgsym)");
    let directory = test.directory().join("debug");
    let options = ["--debug-dir", directory.to_str().unwrap()];
    assert_names(&reported(&test, &options), "sites", "site", &[&named]);
    assert_names(&reported(&test, &options), "objects", "name", &["queue_lock"]);

    // Another one's debug file, and then another program.
    let other = Program::with_flags("report/names.c", &["-O2"]);
    fs::copy(other.path(), &moved).unwrap();
    assert!(!texts(&reported(&test, &options), "sites", "site").contains(&named.as_str()));
    fs::copy(other.path(), &program).unwrap();
    let changed = reported(&test, &[]);
    assert!(texts(&changed, "sites", "site").iter().any(|site| site.starts_with(&offset)), "{changed:#}");
    assert_reason(&test, &format!("names from {}: it has changed since (other build ID)", program.display()));
    fs::remove_file(&program).unwrap();
    assert_reason(&test, "names from program: not found here");
}

/// Fails unless the report, as text and for browsers, has this reason why names are missing, once, and no other.
#[track_caller]
fn assert_reason(test: &TestDirectory, reason: &str) {
    for format in ["text", "html"] {
        let page = report(test, &["-F", format]).run();
        let text = page.success().stdout_text();
        assert_eq!([reason, "names from "].map(|text_of| text.matches(text_of).count()), [1, 1], "{reason}: {text}");
    }
}

/// A file of merged records has only addresses, unless the trinfo is beside it.
#[test]
fn a_merged_trace_has_the_names_that_are_beside_it() {
    let test = TestDirectory::new("report-merged-names");
    let program = Program::c("report/names.c");
    let run = |output: &str| {
        let run = test.native(trace_cat()).args(["run", "-d", "trace", "-o", output]).arg(program.path()).run();
        run.success();
        run.stderr_text().to_owned()
    };
    // The page has no names of objects that nobody waits for, the document no advice.
    let page = |path: &str| {
        ["text", "json"].map(|format| {
            let page = test.native(trace_cat()).args(["report", "-F", format, path]).run();
            page.success();
            page.stdout_text().to_owned()
        })
    };
    let (advice, inside) = ("no names: its trinfo is not beside its records; name their directory", "trace/merged");
    assert!(run("merged").ends_with("merged: the merged trace; the names of its code are in trace\n"));
    let [text, document] = page("merged");
    assert!(text.matches(advice).count() == 1 && !document.contains("queue_lock"), "{text}");
    assert!(run(inside).ends_with("trace/merged: the merged trace\n"));
    let [text, document] = page(inside);
    assert!(!text.contains(advice) && document.contains("queue_lock"), "{text}");
}

/// Nor has it what was recorded.
#[test]
fn a_merged_trace_elsewhere_does_not_show_that_there_is_no_deadlock() {
    let test = TestDirectory::new("report-merged-settings");
    let unknown = "what was recorded is not known: the trinfo files are not beside the records";
    for (output, is_beside) in [("merged", false), ("trace/merged", true)] {
        test.native(trace_cat()).args(["run", "-d", "trace", "-o", output, "true"]).run().success();
        let page = test.native(trace_cat()).args(["report", "--fail-if", "deadlocks > 0", output]).run();
        page.exited(if is_beside { 0 } else { 2 });
        let texts = [page.stdout_text(), page.stderr_text()].map(|text| text.contains(unknown));
        assert_eq!(texts, [!is_beside; 2], "{}", page.stdout_text());
    }
}

#[test]
fn aliases_name_objects_and_sites() {
    let test = TestDirectory::new("report-aliases");
    test.traced(Program::c("report/names.c")).env("THR_TRACE_DETAIL", "1").run().success();
    let document = reported(&test, &[]);
    let objects = document["objects"].as_array().unwrap();
    let lock = objects.iter().find(|object| object["name"] == "queue_lock").unwrap();
    let file = test.directory().join("aliases");
    let init = place("names.c", "new_queue");
    let address = lock["address"].as_str().unwrap();
    fs::write(&file, format!("# mine\n{address} the lock\nreport/{init} jobs\nmain start\n")).unwrap();
    let options = ["--alias", file.to_str().unwrap()];
    let document = reported(&test, &options);
    assert_names(&document, "objects", "name", &["the lock", "jobs", "jobs #2", "table.rows[1][2].lock"]);
    assert_names(&document, "sites", "site", &["jobs", "start"]);

    fs::write(&file, "\nmain\n").unwrap();
    let wrong = report(&test, &options).run();
    let message = format!("{}:2: there is no name behind 'main'", file.display());
    assert!(wrong.exited(2).stderr_text().contains(&message), "{}", wrong.stderr_text());
}

/// Where the program is optimised when it is linked, the DWARF of its code and that of its source are in different units.
#[test]
fn functions_that_one_source_file_knows_have_their_namespaces() {
    for flags in [&["-O2"][..], &["-O2", "-flto"], &["-O2", "-flto", "-gdwarf-4"]] {
        let test = TestDirectory::new("report-names-local");
        let program = Program::with_flags("report/local_functions.cpp", flags);
        test.traced(program).env("THR_TRACE_STACK", "3").run().success();
        let output = test.trace_cat().args(["-F", "text", "--stack", "-e", "mutex_trylock"]).run();
        let text = output.success().stdout_text();
        let frames = text.lines().filter_map(|line| line.trim_start().strip_prefix('#')?.split_once("  "));
        let functions: Vec<&str> = frames.filter_map(|(_, frame)| Some(frame.rsplit_once(' ')?.0)).collect();
        let expected = ["bank::(anonymous namespace)::transfer", "bank::accounts::close_all", "main"];
        assert_eq!(functions, expected, "{flags:?}: {text}");
    }
}
