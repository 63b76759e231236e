//! What a page of documents shows as a command's output, as a pattern.

use super::normal_form::normal_form;

/// Whether an output is what a page shows. Both are compared in their normal form. A line of the page that is `…` stands for any
/// lines, and `…` within a line for any text.
pub fn is_shown(page: &[&str], output: &[&str]) -> bool {
    let [page, output] =
        [page, output].map(|lines| lines.iter().map(|line| normal_form(line)).collect::<Vec<String>>());
    // For each line of the page, after how many lines of the output the lines before it may end.
    let mut ends = vec![false; output.len() + 1];
    ends[0] = true;
    for line in &page {
        if line == "…" {
            let first = ends.iter().position(|is_end| *is_end).unwrap_or(ends.len());
            ends[first..].fill(true);
        } else {
            ends.rotate_right(1);
            ends[0] = false;
            ends.iter_mut().skip(1).zip(&output).for_each(|(is_end, found)| *is_end &= is_line_shown(line, found));
        }
    }
    ends[output.len()]
}

/// Whether a line is what the page shows, in which `…` stands for any text.
fn is_line_shown(page: &str, line: &str) -> bool {
    let parts: Vec<&str> = page.split('…').collect();
    let [first, middle @ .., last] = &parts[..] else { return page == line };
    let Some(rest) = line.strip_prefix(first) else { return false };
    let Some(mut rest) = rest.strip_suffix(last) else { return false };
    middle.iter().all(|part| match rest.find(part) {
        Some(start) => {
            rest = &rest[start + part.len()..];
            true
        }
        None => false,
    })
}

#[test]
fn lines_and_texts_may_be_left_out() {
    let output = ["waits 44", "held by a", "held by b", "end"];
    for page in [
        &["waits 51", "held by a", "held by b", "end"][..],
        &["waits 51", "…", "end"],
        &["…"],
        &["…", "held by b", "…"],
        &["…", "held by …", "…", "end", "…"],
        &["w…s 17", "…", "held…b", "…d"],
    ] {
        assert!(is_shown(page, &output), "{page:?}");
    }
    for page in [
        &[][..],
        &["waits 51", "held by a", "held by b"],
        &["waits 51", "held by b", "end"],
        &["waits 51", "…", "held by c", "…"],
        &["…", "held by b", "held by a", "…"],
        &["…", "end", "…", "held by b", "…"],
        &["waits", "…"],
        &["waits 5", "…"],
        &["…", "e…x"],
        &["…", "held by …a", "held by a", "…"],
        &["…", "held by aa", "…"],
    ] {
        assert!(!is_shown(page, &output), "{page:?}");
    }
    assert!(is_shown(&[], &[]) && is_shown(&["…"], &[]) && !is_shown(&["a"], &[]));
}
