//! The manual pages: prose with what the table of options says in its place.

use clap::builder::PossibleValue;
use clap::{Arg, Command};

use crate::roff::{bold, italic, paragraph, prose};

/// A page's prose, and which command's options it has.
pub struct Page {
    /// The name of the file that is made.
    pub file: &'static str,
    template: &'static str,
    /// The names of subcommands, from the outermost, whose options stand in the page; `None` if none do.
    command: Option<&'static [&'static str]>,
}

/// Every page that is made here.
pub const PAGES: [Page; 3] = [
    Page { file: "trace-cat.1", template: include_str!("../../man/trace-cat.1.in"), command: Some(&[]) },
    Page { file: "trace-cat-run.1", template: include_str!("../../man/trace-cat-run.1.in"), command: Some(&["run"]) },
    Page { file: "libthreadt.7", template: include_str!("../../../libthreadt/man/libthreadt.7.in"), command: None },
];

impl Page {
    /// The page as roff.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for line in self.template.lines() {
            match (line, self.command()) {
                ("@OPTIONS@", Some(command)) => out += &options(&command),
                (line, _) => {
                    out += &line.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
                    out.push('\n');
                }
            }
        }
        out
    }

    /// The command whose options the page has, with those that clap adds.
    pub fn command(&self) -> Option<Command> {
        let mut command = trace_cat::cli::command();
        command.build();
        for name in self.command? {
            command = command.find_subcommand(name).expect("PAGES names subcommands that there are").clone();
        }
        Some(command)
    }
}

/// The options that people are told of.
pub fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| !argument.is_hide_set() && !argument.is_positional())
}

/// A section for each heading, in the order of the table; what has no heading comes last.
fn options(command: &Command) -> String {
    let mut headings: Vec<Option<&str>> = Vec::new();
    for heading in shown(command).map(Arg::get_help_heading) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    headings.sort_by_key(Option::is_none);
    let mut out = String::new();
    for heading in headings {
        out += &format!(".SS {}\n", heading.unwrap_or("Other options"));
        for argument in shown(command).filter(|argument| argument.get_help_heading() == heading) {
            out += &option(argument);
        }
    }
    out
}

/// An option with its values, what it does, and what each of its values means.
fn option(argument: &Arg) -> String {
    let short = argument.get_short().map(|letter| format!("-{letter}"));
    let long = argument.get_long().map(|word| format!("--{word}"));
    let names: Vec<String> = short.into_iter().chain(long).map(|name| bold(&name)).collect();
    let mut out = format!(".TP\n{}", names.join(", "));
    if argument.get_action().takes_values() {
        for name in argument.get_value_names().unwrap_or_default() {
            out += &format!(" {}", italic(name));
        }
    }
    out.push('\n');
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    for (index, text) in help.split("\n\n").enumerate() {
        if index > 0 {
            out += ".IP\n";
        }
        out += &paragraph(text);
    }
    let values = if argument.get_action().takes_values() { argument.get_possible_values() } else { Vec::new() };
    if !values.is_empty() {
        let default = argument.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
        out += ".RS\n";
        for value in &values {
            out += &meaning(value, default.as_deref());
        }
        out += ".RE\n";
    }
    out
}

/// One of the values that an option may have.
fn meaning(value: &PossibleValue, default: Option<&str>) -> String {
    let help = value.get_help().map(ToString::to_string).unwrap_or_default();
    let default = if default == Some(value.get_name()) { " (the default)" } else { "" };
    format!(".TP\n{}\n{}\n", bold(value.get_name()), prose(&format!("{help}{default}")))
}
