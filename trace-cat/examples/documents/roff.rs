//! Converts text to roff.

/// Text literally.
pub fn literal(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// A word in bold, to be typed literally.
pub fn bold(word: &str) -> String {
    format!("\\fB{}\\fP", literal(word))
}

/// A word in italics, to be replaced by another.
pub fn italic(word: &str) -> String {
    format!("\\fI{}\\fP", literal(word))
}

/// A paragraph with a full stop at its end, which the first paragraphs of help texts lack.
pub fn paragraph(text: &str) -> String {
    let text = text.trim_end();
    let end = if text.ends_with(['.', ':', '!', '?', ']']) { "" } else { "." };
    prose(&format!("{text}{end}")) + "\n"
}

/// Running text, with options, variables and the names of other pages in bold.
pub fn prose(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(word).collect();
    let text = words.join(" ");
    // At the beginning of a line these characters would make a request.
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

fn word(word: &str) -> String {
    let start = word.find(|letter: char| !"([".contains(letter)).unwrap_or(word.len());
    let (before, behind) = word.split_at(start);
    let end = behind
        .rfind(|letter: char| !".,;:)]".contains(letter))
        .map_or(0, |last| last + behind[last..].chars().next().map_or(0, char::len_utf8));
    let (core, after) = behind.split_at(end);
    let is_option = core
        .strip_prefix('-')
        .is_some_and(|name| name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '-'));
    let is_variable = core.contains('_') && core.bytes().all(|byte| byte.is_ascii_uppercase() || b"_$".contains(&byte));
    match core.rsplit_once('(') {
        Some((name, section))
            if after.starts_with(')') && section.len() == 1 && section.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            format!("{}{}({section}{}", literal(before), bold(name), literal(after))
        }
        _ if is_option || is_variable => format!("{}{}{}", literal(before), bold(core), literal(after)),
        _ => literal(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_to_type_are_bold() {
        for (text, expected) in [
            ("as for THR_TRACE_EVENTS.", r"as for \fBTHR_TRACE_EVENTS\fP."),
            ("see (--format), or -e;", r"see (\fB\-\-format\fP), or \fB\-e\fP;"),
            ("a leading - is \\x", r"a leading \- is \ex"),
            ("grep(1).", r"\fBgrep\fP(1)."),
            (".so far", r"\&.so far"),
            ("-5 is 1/2 of x-y", r"\-5 is 1/2 of x\-y"),
        ] {
            assert_eq!(prose(text), expected);
        }
        assert_eq!(paragraph("No end "), "No end.\n");
    }
}
