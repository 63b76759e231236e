//! `-F folded`: contention as stacks of frames, for programs that draw flame graphs.
//!
//! ```text
//! server (19953);worker;server+0x21a0;mutex 19953:0x5602a8c1c2a0#1;main thread holds it from server+0x1f00 1204511
//! ```
//!
//! Who waited, where, for what, and who held it meanwhile; then nanoseconds. Where stacks were recorded, the site is the complete stack,
//! the outermost function first. Threads of one name have one frame, and so have many whose names differ in numbers alone. The sum of
//! all lines is the contention.

use std::collections::BTreeMap;

use super::thread_groups::ThreadGroups;
use super::view::ReportView;
use crate::report::contention::{ShareKey, WaitCause};

/// What stands for a site that is not recorded.
pub const UNKNOWN_SITE: &str = "[site not recorded]";

/// Appends the lines.
pub fn append_folded(view: &ReportView, out: &mut Vec<u8>) {
    let Some(shares) = &view.analysis.shares else { return };
    let groups = ThreadGroups::new(view);
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (key, sum) in shares.rows.iter().filter(|(_, sum)| sum.time > 0) {
        *lines.entry(stack(view, &groups, key)).or_default() += sum.time;
    }
    if shares.others.time > 0 {
        lines.insert("[others]".to_owned(), shares.others.time);
    }
    for (stack, time) in lines {
        out.extend_from_slice(format!("{stack} {time}\n").as_bytes());
    }
}

fn stack(view: &ReportView, groups: &ThreadGroups, key: &ShareKey) -> String {
    let process = view.thread(key.thread).process;
    let stack = view.frame_names(key.site).unwrap_or_else(|| vec![UNKNOWN_SITE.to_owned()]);
    let thread = [view.program_label(process), groups.label(key.thread).to_owned()];
    let frames = thread.into_iter().chain(stack).chain([view.object_label(key.object), cause(view, groups, key.cause)]);
    frames.map(|frame| escaped(&frame)).collect::<Vec<String>>().join(";")
}

/// The last frame. It does not end in a number after a space, which readers would take for a figure.
fn cause(view: &ReportView, groups: &ThreadGroups, cause: WaitCause) -> String {
    let from = |site| view.place(site).map(|place| format!(" from {place}")).unwrap_or_default();
    match cause {
        WaitCause::Held(holder) => format!("{} holds it{}", groups.label(holder.thread), from(holder.site)),
        WaitCause::HeldFrom(site) => format!("one of many threads holds it{}", from(site)),
        WaitCause::Handoff => "[handoff]".to_owned(),
        WaitCause::Unknown => "[unknown]".to_owned(),
    }
}

/// A frame without what separates frames and lines.
fn escaped(frame: &str) -> String {
    let escape = |character: char| match character {
        ';' => "\\x3b".to_owned(),
        _ if character.is_control() => character.escape_default().to_string(),
        _ => character.to_string(),
    };
    frame.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::page::sample_view::{INFO, SampleView, WAITS};

    fn folded(lines: &str) -> String {
        let sample = SampleView::new(lines, INFO);
        let mut text = Vec::new();
        append_folded(&sample.view(), &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn lines_have_who_waited_where_for_what_and_who_held_it() {
        let expected = "\
            a b (1);LWP 2;a b+0xb00;mutex first used in a b+0xa00 0x10;[handoff] 5\n\
            a b (1);LWP 2;a b+0xb00;mutex first used in a b+0xa00 0x10;main thread holds it from a b+0xa00 25\n\
            a b (1);LWP 3;[site not recorded];mutex first used in a b+0xa00 0x10;LWP 2 holds it from a b+0xb00 10\n\
            a b (1);LWP 3;[site not recorded];mutex first used in a b+0xa00 0x10;[handoff] 5\n\
            a b (1);LWP 3;[site not recorded];mutex first used in a b+0xa00 0x10;main thread holds it from a b+0xa00 15\n";
        assert_eq!(folded(WAITS), expected);
    }

    #[test]
    fn a_recorded_stack_has_all_frames_from_the_outermost_on() {
        let stack = "20:2:00:03:1:0x1600:0x1700:0x1:0:0\n";
        let text = folded(&WAITS.replace("20:2:02", &format!("{stack}20:2:02")));
        let frames = ";LWP 2;[could not be followed further];a b+0xc00;a b+0xb00;mutex first used in ";
        assert!(text.lines().filter(|line| line.contains(frames)).count() == 2, "{text}");
        assert_eq!(text.lines().count(), 5);
    }

    /// The number is `w; 1` in a record.
    #[test]
    fn names_neither_end_frames_nor_lines_and_threads_of_one_name_are_one_frame() {
        let named = |lwp| format!("5:{lwp}:01:39:0:0x{lwp}:0x773b203100000000:0:0:0\n");
        let text = folded(&(named(2) + &named(3) + WAITS));
        assert!(text.lines().all(|line| line.split(';').count() == 5 && line.contains(";w\\x3b 1;")), "{text}");
        assert!(text.contains("w\\x3b 1 holds it from a b+0xb00 10\n"), "{text}");
        assert_eq!(escaped("a;b\n\u{7f}\u{e9}"), "a\\x3bb\\n\\u{7f}\u{e9}");
    }
}
