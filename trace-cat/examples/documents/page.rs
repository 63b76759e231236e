//! The manual pages: prose, and the options from the table.

use clap::builder::PossibleValue;
use clap::{Arg, Command};

use crate::roff::{bold, italic, paragraph, prose};

/// A manual page.
pub struct Page {
    /// The name of the file to write.
    pub file: &'static str,
    template: &'static str,
    /// The subcommand whose options are in the page, from the outermost name; `None` if the page has no options.
    command: Option<&'static [&'static str]>,
}

/// All pages.
pub const PAGES: [Page; 8] = [
    Page { file: "trace-cat.1", template: include_str!("../../man/trace-cat.1.in"), command: Some(&[]) },
    Page { file: "trace-cat-run.1", template: include_str!("../../man/trace-cat-run.1.in"), command: Some(&["run"]) },
    Page {
        file: "trace-cat-report.1",
        template: include_str!("../../man/trace-cat-report.1.in"),
        command: Some(&["report"]),
    },
    Page {
        file: "trace-cat-open.1",
        template: include_str!("../../man/trace-cat-open.1.in"),
        command: Some(&["open"]),
    },
    Page { file: "trace-cat-set.1", template: include_str!("../../man/trace-cat-set.1.in"), command: Some(&["set"]) },
    Page {
        file: "trace-cat-status.1",
        template: include_str!("../../man/trace-cat-status.1.in"),
        command: Some(&["status"]),
    },
    Page { file: "libthreadt.7", template: include_str!("../../../libthreadt/man/libthreadt.7.in"), command: None },
    Page { file: "threadt.3", template: include_str!("../../../threadt/man/threadt.3.in"), command: None },
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
            command = command.find_subcommand(name).expect("PAGES names subcommands that exist").clone();
        }
        Some(command)
    }
}

/// The options that are documented.
pub fn documented(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| !argument.is_hide_set() && !argument.is_positional())
}

/// A section for each heading, in the order of the table; options without a heading come last.
fn options(command: &Command) -> String {
    let mut headings: Vec<Option<&str>> = Vec::new();
    for heading in documented(command).map(Arg::get_help_heading) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    headings.sort_by_key(Option::is_none);
    let mut out = String::new();
    for heading in headings {
        out += &format!(".SS {}\n", heading.unwrap_or("Other options"));
        for argument in documented(command).filter(|argument| argument.get_help_heading() == heading) {
            out += &option(argument);
        }
    }
    out
}

/// An option with its values, its help, and the meaning of each value.
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

/// A value of an option, with its meaning.
fn meaning(value: &PossibleValue, default: Option<&str>) -> String {
    let help = value.get_help().map(ToString::to_string).unwrap_or_default();
    let default = if default == Some(value.get_name()) { " (the default)" } else { "" };
    format!(".TP\n{}\n{}\n", bold(value.get_name()), prose(&format!("{help}{default}")))
}
