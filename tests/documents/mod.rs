//! The documents: each command that they show is run, and prints what they show.

mod containers;
mod expected_output;
mod normal_form;
mod page;

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use self::expected_output::is_shown;
use self::page::{ShownCommand, commands};
use super::harness::{TestDirectory, excerpt, library, repository, trace_cat};

/// Stands before the number of the command whose output follows.
const MARK: &str = "\u{1e}command ";

/// Runs the commands of a page in one shell, in a directory that has what lies in `docs/tour`, and compares their outputs with the
/// page. `trace-cat` and its library are in the path.
fn check(page: &str) {
    let text = fs::read_to_string(repository().join(page)).unwrap();
    let commands = commands(&text);
    assert!(!commands.is_empty(), "{page} has no commands");
    let name = page.replace(['/', '.'], "-");
    let test = TestDirectory::new(&name);
    let work = test.directory().join("work");
    fs::create_dir(&work).unwrap();
    for entry in fs::read_dir(repository().join("docs/tour")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), work.join(entry.file_name())).unwrap();
    }
    let path = format!("{}:{}", programs(&test).display(), env::var("PATH").unwrap());
    let script = test.directory().join("script");
    fs::write(&script, shell_script(&commands)).unwrap();
    let shell =
        test.native("sh").arg(&script).env("PATH", path).env("THREADT_LIBRARY", library()).env("LC_ALL", "C.UTF-8");
    let output = shell.env("TZ", "UTC").current_dir(&work).noise_expected().run();
    let printed = output.stdout_text();
    let mut wrong = String::new();
    for (index, command) in commands.iter().enumerate() {
        let found = printed.split_once(&format!("{MARK}{index}\n")).map_or("", |(_, after)| after);
        let found = found.split(MARK).next().unwrap_or_default();
        let lines: Vec<&str> = found.lines().collect();
        if !is_shown(without_end(&command.output), without_end(&lines)) {
            let _ = write!(wrong, "{page}:{}: $ {}\n{}", command.line, command.text, excerpt(found));
        }
    }
    assert!(wrong.is_empty(), "these commands print something else than the page shows:\n{wrong}{output:?}");
}

/// A directory with trace-cat in it.
fn programs(test: &TestDirectory) -> PathBuf {
    let programs = test.directory().join("programs");
    fs::create_dir(&programs).unwrap();
    symlink(trace_cat(), programs.join("trace-cat")).unwrap();
    programs
}

/// The lines without the blank ones at their end, which would look odd at the end of a block.
fn without_end<'a, 'b>(lines: &'a [&'b str]) -> &'a [&'b str] {
    let end = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |last| last + 1);
    &lines[..end]
}

/// What a page waits for by `sleep 1`: that the program that it has just started hangs, and has done so for a while.
const UNTIL_IT_HANGS: &str = "for attempt in $(seq 1000); do
        trace-cat report \"$(ls -td ./*.trace | head -n 1)\" 2>&1 | grep -q -e '^Deadlock' -e '^Stuck: waits for threads' && break
        command -p sleep 0.1
    done
    command -p sleep 1
";

/// Runs the commands as if they were typed, and prints a mark before the output of each. Files that pages name where they are
/// installed are those of the build.
fn shell_script(commands: &[ShownCommand]) -> String {
    let mut script = format!("exec 2>&1\nsleep() {{\n{UNTIL_IT_HANGS}}}\nstatus=0\n");
    for (index, command) in commands.iter().enumerate() {
        let mut text = command.text.clone();
        for (installed, built) in [
            ("/usr/local/lib/libthreadt.so", library()),
            ("/usr/local/share/threadt/events.tsv", repository().join("spec/events.tsv")),
        ] {
            text = text.replace(installed, built.to_str().expect("the path is text"));
        }
        let _ = write!(script, "printf '{MARK}%d\\n' {index}\n(exit $status)\n{text}\nstatus=$?\n");
    }
    script
}

/// Makes a test of each page that shows commands, and a list of these pages.
macro_rules! pages {
    ($($test:ident $page:literal)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(
            #[test]
            fn $test() {
                check($page);
            }
        )*
    };
}

pages! {
    readme "README.md"
    tour "docs/tour.md"
    recording "docs/recording.md"
    reading "docs/reading.md"
    reports "docs/reports.md"
    views "docs/views.md"
    format "docs/format.md"
}

/// README.md and the pages below docs, with their texts.
fn all_pages() -> Vec<(String, String)> {
    let pages = fs::read_dir(repository().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let pages = pages.filter_map(|name| Some(format!("docs/{}", name.to_str()?)));
    let pages = pages.filter(|page| page.ends_with(".md")).chain(["README.md".to_owned()]);
    pages.map(|page| (page.clone(), fs::read_to_string(repository().join(page)).unwrap())).collect()
}

#[test]
fn every_page_with_commands_has_a_test() {
    for (page, text) in all_pages() {
        assert_eq!(!commands(&text).is_empty(), PAGES.contains(&&*page), "{page}");
    }
}

#[test]
fn links_lead_to_files() {
    let mut links = 0;
    for (page, text) in all_pages() {
        let directory = repository().join(&page);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if !link.is_empty() && !link.contains("://") {
                let file = directory.parent().unwrap().join(link);
                assert!(file.exists(), "{page} has a link to {link}");
                links += 1;
            }
        }
    }
    assert!(links > 10, "the pages have links");
}

#[test]
fn make_demo_goes_through_the_tour() {
    let test = TestDirectory::new("demo");
    let build = programs(&test);
    symlink(library(), build.join("libthreadt.so")).unwrap();
    let sleep = test.directory().join("sleep");
    fs::write(&sleep, format!("#!/bin/sh\n{UNTIL_IT_HANGS}")).unwrap();
    test.install(&sleep, &build.join("sleep"));
    let path = format!("{}:{}", build.display(), env::var("PATH").unwrap());
    let demo = test.native("sh").arg("tests/demo").arg(&build).env("TMPDIR", test.directory()).env("PATH", path);
    let output = demo.current_dir(repository()).run();
    let printed = output.success().stdout_text();
    let page = fs::read_to_string(repository().join("docs/tour.md")).unwrap();
    let mut rest = printed;
    for command in commands(&page) {
        let typed = format!("\n$ {}\n", command.text);
        // The first ones follow each other without a line between.
        rest = rest
            .find(&typed)
            .map(|start| &rest[start + typed.len() - 1..])
            .unwrap_or_else(|| panic!("{typed}{output:?}"));
    }
    for answer in ["write_log resize.c:25\n", "\nDeadlock of 2 threads", "a lost wake-up\n"] {
        assert!(printed.contains(answer), "{answer}: {output:?}");
    }
    assert!(!printed.contains("```"), "{output:?}");
    assert_eq!(printed.matches("\nDeadlock of").count(), 1, "what the page shows is not printed: {output:?}");
}
