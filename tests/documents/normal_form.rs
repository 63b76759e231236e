//! Outputs in a form in which two runs of the same commands are equal: what differs from run to run becomes a word.

/// Units of time and of size, the longer ones before their beginnings.
const UNITS: [(&str, &str); 12] = [
    ("ns", "DURATION"),
    ("us", "DURATION"),
    ("ms", "DURATION"),
    ("s", "DURATION"),
    ("min", "DURATION"),
    ("kB", "SIZE"),
    ("MB", "SIZE"),
    ("KiB", "SIZE"),
    ("MiB", "SIZE"),
    ("bytes", "SIZE"),
    ("B", "SIZE"),
    ("%", "SHARE"),
];

/// A line in its normal form. Addresses, times, durations, sizes, shares, the numbers in the names of a trace's files, and all
/// numbers of two and more digits become words; runs of spaces become one. What stays are names, numbers of one digit, line
/// numbers (`bank.c:25`), digits within words (`p50`), and the numbers of events in records (`02`).
pub fn normal_form(line: &str) -> String {
    let mut normal = String::new();
    let mut rest = line.trim();
    while let Some(first) = rest.chars().next() {
        let before = normal.chars().last();
        let (taken, word) = if first == ' ' {
            (rest.len() - rest.trim_start_matches(' ').len(), " ".to_owned())
        } else if before.is_some_and(|before| before.is_alphanumeric()) || !is_number(rest) {
            match trace_file(rest) {
                Some(found) if before.is_none_or(|before| !before.is_alphanumeric() && before != '.') => found,
                _ => (first.len_utf8(), first.to_string()),
            }
        } else {
            number(rest, &normal)
        };
        normal += &word;
        rest = &rest[taken..];
    }
    normal
}

fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

/// The number at the beginning of a text that follows `before`: how many bytes it has with its unit, and its word.
fn number(text: &str, before: &str) -> (usize, String) {
    if let Some(hex) = text.strip_prefix("0x") {
        return (2 + count(hex, |byte| byte.is_ascii_hexdigit()), "ADDRESS".to_owned());
    }
    if is_like(text, "0000-00-00 00:00:00") {
        return (19 + fraction(&text[19..]), "TIME".to_owned());
    }
    let whole = count(text, |byte| byte.is_ascii_digit());
    let length = whole + fraction(&text[whole..]);
    let after = text[length..].trim_start_matches(' ');
    let is_unit = |unit: &str| {
        after
            .strip_prefix(unit)
            .is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
    };
    if let Some((unit, word)) = UNITS.into_iter().find(|(unit, _)| is_unit(unit)) {
        return (text.len() - after.len() + unit.len(), word.to_owned());
    }
    let is_line = before.strip_suffix(':').is_some_and(|name| name.ends_with(|last: char| last.is_ascii_lowercase()));
    let is_event = text.starts_with('0') && length == 2 && text[length..].starts_with(':');
    let stays = length == 1 || is_line || is_event;
    (length, if stays { text[..length].to_owned() } else { "N".to_owned() })
}

/// How many bytes at the beginning are a decimal point and digits.
fn fraction(text: &str) -> usize {
    match text.strip_prefix('.').map_or(0, |digits| count(digits, |byte| byte.is_ascii_digit())) {
        0 => 0,
        digits => 1 + digits,
    }
}

/// The name of a file of a trace at the beginning of a text.
fn trace_file(text: &str) -> Option<(usize, String)> {
    let kind = ["trinfo", "trbuf", "tr"]
        .into_iter()
        .find(|kind| text.strip_prefix(kind).is_some_and(|rest| is_like(rest, ".xxxxxxx")))?;
    let process = kind.len() + ".xxxxxxx".len();
    let thread = if kind == "tr" && is_like(&text[process..], ".xxx") { 4 } else { 0 };
    Some((process + thread, format!("{kind}.PROCESS{}", if thread > 0 { ".LWP" } else { "" })))
}

/// Whether a text begins like a pattern, in which 0 is a decimal digit and x a hexadecimal one.
fn is_like(text: &str, pattern: &str) -> bool {
    text.len() >= pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(byte, pattern)| match pattern {
            b'0' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_hexdigit(),
            _ => byte == pattern,
        })
}

fn count(text: &str, is_wanted: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is_wanted(*byte)).count()
}

#[test]
fn what_differs_from_run_to_run_becomes_a_word() {
    for (line, expected) in [
        ("mutex log_lock 0x55a0e0   44   496 ms", "mutex log_lock ADDRESS N DURATION"),
        ("  25.1 % held by work/9642 from write_log resize.c:25", "SHARE held by work/N from write_log resize.c:25"),
        ("from 2026-11-23 04:36:06.542719220 on, 171.932 ms", "from TIME on, DURATION"),
        ("times since 2026-11-23 04:36:06", "times since TIME"),
        ("wrong  deadlocks 1, stuck threads 2", "wrong deadlocks 1, stuck threads 2"),
        ("open for 0 ns; 3 s; 9 B; 45.27 kB; 1.4 seconds", "open for DURATION; DURATION; SIZE; SIZE; N seconds"),
        ("p50 p99 x86-64 C++20 u1000", "p50 p99 x86-N C++N u1000"),
        ("tr.0004d6f.d70  trinfo.0004d6f trbuf.0004d6f", "tr.PROCESS.LWP trinfo.PROCESS trbuf.PROCESS"),
        ("str.0004d6f tr.xyz", "str.Nd6f tr.xyz"),
        (
            "1795236020:415177932:0019824:0019823:0x7fc096d596c0:02:02:1:0x56541629a0e0:0:0:0:0",
            "N:N:N:N:ADDRESS:02:02:1:ADDRESS:0:0:0:0",
        ),
        ("known.c:7 1:2 wall-clock 12:30", "known.c:7 1:2 wall-clock N:N"),
        ("{\"waits\":44,\"rest\":7}", "{\"waits\":N,\"rest\":7}"),
    ] {
        assert_eq!(normal_form(line), expected, "{line}");
    }
}
