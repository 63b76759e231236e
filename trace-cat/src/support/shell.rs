//! Words of commands that people type.

use std::path::Path;

/// A path as one word of a shell command.
pub fn quoted_path(path: &Path) -> String {
    let text = path.display().to_string();
    // A leading dash would make the path an option.
    quoted(&if text.starts_with('-') { format!("./{text}") } else { text })
}

/// A text as one word of a shell command.
pub fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./=:,+%@".contains(letter);
    match text.chars().all(is_plain) && !text.is_empty() {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_path_is_one_word_for_a_shell() {
        let paths = ["sort.thr.1", "it's", "''", "a b", "$HOME;`id`", "back\\slash", "-x", ""];
        let expected =
            ["sort.thr.1", r"'it'\''s'", r"''\'''\'''", "'a b'", "'$HOME;`id`'", r"'back\slash'", "./-x", "''"];
        assert_eq!(paths.map(|path| quoted_path(Path::new(path))), expected);
        let script = format!("printf '%s\\n' {}", expected.join(" "));
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), paths.join("\n").replace("\n-x", "\n./-x") + "\n");
    }
}
