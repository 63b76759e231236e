//! The commands of a page of documents, with the outputs that it shows.

use std::fmt::Write as _;

/// A command of a page.
#[derive(Debug, PartialEq, Eq)]
pub struct ShownCommand<'a> {
    /// The number of its line in the page.
    pub line: usize,
    /// What is typed; several lines if all but the last end in a backslash.
    pub text: String,
    /// The lines that the page shows below it.
    pub output: Vec<&'a str>,
}

/// The commands in a page's blocks of the kind `console`: each begins with `$ `, and what follows is its output.
///
/// # Panics
/// If a block begins with something else, or does not end.
pub fn commands(page: &str) -> Vec<ShownCommand<'_>> {
    let mut commands: Vec<ShownCommand> = Vec::new();
    let (mut in_block, mut is_first, mut is_continued) = (false, false, false);
    for (line, text) in (1..).zip(page.lines()) {
        if !in_block {
            (in_block, is_first) = (text == "```console", true);
        } else if text == "```" {
            in_block = false;
        } else if let Some(command) = text.strip_prefix("$ ").filter(|_| !is_continued) {
            commands.push(ShownCommand { line, text: command.to_owned(), output: Vec::new() });
            (is_first, is_continued) = (false, command.ends_with('\\'));
        } else {
            assert!(!is_first, "line {line}: a block of the kind console begins with a command, `$ …`: {text}");
            let command = commands.last_mut().expect("the block has begun with a command");
            if is_continued {
                let _ = write!(command.text, "\n{text}");
                is_continued = text.ends_with('\\');
            } else {
                command.output.push(text);
            }
        }
    }
    assert!(!in_block, "the last block has no end");
    commands
}

#[test]
fn commands_have_their_outputs() {
    let page = "text\n```console\n$ a\nb\n\nc\n$ d \\\n    e\nf\n```\n$ no\n```sh\n$ no\n```\n```console\n$ g\n```\n";
    let command = |line, text: &str, output: &[&'static str]| ShownCommand {
        line,
        text: text.to_owned(),
        output: output.to_vec(),
    };
    let expected = [command(3, "a", &["b", "", "c"]), command(7, "d \\\n    e", &["f"]), command(16, "g", &[])];
    assert_eq!(commands(page), expected);
}
