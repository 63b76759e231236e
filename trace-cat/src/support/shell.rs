//! Words of commands that people type.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::visible_text::is_hidden;

/// A path as one word of a shell command.
pub fn quoted_path(path: &Path) -> String {
    let text = path.as_os_str().as_bytes();
    // A leading dash would make the path an option.
    if text.starts_with(b"-") { quoted(&[b"./", text].concat()) } else { quoted(text) }
}

/// A text as one word of a shell command. If it has what would change the lines or the terminal, or is no UTF-8, that is escaped
/// (`$'…'`, of POSIX since 2024).
pub fn quoted(text: &[u8]) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./=:,+%@".contains(letter);
    match std::str::from_utf8(text) {
        Ok(text) if text.contains(is_hidden) => escaped(text.as_bytes()),
        Ok(text) if text.chars().all(is_plain) && !text.is_empty() => text.to_owned(),
        Ok(text) => format!("'{}'", text.replace('\'', r"'\''")),
        Err(_) => escaped(text),
    }
}

fn escaped(text: &[u8]) -> String {
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!(r"\x{byte:02x}")).collect::<String>();
    let mut out = "$'".to_owned();
    for chunk in text.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\n' => out += r"\n",
                '\t' => out += r"\t",
                '\'' | '\\' => out.extend(['\\', letter]),
                _ if is_hidden(letter) => out += &bytes(letter.encode_utf8(&mut [0; 4]).as_bytes()),
                _ => out.push(letter),
            }
        }
        out += &bytes(chunk.invalid());
    }
    out + "'"
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

    #[test]
    fn what_is_not_shown_is_escaped_as_bash_reads_it() {
        let texts: [&[u8]; 4] = [b"a\nb c", b"it's\t\\", "x\u{202e}1".as_bytes(), b"\xff1"];
        let words = texts.map(quoted);
        assert_eq!(words, [r"$'a\nb c'", r"$'it\'s\t\\'", r"$'x\xe2\x80\xae1'", r"$'\xff1'"]);
        let script = format!("printf '%s\\0' {}", words.join(" "));
        let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
        assert_eq!(output.stdout, [texts.join(&0), vec![0]].concat());
    }
}
