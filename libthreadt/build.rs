//! Turns the rows of `functions.tsv` into the real functions' statics and the usual hooks.
//!
//! A row whose hook is `one_record` makes one record of a call, one whose hook is `two_records` two; what they look like is in
//! `src/hooks/mod.rs`. A row whose hook is `handwritten` has a hook written by hand in `src/hooks/`. Errors are told as
//! `functions.tsv:LINE: …`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// Real functions that no hook calls but the calibration and the lock hooks' tries do.
const HELPERS: [&str; 7] = [
    "pthread_condattr_getclock",
    "pthread_condattr_init",
    "pthread_condattr_setclock",
    "pthread_mutexattr_init",
    "pthread_mutexattr_settype",
    "pthread_rwlockattr_init",
    "pthread_rwlockattr_setkind_np",
];

/// Functions whose `int` is 0 or -1 and errno.
fn sets_errno(symbol: &str) -> bool {
    symbol.starts_with("sem_")
}

/// C11 functions, whose `int` is a `thrd_` code.
fn is_c11(symbol: &str) -> bool {
    ["thrd_", "mtx_", "cnd_", "tss_"].iter().any(|prefix| symbol.starts_with(prefix))
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
        let name = text.split("(*").nth(1).and_then(|rest| rest.split(')').next()).unwrap_or_default();
        return (name.to_owned(), "Ptr");
    }
    let split = text.rfind([' ', '*']).unwrap_or_else(|| panic!("{place}: parameter '{text}' has no name")) + 1;
    (text[split..].to_owned(), rust_type(place, &text[..split]))
}

/// Splits at commas that are not within parentheses.
fn parameters(place: &str, prototype: &str) -> Vec<(String, &'static str)> {
    let open = prototype.find('(').unwrap_or_else(|| panic!("{place}: no parameters in '{prototype}'"));
    let inner = &prototype[open + 1..prototype.len() - 1];
    if inner == "void" {
        return Vec::new();
    }
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    parts.into_iter().map(|part| parameter(place, part)).collect()
}

/// What the hook returns, as a type whose `Outcome` knows what `rval` is.
fn outcome(symbol: &str, prototype: &str) -> &'static str {
    let result = prototype.split(symbol).next().unwrap_or_default().trim();
    match result {
        "void" => "()",
        "int" if sets_errno(symbol) => "SemStatus",
        "int" if is_c11(symbol) => "ThrdStatus",
        "int" => "c_int",
        "pthread_t" | "thrd_t" => "u64",
        _ => "Ptr",
    }
}

/// One value of the `values` cell as an expression; the hook's names are `result` and the parameters'.
fn value(place: &str, text: &str, names: &[(String, &str)]) -> String {
    let known = |name: &str| names.iter().any(|(known, _)| known == name);
    match text {
        "0" => "0".to_owned(),
        // Filled by THR_TRACE_DETAIL only.
        _ if text.starts_with('?') => format!("detail({})", value(place, &text[1..], names)),
        "rval" => "result.rval()".to_owned(),
        "result" => "result as u64".to_owned(),
        _ if known(text) => format!("{text}.bits()"),
        _ if text.starts_with('*') && known(&text[1..]) => format!("stored({}, &result)", &text[1..]),
        _ if text.ends_with(')') => {
            let (function, arguments) = text.split_once('(').unwrap();
            let arguments = arguments.trim_end_matches(')').replace(",rval", ",result");
            format!("measure::{function}({arguments})")
        }
        _ => panic!("{place}: '{text}' is neither a parameter nor a known value"),
    }
}

/// What `events.tsv` says of an event's first record.
struct First {
    which: u8,
    stamp: String,
    level: String,
}

/// Every event's first record, by the event's name.
fn firsts() -> BTreeMap<String, First> {
    let text = fs::read_to_string("../spec/events.tsv").expect("events.tsv is readable");
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.filter(|row| row[2] != "2")
        .map(|row| {
            let first = First { which: row[2].parse().unwrap(), stamp: row[4].to_owned(), level: row[5].to_owned() };
            (row[3].to_owned(), first)
        })
        .collect()
}

/// What lets a call go unrecorded at level blocked, as a condition: known before the call, and after it.
fn unselected(place: &str, level: &str, object: &str) -> (Option<String>, Option<String>) {
    let id = "switch.selects()";
    match level {
        "always" | "never" => (None, None),
        "failed" => (None, Some(format!("{id} && result.rval() == 0"))),
        "waiters" => (Some(format!("{id} && measure::{object}_has_no_waiters({object})")), None),
        // No try tells, but the object's word does.
        "blocked" => (Some(format!("{id} && measure::{object}_has_token({object})")), None),
        _ => panic!("{place}: unknown level '{level}'"),
    }
}

fn hook(place: &str, row: &[&str], firsts: &BTreeMap<String, First>) -> String {
    let [symbol, event, shape, real, values, prototype] = row else { panic!("{place}: a row has 6 columns") };
    let parameters = parameters(place, prototype);
    let First { which, stamp, level } =
        firsts.get(*event).unwrap_or_else(|| panic!("{place}: unknown event '{event}'"));
    let upper = event.to_uppercase();
    let mut values: Vec<String> =
        values.split(' ').filter(|value| *value != "-").map(|text| value(place, text, &parameters)).collect();
    let mutex = event.starts_with("mutex_");
    // A measured word is read before a call that gives the object away, after one that gets or makes it.
    let mut before = String::new();
    if stamp == "b" {
        for (index, value) in values.iter_mut().enumerate().filter(|(_, value)| value.contains("measure::")) {
            writeln!(before, "    let measured_{index} = {value};").unwrap();
            *value = format!("measured_{index}");
        }
    }
    values.resize(values.len().max(4), "0".to_owned());
    values.resize(5, "detail(caller)".to_owned());
    let values = values.join(", ");
    let declared: Vec<String> = parameters.iter().map(|(name, kind)| format!("{name}: {kind}")).collect();
    let (declared, outcome) = (declared.join(", "), outcome(symbol, prototype));
    let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    let object = names.first().copied().unwrap_or_default();
    let names = names.join(", ");
    let form = format!("&id::{upper}_0");
    let (pass_on, forget) = unselected(place, level, object);
    let pass_on = pass_on.map_or(String::new(), |that| format!("    if {that} {{ return real({names}); }}\n"));
    let forget = forget.map_or(String::new(), |that| format!("    if {that} {{ return result; }}\n"));
    let mut text = format!(
        "hook! {{\n/// `{prototype};`\nfn {symbol}({declared}; caller) -> {outcome} {{\n    \
         type Function = unsafe extern \"C\" fn({declared}) -> {outcome};\n    \
         // SAFETY: functions.tsv has the prototype of the real function; the host grants what that demands.\n    \
         unsafe {{\n    let real: Function = core::mem::transmute(real::{real}.address());\n    \
         let switch = process::switch(id::{upper});\n    if !switch.is_on() {{ return real({names}); }}\n{pass_on}"
    );
    match (*shape, which) {
        ("one_record", 0) if mutex => {
            // The word that tells a recursive mutex is there after an init, before anything else.
            let kind = "let recursive = measure::is_recursive(mutex);";
            let early = if *event == "mutex_init" { "" } else { kind };
            let late = if *event == "mutex_init" { kind } else { "" };
            let (first, second) =
                if stamp == "b" { ("let time = clock::early();", "") } else { ("", "let time = clock::now();") };
            writeln!(
                text,
                "    {early}\n    {first}\n{before}    let result = real({names});\n{forget}    {second}\n    {late}\n    \
                 record::put_mutex(switch, recursive, {form}, &id::R{upper}_0, time, [{values}]);\n    result"
            )
            .unwrap();
            if *event == "mutex_unlock" {
                // Category 6 has no waiters? column.
                text = text.replace("measured_2, 0, ", "if recursive { 0 } else { measured_2 }, 0, ");
            }
        }
        ("one_record", 0) if stamp == "b" && !values.contains("result") => {
            writeln!(text, "{before}    record::put({form}, clock::early(), [{values}]);\n    real({names})").unwrap()
        }
        ("one_record", 0) if stamp == "b" => writeln!(
            text,
            "    let time = clock::early();\n{before}    let result = real({names});\n    \
             record::put({form}, time, [{values}]);\n    result"
        )
        .unwrap(),
        ("one_record", 0) => writeln!(
            text,
            "    let result = real({names});\n{forget}    record::put({form}, clock::now(), [{values}]);\n    result"
        )
        .unwrap(),
        ("two_records", 1) => {
            let bits: Vec<String> = parameters.iter().map(|(name, _)| format!("{name}.bits()")).collect();
            let mut bits = bits;
            bits.resize(4, "0".to_owned());
            writeln!(
                text,
                "{before}    record::put(&id::{upper}_1, clock::early(), [{values}]);\n    \
                 let guard = Guard::record(&id::{upper}_2, [libc::ECANCELED as u64, 0, 0, 0, 0]);\n    \
                 let result = <{outcome}>::from_bits(guard.call(real as *const (), {}));\n    \
                 record::put(&id::{upper}_2, clock::now(), [result.rval(), 0, 0, 0, 0]);\n    result",
                bits.join(", ")
            )
            .unwrap();
        }
        _ => panic!("{place}: hook '{shape}' does not fit an event whose first record is which {which}"),
    }
    text + "    }\n}\n}\n\n"
}

fn main() {
    let file = "../spec/functions.tsv";
    println!("cargo:rerun-if-changed={file}");
    println!("cargo:rerun-if-changed=../spec/events.tsv");
    // An undefined symbol has to stop the link, not the host.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
    // In a build of the whole workspace the crate libc has its feature std, and leaves this to the standard library.
    println!("cargo:rustc-cdylib-link-arg=-lc");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,now");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libthreadt.so");
    let text = fs::read_to_string(file).expect("functions.tsv is readable");
    let firsts = firsts();
    let (mut hooks, mut names) = (String::new(), BTreeSet::from(HELPERS));
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let row: Vec<&str> = line.split('\t').collect();
        let place = format!("functions.tsv:{}", index + 1);
        if row.get(2) != Some(&"handwritten") {
            hooks += &hook(&place, &row, &firsts);
        }
        names.insert(row[3]);
    }
    let mut real = String::new();
    for name in &names {
        writeln!(real, "/// The real `{name}`.\n#[allow(non_upper_case_globals)]").unwrap();
        writeln!(real, "pub static {name}: Real = Real::new(c\"{name}\");").unwrap();
    }
    let all: Vec<String> = names.iter().map(|name| format!("&{name}")).collect();
    writeln!(real, "static ALL: [&Real; {}] = [{}];", all.len(), all.join(", ")).unwrap();
    let target = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let target = Path::new(&target);
    fs::write(target.join("hooks.rs"), hooks).expect("OUT_DIR is writable");
    fs::write(target.join("real.rs"), real).expect("OUT_DIR is writable");
}
