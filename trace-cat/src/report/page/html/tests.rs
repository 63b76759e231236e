//! The page is safe whatever the trace has, and fits.

use serde_json::Value;

use super::*;
use crate::report::page::sample_view::{INFO, SampleView, WAITS};
use crate::report::page::tables::short_duration;
use crate::report::process_info::ProcessInfo;

fn html(sample: &SampleView, top: Option<usize>) -> String {
    let mut text = Vec::new();
    append_html(&sample.view(), top, &mut text);
    String::from_utf8(text).unwrap()
}

fn data(page: &str) -> Value {
    let (_, data) = page.split_once("<script id=\"data\" type=\"application/json\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

/// A trace in which each of `count` threads waits for a mutex of its own that the main thread holds.
fn large_trace(count: u64) -> String {
    let mut lines = String::new();
    for index in 0..count {
        let (time, lwp, address, site) = (index * 10, index % 9_000 + 10, 0x10 + index * 16, 0x1000 + index % 0xfff);
        lines += &format!(
            "{time}:1:02:02:1:{address:#x}:0:0:0:{site:#x}\n{time}:1:02:02:2:0:0:0:0:0\n\
             {}:{lwp}:02:02:1:{address:#x}:0:0:0:{site:#x}\n{}:1:02:04:0:{address:#x}:0:1:0:0\n{}:{lwp}:02:02:2:0:1:0:0:0\n",
            time + 1,
            time + 5,
            time + 6
        );
    }
    lines
}

#[test]
fn the_page_refers_to_nothing_outside_of_it() {
    let page = html(&SampleView::new(WAITS, INFO), None);
    for forbidden in ["http:", "https:", "src=", "<link", "@import", "url(", "innerHTML", "import(", "fetch("] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(!page.contains('@') || page.matches('@').count() == STYLE.matches('@').count(), "a placeholder is left");
    assert!(page.contains("content=\"default-src 'none'; script-src 'nonce-"));
    assert_eq!(page.matches("<script").count(), 2);
}

#[test]
fn the_data_has_names_and_histograms_of_what_the_page_shows() {
    let data = data(&html(&SampleView::new(WAITS, INFO), None));
    assert_eq!((&data["contention"], &data["names"]["1"]), (&60.into(), &"main thread".into()));
    assert_eq!(data["histograms"]["1:0x10#1"], serde_json::json!([[4, 2]]));
    assert_eq!(data["objects"][0]["blamed"].as_array().unwrap().len(), 2);
    assert!(data["objects"][0].get("worst").is_none());
    // Those of one place are one line, as in the text.
    let place = |thread: &str, site: &str, time: u64| serde_json::json!([thread, site, time]);
    assert_eq!(
        data["places"]["1:0x10#1"],
        serde_json::json!([place("1/1", "a b+0xa00", 40), place("1/2", "a b+0xb00", 10)])
    );
    let few = self::data(&html(&SampleView::new(WAITS, INFO), Some(1)));
    assert_eq!((few["threads"].as_array().unwrap().len(), &few["left_out"]["threads"]), (1, &2.into()));
}

#[test]
fn lives_of_an_object_are_one_on_the_page() {
    let life = |life: u64| {
        format!(
            "{0}01:1:02:01:0:0x10:0:0:0:0x1700\n{0}10:1:02:02:1:0x10:0:0:0:0x1500\n{0}11:1:02:02:2:0:0:0:0:0\n\
             {0}20:2:02:02:1:0x10:0:0:0:0x1600\n{0}60:1:02:04:0:0x10:0:1:0:0\n{0}70:2:02:02:2:0:1:0:0:0\n\
             {0}90:2:02:04:0:0x10:0:0:0:0\n{0}95:1:02:05:0:0x10:0:0:0:0x1800\n",
            life
        )
    };
    let mut sample = SampleView::new(&(life(1) + &life(2) + &life(3)), INFO);
    sample.analysis.find_critical_paths().unwrap();
    let data = data(&html(&sample, None));
    let [object] = &data["objects"].as_array().unwrap()[..] else { panic!("{data:#}") };
    let figures = ["lives", "waits", "waited", "holds"].map(|key| object[key].as_u64().unwrap());
    assert_eq!(figures, [3, 3, 150, 6], "{object:#}");
    assert_eq!((&object["object"], &object["name"]), (&"1:0x10#1".into(), &"mutex of a b+0xc00".into()));
    let [pair] = &data["pairs"].as_array().unwrap()[..] else { panic!("{data:#}") };
    assert_eq!((&pair["waits"], &pair["waited"]), (&3.into(), &120.into()));
    assert_eq!(data["histograms"], serde_json::json!({ "1:0x10#1": [[5, 3]] }));
    assert_eq!(data["critical_path"][0]["by_object"].as_array().unwrap().len(), 1);
    assert!(!data.to_string().contains("0x10#2"), "{data:#}");
}

#[test]
fn names_of_a_trace_are_no_markup() {
    const NAME: &str = "</script><script>alert(1)</script><!--'\"&@DATA@@SCRIPT@\u{2028}\u{1}\u{fffd}";
    let mut sample = SampleView::new(WAITS, &format!("format 1\npid 1\nexe {NAME}\nmap 0x1000 0x2000 0x0 - {NAME}\n"));
    sample.known.insert(1, ProcessInfo { pid: 1, command: NAME.to_owned(), ..ProcessInfo::default() });
    let page = html(&sample, None);
    assert_eq!([page.matches("<script").count(), page.matches("</script>").count()], [2, 2]);
    assert_eq!((page.matches("<!--").count(), page.matches("<title>").count()), (0, 1));
    assert!(page.contains("<title>Waits of &lt;/script&gt;&lt;script&gt;"));
    let data = data(&page);
    assert_eq!(data["processes"][0]["command"], NAME);
    assert!(data["sites"][0]["site"].as_str().unwrap().starts_with("script><!--"));
}

#[test]
fn a_page_has_at_most_two_megabytes() {
    let path = format!("/{}", "<&é".repeat(1300));
    let mut sample =
        SampleView::new(&large_trace(2_500), &format!("format 1\npid 1\nexe {path}\nmap 0x1000 0x2000 0x0 - {path}\n"));
    let command = path.repeat(8);
    sample.known.insert(1, ProcessInfo { pid: 1, command, ..ProcessInfo::default() });
    let page = html(&sample, None);
    assert!((SIZE_MAX / 4..=SIZE_MAX).contains(&page.len()), "{}", page.len());
    let data = data(&page);
    let shown = data["objects"].as_array().unwrap().len() as u64;
    assert!(shown >= 100, "{shown}");
    assert_eq!(data["left_out"]["objects"].as_u64().unwrap() + shown, 2_500);
}

/// Of what is missing the page says a sentence, not the word of the document.
#[test]
fn each_kind_of_what_is_missing_has_a_text() {
    let kinds = ["lost", "ring", "changed", "level", "events", "release", "acquisition", "entry", "return"];
    let (_, texts) = include_str!("assets/overview.js").split_once("const MISSING = {\n").unwrap();
    let (texts, _) = texts.split_once("\n};").unwrap();
    for kind in kinds.into_iter().chain(["holder", "jump", "owner", "ending"]) {
        assert!(texts.lines().any(|line| line.trim_start().starts_with(&format!("{kind}: ("))), "{kind}");
    }
}

/// Runs the page's own function, where node is installed.
#[test]
fn durations_are_rounded_as_on_the_text_page() {
    let script = include_str!("assets/elements.js");
    let from = script.find("function duration").unwrap();
    let function = &script[from..from + script[from..].find("\n}\n").unwrap() + 3];
    let mut durations =
        vec![0, 1, 999, 1_000, 1_004, 1_005, 1_015, 9_994, 9_995, 36_050_000, 149_500, 999_499, 999_500];
    durations.extend([117_499, 117_500, 999_499_999, 999_500_000, 98_765_432_109, 1 << 50]);
    let call = format!("{function}console.log({durations:?}.map(duration).join(\"\\n\"))");
    let Ok(output) = std::process::Command::new("node").args(["-e", &call]).output() else {
        return eprintln!("node is not installed");
    };
    let text = String::from_utf8(output.stdout).unwrap().replace('\u{b5}', "u");
    let expected: Vec<String> = durations.iter().map(|duration| short_duration(*duration)).collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{}", String::from_utf8_lossy(&output.stderr));
}

/// The JSON document names the reasons by these kinds; the script of the page has the words.
#[test]
fn each_reason_has_words_on_the_page() {
    let script = include_str!("assets/overview.js");
    let words = script.split_once("const MISSING = {").unwrap().1.split_once("\n};").unwrap().0;
    let has_words = |kind: &str| words.lines().any(|line| line.trim_start().starts_with(&format!("{kind}: ")));
    let document = include_str!("../document.rs");
    let kinds = ["lost", "ring", "changes", "level", "events", "release", "acquisition", "entry", "return", "holder"];
    let of_waits = ["jump", "owner", "routine", "cancelled", "left", "robust", "unlocked", "ending"];
    let known = |kind: &&str| document.contains(&format!("\"{kind}\""));
    let missing: Vec<&str> = kinds.into_iter().chain(of_waits).filter(known).filter(|kind| !has_words(kind)).collect();
    assert_eq!(missing, Vec::<&str>::new());
    assert!(of_waits.iter().all(known));
}
