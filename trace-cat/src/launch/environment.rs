//! The environment of a program that is to be recorded.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::program_check::{ProgramTraits, is_address_sanitizer};
use super::recorder_library;
use crate::options::{Recording, RecordingLevel};

/// The variables to set, with their values, or to unset. A variable that no option sets is inherited unchanged. Unless the user says
/// otherwise, calls are recorded with their call sites, which reports name.
pub fn variables(
    recording: &Recording,
    library: &Path,
    directory: &Path,
    traits: &ProgramTraits,
) -> Vec<(&'static str, Option<OsString>)> {
    let mut variables = vec![
        ("LD_PRELOAD", Some(preload(env::var_os("LD_PRELOAD").as_deref(), library, handler_file(recording)))),
        ("THR_TRACE_DIR", Some(directory.into())),
    ];
    if recording.no_detail {
        variables.push(("THR_TRACE_DETAIL", None));
    }
    let mut set = |name, value: Option<OsString>| variables.extend(value.map(|value| (name, Some(value))));
    set("THR_TRACE_EVENTS", recording.event_list().map(OsString::from));
    set("THR_TRACE_ONLY", (!recording.only.is_empty()).then(|| recording.only.join(OsStr::new(":"))));
    set(
        "THR_TRACE_MAX",
        recording.max.map(|max| format!("{}{}", max.bytes, if max.of_directory { "/dir" } else { "" }).into()),
    );
    set("THR_TRACE_RING", recording.ring.map(|bytes| bytes.to_string().into()));
    set("THR_TRACE_HANDLER", recording.handler.clone());
    set("THR_TRACE_BUF", recording.unbuffered.then(|| "1".into()));
    set("THR_TRACE_STACK", recording.stack.map(|frames| frames.to_string().into()));
    let is_detailed = !recording.no_detail && (recording.detail || env::var_os("THR_TRACE_DETAIL").is_none());
    set("THR_TRACE_DETAIL", is_detailed.then(|| "1".into()));
    let level = recording.level.map(|level| match level {
        RecordingLevel::All => "all",
        RecordingLevel::Blocked => "blocked",
    });
    set("THR_TRACE_LEVEL", level.map(OsString::from));
    if traits.address_sanitizer {
        set("ASAN_OPTIONS", Some(sanitizer_options(env::var_os("ASAN_OPTIONS"))));
    }
    variables
}

/// The file of the handler; what is behind a colon are its parameters.
fn handler_file(recording: &Recording) -> Option<&[u8]> {
    recording.handler.as_ref()?.as_bytes().split(|&byte| byte == b':').next()
}

/// LD_PRELOAD with the library before the inherited ones: it passes each call on to those after it. Only AddressSanitizer's
/// runtime stays before it, since the runtime refuses to run in another place. The handler is right behind the library.
fn preload(inherited: Option<&OsStr>, library: &Path, handler: Option<&[u8]>) -> OsString {
    let items = inherited.unwrap_or_default().as_bytes().split(|byte| b" :".contains(byte));
    let items: Vec<&[u8]> = items.filter(|item| !item.is_empty() && !recorder_library::is_named_by(item)).collect();
    let first = items.iter().take_while(|item| is_address_sanitizer(item)).count();
    let (before, after) = items.split_at(first);
    let handler: Vec<&[u8]> = handler.into_iter().collect();
    OsString::from_vec([before, &[library.as_os_str().as_bytes()], &handler, after].concat().join(&b':'))
}

/// AddressSanitizer's options with one more, which lets its runtime come second. It works there as well.
fn sanitizer_options(inherited: Option<OsString>) -> OsString {
    let mut options = inherited.unwrap_or_default();
    if !options.is_empty() {
        options.push(":");
    }
    options.push("verify_asan_link_order=0");
    options
}

#[cfg(test)]
mod tests {
    use spec::size::SizeLimit;

    use super::*;

    #[test]
    fn the_library_comes_first() {
        for (inherited, expected) in [
            (None, "/l/libthreadt.so"),
            (Some(""), "/l/libthreadt.so"),
            (Some("libjemalloc.so.2"), "/l/libthreadt.so:libjemalloc.so.2"),
            (Some(" a.so  /b/c.so:"), "/l/libthreadt.so:a.so:/b/c.so"),
            (Some("/old/libthreadt.so a.so"), "/l/libthreadt.so:a.so"),
            (Some("/llvm/libclang_rt.asan-x86_64.so"), "/llvm/libclang_rt.asan-x86_64.so:/l/libthreadt.so"),
            (Some("/gcc/libasan.so.8 a.so"), "/gcc/libasan.so.8:/l/libthreadt.so:a.so"),
        ] {
            assert_eq!(
                preload(inherited.map(OsStr::new), Path::new("/l/libthreadt.so"), None),
                expected,
                "{inherited:?}"
            );
        }
        let both = preload(Some(OsStr::new("/gcc/libasan.so.8 a.so")), Path::new("/l/libthreadt.so"), Some(b"/h/h.so"));
        assert_eq!(both, "/gcc/libasan.so.8:/l/libthreadt.so:/h/h.so:a.so");
    }

    #[test]
    fn each_option_has_its_variable() {
        let none = Recording::default();
        let (library, directory) = (Path::new("/l/libthreadt.so"), Path::new("/d"));
        let names = |recording: &Recording, traits: &ProgramTraits| -> Vec<&str> {
            variables(recording, library, directory, traits).iter().map(|(name, _)| *name).collect()
        };
        assert_eq!(names(&none, &ProgramTraits::default()), ["LD_PRELOAD", "THR_TRACE_DIR", "THR_TRACE_DETAIL"]);
        assert_eq!(
            names(&none, &ProgramTraits { address_sanitizer: true, ..ProgramTraits::default() }).last(),
            Some(&"ASAN_OPTIONS")
        );
        let all = Recording {
            events: vec!["-thr_self".to_owned(), "-spin".to_owned()],
            only: vec!["sort".into(), "xz".into()],
            max: Some(SizeLimit { bytes: 10 << 20, of_directory: true }),
            ring: Some(64 << 10),
            unbuffered: true,
            handler: Some("/h/h.so:3:4".into()),
            detail: true,
            no_detail: false,
            stack: Some(16),
            level: Some(RecordingLevel::Blocked),
            purpose: None,
        };
        let expected = [
            ("THR_TRACE_DIR", "/d"),
            ("THR_TRACE_EVENTS", "-thr_self:-spin"),
            ("THR_TRACE_ONLY", "sort:xz"),
            ("THR_TRACE_MAX", "10485760/dir"),
            ("THR_TRACE_RING", "65536"),
            ("THR_TRACE_HANDLER", "/h/h.so:3:4"),
            ("THR_TRACE_BUF", "1"),
            ("THR_TRACE_STACK", "16"),
            ("THR_TRACE_DETAIL", "1"),
            ("THR_TRACE_LEVEL", "blocked"),
        ];
        let variables = variables(&all, library, directory, &ProgramTraits::default());
        assert_eq!(variables[1..], expected.map(|(name, value)| (name, Some(OsString::from(value)))));
        let without = Recording { no_detail: true, ..Recording::default() };
        let unset = super::variables(&without, library, directory, &ProgramTraits::default());
        assert_eq!(unset[2..], [("THR_TRACE_DETAIL", None)]);
    }

    #[test]
    fn the_sanitizers_own_options_stay() {
        assert_eq!(sanitizer_options(None), "verify_asan_link_order=0");
        assert_eq!(sanitizer_options(Some("detect_leaks=0".into())), "detect_leaks=0:verify_asan_link_order=0");
    }
}
