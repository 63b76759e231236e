//! `-F html`: the report as one file that refers to nothing outside of it.
//!
//! A script in the page makes tables and pictures of the JSON document, shortened to what fits, which is in the page as data. What
//! comes from the trace goes into the page as text by that script alone, and a policy in the page forbids all other scripts.

mod page_data;
mod path_strip;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::document::summed_document;
use super::object_rows::ListedObjects;
use super::view::ReportView;
use page_data::{INNER_MAX, shortened};

const TEMPLATE: &str = include_str!("assets/page.html");
const STYLE: &str = include_str!("assets/style.css");
/// In the order in which the parts need each other.
const SCRIPT: &str = concat!(
    include_str!("assets/elements.js"),
    include_str!("assets/overview.js"),
    include_str!("assets/objects.js"),
    include_str!("assets/graph.js"),
    include_str!("assets/path.js"),
    include_str!("assets/tables.js"),
    include_str!("assets/contents.js"),
);
/// The most bytes of a page.
const SIZE_MAX: usize = 2 << 20;
/// The most rows of a table.
const ROWS_MAX: usize = 1000;
/// The most characters of the title.
const TITLE_MAX: usize = 100;

/// Appends the page. Its tables have at most `top` rows, and no more than fit into two megabytes.
pub fn append_html(view: &ReportView, top: Option<usize>, out: &mut Vec<u8>) {
    let listed = ListedObjects::joined(view);
    let complete = summed_document(view, &listed, [ROWS_MAX, INNER_MAX]);
    let title = escaped(&title(view));
    let mut rows = top.unwrap_or(ROWS_MAX).min(ROWS_MAX);
    loop {
        // In JSON, all `<` are in strings. Without them, nothing ends the element that has the data.
        let data = shortened(view, &listed, &complete, rows).to_string().replace('<', "\\u003c");
        let page = page(&title, &data);
        if page.len() <= SIZE_MAX || rows == 0 {
            out.extend_from_slice(page.as_bytes());
            return;
        }
        rows /= 2;
    }
}

fn page(title: &str, data: &str) -> String {
    // Who makes up names for a trace cannot make a script that has its hash in it.
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    let nonce = format!("{:016x}", hasher.finish());
    let value = |name: &str| match name {
        "TITLE" => title.to_owned(),
        "NONCE" => nonce.clone(),
        "STYLE" => STYLE.to_owned(),
        "SCRIPT" => SCRIPT.to_owned(),
        "DATA" => data.to_owned(),
        _ => unreachable!("{name} in the template"),
    };
    let pieces = TEMPLATE.split('@').enumerate();
    pieces.map(|(index, piece)| if index % 2 == 0 { piece.to_owned() } else { value(piece) }).collect()
}

/// `Waits of sort -n file and of 2 other programs`.
fn title(view: &ReportView) -> String {
    let mut names = view.analysis.processes.iter().map(|process| {
        let command = Some(view.command(process)).filter(|command| !command.is_empty());
        command.map_or_else(|| format!("process {}", process.pid), str::to_owned)
    });
    let Some(first) = names.next() else { return "Waits of no program".to_owned() };
    let first: String = match first.chars().count() {
        0..=TITLE_MAX => first,
        _ => first.chars().take(TITLE_MAX - 1).chain(['…']).collect(),
    };
    match names.count() {
        0 => format!("Waits of {first}"),
        1 => format!("Waits of {first} and of another program"),
        others => format!("Waits of {first} and of {others} other programs"),
    }
}

/// A text as markup.
fn escaped(text: &str) -> String {
    let escape = |character: char| match character {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        _ if character.is_control() => character.escape_default().to_string(),
        _ => character.to_string(),
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests;
