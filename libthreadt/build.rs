//! Turns the rows of `functions.tsv` into the statics of the next functions and the generated hooks.
//!
//! The column `hook` of a row selects the kind of hook:
//!
//! - `one_record` writes one record. Its time is from before or after the call, by the column `stamp` of `events.tsv`.
//!   A record with the result is written after the call in either case.
//! - `two_records` writes one record before the call and one after it. The call may wait for long, and may unwind.
//! - `wrapped` passes the call to a function in `src/hooks/` that has the event's name, with the arguments in the column
//!   `values`.
//! - `handwritten`: no hook is generated, because `src/hooks/` has it.
//!
//! The column `values` has the columns a1 to a5 of the record, as `value` reads them. Errors are reported as
//! `functions.tsv:LINE: …`.
//!
//! A function of which libc has several versions with code of their own has a row for each: its default version
//! `NAME@@VERSION`, and each old version `NAME@VERSION`. A hook of such a row is exported under that version, and calls
//! the same version of the next library; in Rust an old version is called `pthread_kill_2_2_5`. A hook without a version
//! is what the dynamic linker takes for any version.
//!
//! The column `optional` is there for functions that a program may be without: the version under which a libc has it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

#[path = "build/linking.rs"]
mod linking;
#[path = "build/prototypes.rs"]
mod prototypes;
#[path = "build/symbols.rs"]
mod symbols;

use prototypes::{is_c11, parameters, result_type, sets_errno};
use symbols::{FIRST_VERSION, Symbol, optional_functions};

/// Next functions without a row in `functions.tsv`, because no record is made of their calls: what `src/glibc/` calls,
/// mostly to calibrate, what `src/unwind/` calls, and what `src/hooks/unrecorded.rs`, `streams.rs`, `libraries.rs`, `user.rs`,
/// `sandbox.rs` and `clone.rs` hook or call.
const HELPERS: [&str; 42] = [
    "__clone",
    "__libc_start_main",
    "_dl_find_object",
    "_pthread_cleanup_pop",
    "_pthread_cleanup_push",
    "chroot",
    "clone",
    "close",
    "close_range",
    "closedir",
    "closefrom",
    "dirfd",
    "dl_iterate_phdr",
    "dlclose",
    "dup2",
    "dup3",
    "fclose",
    "fileno",
    "freopen",
    "freopen64",
    "pclose",
    "prctl",
    "prlimit",
    "prlimit64",
    "pthread_condattr_getclock",
    "pthread_condattr_init",
    "pthread_condattr_setclock",
    "pthread_mutexattr_init",
    "pthread_mutexattr_settype",
    "pthread_rwlockattr_init",
    "pthread_rwlockattr_setkind_np",
    "seteuid",
    "setfsuid",
    "setns",
    "setresuid",
    "setreuid",
    "setrlimit",
    "setrlimit64",
    "setuid",
    "syscall",
    "ulimit",
    "unshare",
];

/// Those of them that a libc may be without, with their versions.
const OPTIONAL_HELPERS: [(&str, &str); 3] =
    [("close_range", "GLIBC_2.34"), ("closefrom", "GLIBC_2.34"), ("dlclose", "GLIBC_2.2.5")];

/// Those that are in a library which the program may open and close while it runs: libdl, before glibc 2.34.
const CLOSABLE_HELPERS: [&str; 1] = ["dlclose"];

/// One value of the `values` cell as an expression over `result` and the parameters: a parameter, `*PARAMETER` for the int
/// that the call stored there, `rval` or `result`, `0`, or a call of a function in `src/glibc/`. A value that begins with `?`
/// is recorded with THR_TRACE_DETAIL only.
fn value(place: &str, text: &str, names: &[(String, &str)]) -> String {
    let known = |name: &str| names.iter().any(|(known, _)| known == name);
    match text {
        _ if text.parse::<u64>().is_ok() => text.to_owned(),
        // Filled by THR_TRACE_DETAIL only.
        _ if text.starts_with('?') => format!("detail({})", value(place, &text[1..], names)),
        "rval" => "result.rval()".to_owned(),
        "result" => "result as u64".to_owned(),
        _ if known(text) => format!("{text} as u64"),
        _ if text.starts_with('*') && known(&text[1..]) => format!("stored({}, &result)", &text[1..]),
        _ if text.ends_with(')') => {
            let (function, arguments) = text.split_once('(').unwrap();
            let arguments = arguments.trim_end_matches(')').replace(",rval", ",result");
            format!("{function}({arguments})")
        }
        _ => panic!("{place}: '{text}' is neither a parameter nor a known value"),
    }
}

/// The hook of a row whose event has a function that makes the call: its arguments are those of the `values` cell
/// (parameters, `0`, and next functions as `&NAME`), the call's return address, and the call. Where libc calls functions of the program,
/// the call is one in place; `thr_once` makes its own, and has the place.
fn wrapped_hook(row: &[&str], declared: &str, result: &str, call: &str, jump: &str) -> String {
    let [symbol, event, _, next, cells, prototype, ..] = row else { unreachable!("`hook` has checked the row") };
    let symbol = Symbol::parse(symbol);
    let (ident, exports) = (symbol.ident(), symbol.exports());
    let cells = cells.split(' ').filter(|cell| *cell != "-");
    let arguments: String = cells.map(|cell| cell.replace('&', "&next_functions::") + ", ").collect();
    let (in_place, place, call) = match *event {
        "thr_once" => (" at place", "place, ", call.to_owned()),
        "proc_fork" => (" at place", "", call.replace("call_next!(", "call_next_in_place!(place, ")),
        _ => ("", "", call.to_owned()),
    };
    // An exec and a fork have work to do also where they are not recorded.
    let (off, check, switch) = match event.strip_prefix("proc_") {
        Some(_) => (String::new(), String::new(), ""),
        None => {
            let event = event.to_uppercase();
            (
                format!("[{event} {}] ", Symbol::parse(next).ident()),
                format!("let switch = switch(id::{event});\n    if !switch.is_on() {{ return {jump}; }}\n    "),
                "switch, ",
            )
        }
    };
    format!(
        "hook! {{\n/// `{prototype};`\nfn {ident}{exports}({declared}; caller{in_place}) -> {result} {off}{{\n    \
         // SAFETY: functions.tsv has the prototype of the next function; the host grants what that demands.\n    \
         unsafe {{\n    {check}{event}({switch}{arguments}caller, {place}|| {call})\n    }}\n}}\n}}\n\n"
    )
}

/// What `events.tsv` has about an event's first record.
struct FirstRecord {
    which: u8,
    stamp: String,
    level: String,
}

/// The first record of every event, by the event's name.
fn first_records() -> BTreeMap<String, FirstRecord> {
    let text = fs::read_to_string("../spec/events.tsv").expect("events.tsv is readable");
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.filter(|row| row[2] != "2")
        .map(|row| {
            let first =
                FirstRecord { which: row[2].parse().unwrap(), stamp: row[4].to_owned(), level: row[5].to_owned() };
            (row[3].to_owned(), first)
        })
        .collect()
}

/// The conditions under which a call is not recorded at level blocked: one that is known before the call, and one that is known
/// after it.
fn omit_conditions(
    place: &str,
    symbol: Symbol<'_>,
    level: &str,
    object: &str,
    cells: &str,
) -> (Option<String>, Option<String>) {
    let selective = "switch.is_selective()";
    match level {
        "always" | "never" => (None, None),
        // An old version's objects do not tell of waiters.
        "waiters" if !symbol.is_default && !cells.contains('(') => (None, None),
        "failed" => (None, Some(format!("{selective} && result.rval() == 0"))),
        "waiters" => {
            let layout = object.to_uppercase();
            (Some(format!("{selective} && knows({layout}) && {object}_waiters({object}) == 0")), None)
        }
        // The call may not be tried first, but the object's word shows whether it would wait.
        "blocked" => (Some(format!("{selective} && {object}_count({object}) != 0")), None),
        _ => panic!("{place}: unknown level '{level}'"),
    }
}

/// Events of calls that may not return, because they end their process or thread.
const ENDING: [&str; 3] = ["thr_cancel", "thr_kill", "thr_sigqueue"];

/// The hook of a row of `functions.tsv`.
fn hook(place: &str, row: &[&str], first_records: &BTreeMap<String, FirstRecord>) -> String {
    let [symbol, event, hook_kind, next, cells, prototype, ..] = row else { panic!("{place}: a row has 6 columns") };
    let parameters = parameters(place, prototype);
    let declared: Vec<String> = parameters.iter().map(|(name, kind)| format!("{name}: {kind}")).collect();
    let (symbol, next) = (Symbol::parse(symbol), Symbol::parse(next).ident());
    let (ident, exports) = (symbol.ident(), symbol.exports());
    let (declared, result) = (declared.join(", "), result_type(symbol.name, prototype));
    let call = format!("call_next!({next}({declared}) -> {result})");
    let jump = format!("jump_to_next!({next}({declared}) -> {result})");
    if *hook_kind == "wrapped" {
        return wrapped_hook(row, &declared, result, &call, &jump);
    }
    let FirstRecord { which, stamp, level } =
        first_records.get(*event).unwrap_or_else(|| panic!("{place}: unknown event '{event}'"));
    let upper = event.to_uppercase();
    let is_mutex = event.starts_with("mutex_");
    // An object's word is read before a call that releases the object, after one that acquires or makes it.
    let (mut before, mut values) = (String::new(), Vec::new());
    for cell in cells.split(' ').filter(|cell| *cell != "-") {
        let mut value = value(place, cell, &parameters);
        if stamp == "before" && cell.ends_with(')') {
            let name = format!("word_{}", values.len());
            writeln!(before, "    let {name} = {value};").unwrap();
            value = name;
        }
        values.push(value);
    }
    values.resize(values.len().max(4), "0".to_owned());
    // Where the result stands last, the caller goes into the empty column before it.
    if values.len() == 5 && values[3] == "0" {
        values[3] = "detail(caller)".to_owned();
    }
    values.resize(5, "detail(caller)".to_owned());
    // Of each init, and of each call that fails, the stack is recorded; of one that waits, before it waits.
    let has_rval = cells.split(' ').any(|cell| cell == "rval") && *event != "thr_getconcurrency";
    let has_stack = match has_rval {
        true if event.ends_with("_init") => "true",
        true => "result.is_error()",
        false => "false",
    };
    let (put_waiting, has_failed) = match *event {
        "thr_sleep" => ("", "false"),
        "sema_wait" | "sema_timedwait" => {
            ("let waits = word_1 == 0;\n    if waits { recorder::put_stack(time); }", "!waits && result.is_error()")
        }
        // -1 is success.
        "barrier_wait" => (
            "let waits = word_1 != 1;\n    if waits { recorder::put_stack(time); }",
            "!waits && result.rval() as i64 > 0",
        ),
        _ => ("recorder::put_stack(time);", "false"),
    };
    let values = values.join(", ");
    let names: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
    let object = names.first().copied().unwrap_or_default();
    let kind = format!("&id::{upper}_0");
    let (known_before, known_after) = omit_conditions(place, symbol, level, object, cells);
    let omit_before =
        known_before.map_or(String::new(), |condition| format!("    if {condition} {{ return {jump}; }}\n"));
    let omit_after =
        known_after.map_or(String::new(), |condition| format!("    if {condition} {{ return result; }}\n"));
    let mut text = format!(
        "hook! {{\n/// `{prototype};`\nfn {ident}{exports}({declared}; caller) -> {result} [{upper} {next}] {{\n    \
         // SAFETY: functions.tsv has the prototype of the next function; the host grants what that demands.\n    \
         unsafe {{\n    let switch = switch(id::{upper});\n    \
         if !switch.is_on() {{ return {jump}; }}\n{omit_before}"
    );
    // Until a release is recorded, or a call that may end the process or the thread, the thread's slot has a note of it.
    let (note, recorded) = if *level == *"waiters" || ENDING.contains(event) {
        let of = |event: &str| format!("recorder::note_release(id::{event}, {object} as u64, time)");
        let note = match is_mutex {
            true => format!("let noted = if recursive {{ {} }} else {{ {} }};", of(&format!("R{upper}")), of(&upper)),
            false => format!("let noted = {};", of(&upper)),
        };
        (note, "recorder::release_is_recorded(noted);")
    } else {
        (String::new(), "")
    };
    match (*hook_kind, which) {
        ("one_record", 0) if is_mutex => {
            // Whether a mutex is recursive can be read after its init, and before any other call.
            let recursive = "let recursive = is_recursive(mutex);";
            let (kind_before, kind_after) = if *event == "mutex_init" { ("", recursive) } else { (recursive, "") };
            let (stamp_before, stamp_after) = match stamp.as_str() {
                "before" => ("let time = clock::now_unfenced();", ""),
                _ => ("", "let time = clock::now_fenced();"),
            };
            writeln!(
                text,
                "    {kind_before}\n    {stamp_before}\n{before}    {note}\n    let result = {call};\n{omit_after}    \
                 {stamp_after}\n    {kind_after}\n    \
                 recorder::put_mutex(switch, recursive, {kind}, &id::R{upper}_0, time, [{values}], {has_stack});\n    \
                 {recorded}\n    result"
            )
            .unwrap();
            if *event == "mutex_unlock" {
                // Category 6 has no waiters? column.
                text = text.replace("word_2, 0, ", "if recursive { 0 } else { word_2 }, 0, ");
            }
        }
        ("one_record", 0) if stamp == "before" && !values.contains("result") => {
            writeln!(text, "{before}    recorder::put({kind}, clock::now_unfenced(), [{values}]);\n    {jump}").unwrap()
        }
        ("one_record", 0) if stamp == "before" => writeln!(
            text,
            "    let time = clock::now_unfenced();\n{before}    {note}\n    let result = {call};\n    \
             recorder::put_result({kind}, time, [{values}], {has_stack});\n    {recorded}\n    result"
        )
        .unwrap(),
        ("one_record", 0) => writeln!(
            text,
            "    let result = {call};\n{omit_after}    \
             recorder::put_result({kind}, clock::now_fenced(), [{values}], {has_stack});\n    result"
        )
        .unwrap(),
        ("two_records", 1) => {
            let mut bits: Vec<String> = parameters.iter().map(|(name, _)| format!("{name} as u64")).collect();
            bits.resize(4, "0".to_owned());
            writeln!(
                text,
                "{before}    let time = clock::now_unfenced();\n    \
                 recorder::put(&id::{upper}_1, time, [{values}]);\n    \
                 {put_waiting}\n    let unwound = ReturnRecord::new(&id::{upper}_2, [libc::ECANCELED as u64, 0, 0, 0, 0]);\n    \
                 let result: {result} = unwound.call(next_functions::{next}.address(), [{}]);\n    \
                 recorder::put_result(&id::{upper}_2, clock::now_fenced(), [result.rval(), 0, 0, 0, 0], {has_failed});\n    \
                 result",
                bits.join(", ")
            )
            .unwrap();
        }
        _ => panic!("{place}: hook '{hook_kind}' does not fit an event whose first record is which {which}"),
    }
    text + "    }\n}\n}\n\n"
}

fn main() {
    let file = "../spec/functions.tsv";
    println!("cargo:rerun-if-changed={file}");
    println!("cargo:rerun-if-changed=../spec/events.tsv");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    let text = fs::read_to_string(file).expect("functions.tsv is readable");
    let first_records = first_records();
    let mut optional = BTreeSet::from(OPTIONAL_HELPERS);
    let mut versions: BTreeSet<&str> = optional.iter().map(|(_, version)| *version).chain([FIRST_VERSION]).collect();
    let (mut hooks, mut names) = (String::new(), BTreeSet::from(HELPERS.map(Symbol::parse)));
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let row: Vec<&str> = line.split('\t').collect();
        let place = format!("functions.tsv:{}", index + 1);
        if row.get(2) != Some(&"handwritten") {
            hooks += &hook(&place, &row, &first_records);
        }
        names.insert(Symbol::parse(row[3]));
        versions.extend(Symbol::parse(row[0]).version);
        if let Some(version) = row.get(6) {
            optional.insert((Symbol::parse(row[0]).name, *version));
            versions.insert(version);
        }
    }
    let mut next = String::new();
    for symbol in &names {
        let (Symbol { name, version, .. }, ident) = (symbol, symbol.ident());
        writeln!(next, "/// The next `{name}`.\n#[allow(non_upper_case_globals)]").unwrap();
        let substitute = match *name {
            "chroot" | "close_range" | "dirfd" | "dlclose" | "fexecve" | "fileno" | "_Fork" | "forkpty" | "prctl"
            | "setns" | "syscall" | "unshare" => "missing_with_errno",
            _ if sets_errno(name) || name.starts_with("exec") => "missing_with_errno",
            _ if is_c11(name) => "missing_c11",
            _ => "missing",
        };
        let version = version.map_or("None".to_owned(), |version| format!("Some(c\"{version}\")"));
        let is_closable = CLOSABLE_HELPERS.contains(name);
        writeln!(
            next,
            "pub static {ident}: NextFunction = NextFunction::new(c\"{name}\", {version}, {substitute}, {is_closable});"
        )
        .unwrap();
    }
    let all: Vec<String> = names.iter().map(|symbol| format!("&{}", symbol.ident())).collect();
    writeln!(next, "static ALL: [&NextFunction; {}] = [{}];", all.len(), all.join(", ")).unwrap();
    let target = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let target = Path::new(&target);
    fs::write(target.join("hooks.rs"), hooks).expect("OUT_DIR is writable");
    fs::write(target.join("next_functions.rs"), next).expect("OUT_DIR is writable");
    fs::write(target.join("optional_functions.rs"), optional_functions(&optional)).expect("OUT_DIR is writable");
    linking::request(target, &versions);
}
