//! The documents have every option, and the programs that read them report no faults.

use std::io::Write as _;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::*;

fn written() -> (TempDir, Vec<PathBuf>) {
    let directory = tempfile::tempdir().unwrap();
    let paths = write(directory.path()).unwrap();
    (directory, paths)
}

#[test]
fn every_option_is_in_its_page() {
    let mut options = 0;
    for page in &page::PAGES {
        let text = page.text();
        assert!(!text.contains('@'), "{}: a placeholder is left", page.file);
        for option in page.command().iter().flat_map(page::documented) {
            let long = option.get_long().expect("every option has a long name");
            let short = option.get_short().map(|letter| format!("\n\\fB\\-{letter}\\fP, ")).unwrap_or("\n".to_owned());
            let tag = format!("{short}\\fB\\-\\-{}\\fP", long.replace('-', "\\-"));
            assert_eq!(text.matches(&tag).count(), 1, "{}: {tag}", page.file);
            options += 1;
        }
    }
    assert!(options >= 8);
}

/// Every command of the table, the subcommands included.
fn commands() -> Vec<clap::Command> {
    let mut command = trace_cat::cli::command();
    command.build();
    let subcommands: Vec<_> =
        command.get_subcommands().filter(|command| command.get_name() != "help").cloned().collect();
    [command].into_iter().chain(subcommands).collect()
}

#[test]
fn every_command_has_a_page() {
    let names: Vec<String> =
        page::PAGES.iter().filter_map(|page| Some(page.command()?.get_name().to_owned())).collect();
    assert_eq!(names, commands().iter().map(|command| command.get_name().to_owned()).collect::<Vec<_>>());
}

#[test]
fn every_option_is_in_the_completions() {
    let (directory, _) = written();
    for (file, prefix) in [("trace-cat.bash", "--"), ("_trace-cat", "--"), ("trace-cat.fish", "-l ")] {
        let text = fs::read_to_string(directory.path().join(file)).unwrap();
        for command in commands() {
            for option in page::documented(&command) {
                let word = format!("{prefix}{}", option.get_long().unwrap());
                assert!(text.contains(&word), "{file}: {word}");
            }
        }
    }
}

/// Runs a program on a file and returns its error messages; `None` if the program is not installed.
fn faults(program: &str, arguments: &[&str], path: &Path) -> Option<String> {
    let Ok(output) = Command::new(program).args(arguments).arg(path).env("LC_ALL", "C.UTF-8").output() else {
        println!("{program} is not installed to check {}", path.display());
        return None;
    };
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    Some(if output.status.success() { messages } else { format!("{}: {messages}", output.status) })
}

#[test]
fn pages_are_roff_without_faults() {
    let (_directory, paths) = written();
    for path in &paths {
        if path.extension().is_some_and(|section| section.len() == 1) {
            for (program, arguments) in [
                ("groff", &["-man", "-ww", "-t", "-Tutf8", "-z"][..]),
                ("man", &["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"]),
                ("mandoc", &["-Tlint", "-Werror"]),
            ] {
                if let Some(messages) = faults(program, arguments, path) {
                    assert_eq!(messages, "", "{program} on {}", path.display());
                }
            }
        }
    }
}

#[test]
fn completions_are_valid_scripts() {
    let (directory, _) = written();
    for (shell, file) in [("bash", "trace-cat.bash"), ("zsh", "_trace-cat"), ("fish", "trace-cat.fish")] {
        if let Some(messages) = faults(shell, &["-n"], &directory.path().join(file)) {
            assert_eq!(messages, "", "{shell} on {file}");
        }
    }
}

#[test]
fn bash_completes_options_and_their_values() {
    let (directory, _) = written();
    for (words, expected) in [("trace-cat --recov", "--recover"), ("trace-cat -F te", "text")] {
        let script = format!(
            ". {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_LINE='{words}'; \
             _trace__cat trace-cat \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            directory.path().join("trace-cat.bash").display()
        );
        let mut bash = match Command::new("bash").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
            Ok(bash) => bash,
            Err(error) => return println!("bash: {error}"),
        };
        bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let output = bash.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{expected}\n"), "{words}");
    }
}
