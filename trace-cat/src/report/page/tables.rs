//! The tables of the report.

use super::object_rows::ObjectRow;
use super::place_sums::{PlaceSum, place_sums};
use super::view::{PairRow, ReportView};
use crate::report::contention::{DurationSummary, ObjectFigures};

/// How many places are named from which an object was held.
const HOLDERS_MAX: usize = 3;
/// What has less than one part of this many is not shown by itself: it would be 0.0 %.
pub const SHARE_MIN: u64 = 2000;

/// Appends the objects that threads waited for, with those who held them.
pub fn objects(view: &ReportView, rows: &[ObjectRow], top: usize, text: &mut String) {
    let is_waited_for = |row: &&ObjectRow| row.objects.iter().any(|index| view.object(*index).figures.wait.count() > 0);
    let waited: Vec<&ObjectRow> = rows.iter().filter(is_waited_for).collect();
    let shown: usize = waited.iter().map(|row| row.objects.len()).sum();
    let summed_up: usize = view.objects.iter().map(|index| view.object(*index).others as usize).sum();
    let (total, others) = (waited.len(), view.objects.len() - shown + summed_up);
    let is_known = view.graph.unknown_routines.is_empty();
    if total == 0 {
        let none = if is_known { "none of which a thread waited for" } else { "for none of which a wait is known" };
        *text += &format!("\nObjects, {none}: {others}\n");
        return;
    }
    *text += &format!(
        "\n{:<34}{:>8}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}\n",
        "object", "waits", "waited", "mean", "p50", "p99", "max", "held"
    );
    for row in waited.iter().take(top) {
        let figures = row.figures(view);
        let label = row.label(view);
        let DurationSummary { mean, p50, p99, max, .. } = figures.wait.summary().unwrap_or_default();
        let [waited, mean, p50, p99, max] = [figures.wait.sum(), mean, p50, p99, max].map(short_duration);
        let has_holds = view.has_holds(view.object(row.first()));
        let held = if has_holds { short_duration(figures.hold.sum()) } else { "-".to_owned() };
        let waits = figures.wait.count();
        if label.chars().count() >= 34 {
            // It has a line of its own.
            *text += &format!("{label}\n{:<34}", "");
        } else {
            *text += &format!("{label:<34}");
        }
        *text += &format!("{waits:>8}{waited:>9}{mean:>9}{p50:>9}{p99:>9}{max:>9}{held:>9}\n");
        if row.has_blame(view) {
            holders(view, &figures, text);
        } else if let Some(wakers) = place_sums(view, figures.wakers.in_order()).first() {
            let at = wakers.place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
            *text += &format!("    {} ended by {}{at}\n", wakers.sum, wakers.threads(view));
        }
        if figures.open_waits > 0 {
            *text += &format!("    open: {}, which lasted at least so long\n", figures.open_waits);
        }
        // Where only calls that blocked are recorded, others are not.
        let knows_signals = row.objects.iter().all(|object| !view.analysis.knowledge_of(*object).only_blocked);
        if figures.wasted_signals > 0 && knows_signals {
            *text += &format!("    signals that woke nobody: {}\n", figures.wasted_signals);
        }
    }
    more(total, top, text);
    if others > 0 {
        let known = if is_known { "that no thread waited for" } else { "for which no wait is known" };
        *text += &format!("Objects {known}: {others}\n");
    }
}

/// Appends who held an object while others waited for it.
fn holders(view: &ReportView, figures: &ObjectFigures, text: &mut String) {
    let total = figures.wait.sum();
    let share = |time: u64| percent(time, total);
    let blamed = figures.holders();
    let places = place_sums(view, &blamed);
    // What has 0.0 % is among the others.
    let is_shown = |holders: &&PlaceSum| holders.sum * SHARE_MIN > total;
    let shown: Vec<&PlaceSum> = places.iter().take(HOLDERS_MAX).filter(is_shown).collect();
    for holders in &shown {
        let from = holders.place.as_ref().map(|place| format!(" from {place}")).unwrap_or_default();
        *text += &format!("    {:>7} held by {}{from}\n", share(holders.sum), holders.threads(view));
    }
    let listed: u64 = shown.iter().map(|holders| holders.sum).sum();
    let others = blamed.iter().map(|(_, time)| time).sum::<u64>() - listed + figures.blamed_others;
    if others * SHARE_MIN > total {
        *text += &format!("    {:>7} held by others, or from other places\n", share(others));
    }
    for (time, what) in [(figures.handoff, "handoff"), (figures.unknown, "unknown")] {
        if time > 0 {
            *text += &format!("    {:>7} {what}\n", share(time));
        }
    }
}

/// Appends the threads.
pub fn threads(view: &ReportView, top: usize, text: &mut String) {
    *text += &format!(
        "{:<44}{:>9}{:>9}{:>12}{:>12}{:>12}\n",
        "thread", "lived", "waits", "contention", "idleness", "caused"
    );
    for &index in view.threads.iter().take(top) {
        let thread = view.thread(index);
        let lived = short_duration(view.life(thread));
        let [contention, idleness, caused] = [thread.contention, thread.idleness, thread.caused].map(short_duration);
        let label = format!("{} of {}", thread_label(view, index), view.pid(thread.process));
        *text += &format!("{label:<44}{lived:>9}{:>9}{contention:>12}{idleness:>12}{caused:>12}\n", thread.waits);
    }
    more(view.threads.len(), top, text);
}

/// Appends the sites of calls.
pub fn sites(view: &ReportView, top: usize, text: &mut String) {
    let sites = view.sites();
    if sites.is_empty() {
        *text += "The trace has no call sites: they are recorded with THR_TRACE_DETAIL, which trace-cat run sets.\n";
        return;
    }
    *text += &format!(
        "{:>9}{:>9}{:>12}{:>12}{:>12}{:>12}  site\n",
        "calls", "waits", "contention", "idleness", "held", "blamed"
    );
    for site in sites.iter().take(top) {
        let [contention, idleness, blamed] = [site.contention, site.idleness, site.blamed].map(short_duration);
        let held = site.held.map_or_else(|| "-".to_owned(), short_duration);
        let (calls, waits) = (site.calls, site.waits);
        *text += &format!("{calls:>9}{waits:>9}{contention:>12}{idleness:>12}{held:>12}{blamed:>12}  {}\n", site.place);
    }
    more(sites.len(), top, text);
}

/// Appends who waited for whom.
pub fn pairs(view: &ReportView, top: usize, text: &mut String) {
    let pairs = view.pairs();
    *text += &format!("{:<27}{:<27}{:>9}{:>9}  {}\n", "waiter", "holder", "waits", "waited", "object");
    for PairRow { waiter, holder, object, waits, waited } in pairs.iter().take(top) {
        let [waiter, holder] = [waiter, holder].map(|thread| thread_label(view, *thread));
        let (waited, of) = (short_duration(*waited), view.process_suffix(*object));
        let object = view.object_label(*object);
        *text += &format!("{waiter:<27}{holder:<27}{waits:>9}{waited:>9}  {object}{of}\n");
    }
    more(pairs.len(), top, text);
}

/// Appends how many rows are left out.
pub fn more(total: usize, top: usize, text: &mut String) {
    if total > top {
        *text += &format!("{} more (--top)\n", total - top);
    }
}

/// `name/19955`, as `-F text` has it.
pub fn thread_label(view: &ReportView, index: u32) -> String {
    view.names().thread_label(index)
}

/// A share, in percent with one decimal.
pub fn percent(share: u64, of: u64) -> String {
    let thousandths = (u128::from(share) * 1000 + u128::from(of) / 2).checked_div(u128::from(of)).unwrap_or(0);
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}

/// A duration with three digits, rounded as the HTML page's `duration` does: `8.57 ms`.
pub fn short_duration(nanoseconds: u64) -> String {
    let units = [(1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s")];
    let forms = units.into_iter().flat_map(|unit| [2, 1, 0].map(|digits| (unit, digits)));
    let rounded = forms.filter(|_| nanoseconds >= 1_000).find_map(|((unit, name), digits)| {
        let step: u64 = unit / 10_u64.pow(digits);
        let number = nanoseconds / step + u64::from(nanoseconds % step >= step / 2);
        (number < 1000 || unit == 1_000_000_000 && digits == 0).then(|| {
            let part = 10_u64.pow(digits);
            let fraction =
                if digits > 0 { format!(".{:0width$}", number % part, width = digits as usize) } else { String::new() };
            format!("{}{fraction} {name}", number / part)
        })
    });
    rounded.unwrap_or_else(|| format!("{nanoseconds} ns"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        let texts =
            [0, 999, 1_000, 12_345, 999_499, 999_500, 1_234_567_890, 98_765_432_109, u64::MAX].map(short_duration);
        let expected =
            ["0 ns", "999 ns", "1.00 us", "12.3 us", "999 us", "1.00 ms", "1.23 s", "98.8 s", "18446744074 s"];
        assert_eq!(texts, expected);
    }
}
