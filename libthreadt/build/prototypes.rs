//! C prototypes, as the column `prototype` of `functions.tsv` has them, in types of Rust.

/// Functions whose `int` is 0 or -1 and errno.
pub fn sets_errno(symbol: &str) -> bool {
    symbol.starts_with("sem_")
}

/// C11 functions, whose `int` is a `thrd_` code; that of `thrd_sleep` is 0 or negative.
pub fn is_c11(symbol: &str) -> bool {
    symbol != "thrd_sleep" && ["thrd_", "mtx_", "cnd_", "tss_"].iter().any(|prefix| symbol.starts_with(prefix))
}

/// The Rust type of a C parameter.
fn rust_type(place: &str, c_type: &str) -> &'static str {
    if c_type.contains('*') || c_type.trim() == "tss_dtor_t" {
        return "Ptr";
    }
    match c_type.trim().trim_start_matches("const ") {
        "int" | "clockid_t" | "pid_t" => "c_int",
        "unsigned int" | "mode_t" | "pthread_key_t" | "tss_t" => "c_uint",
        "pthread_t" | "thrd_t" | "union sigval" => "u64",
        "size_t" => "usize",
        other => panic!("{place}: no Rust type for '{other}'"),
    }
}

/// One parameter's name and Rust type.
fn parameter(place: &str, text: &str) -> (String, &'static str) {
    let text = text.trim();
    if text.contains("(*") {
        // A function pointer: `void (*name)(…)`.
        let name = text.split("(*").nth(1).and_then(|text| text.split(')').next()).unwrap_or_default();
        return (name.to_owned(), "Ptr");
    }
    let split = text.rfind([' ', '*']).unwrap_or_else(|| panic!("{place}: parameter '{text}' has no name")) + 1;
    (text[split..].trim_end_matches("[]").to_owned(), rust_type(place, &text[..split]))
}

/// Splits at commas that are not within parentheses.
pub fn parameters(place: &str, prototype: &str) -> Vec<(String, &'static str)> {
    let open = prototype.find('(').unwrap_or_else(|| panic!("{place}: no parameters in '{prototype}'"));
    let inner = &prototype[open + 1..prototype.len() - 1];
    if inner == "void" {
        return Vec::new();
    }
    let (mut depth, mut start, mut texts) = (0, 0, Vec::new());
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => {
                texts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    texts.push(&inner[start..]);
    texts.into_iter().map(|text| parameter(place, text)).collect()
}

/// The type of the hook's result, which implements `CallResult`.
pub fn result_type(symbol: &str, prototype: &str) -> &'static str {
    let result = prototype.split(symbol).next().unwrap_or_default().trim();
    match result {
        "void" => "()",
        "int" if sets_errno(symbol) => "SemStatus",
        "int" if is_c11(symbol) => "ThrdStatus",
        "int" | "pid_t" => "c_int",
        "pthread_t" | "thrd_t" => "u64",
        _ => "Ptr",
    }
}
