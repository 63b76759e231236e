//! What changed since another trace: as tables of text, and as a part of the document.

use serde_json::{Value, json};

use super::document::Document;
use super::tables::{more, short_duration};
use super::text::PageOptions;
use super::view::{ReportView, SiteRow};
use crate::options::ReportTable;
use crate::report::comparison::{ComparedRow, NamedWaits, TraceComparison, WaitChange, WaitFigures, compare};
use crate::support::duration::duration_text;

impl ReportView<'_> {
    /// Finds what changed since an older trace.
    pub fn compare_with(&mut self, old: &ReportView) {
        let (spans, views) = ([old.selected_span(), self.selected_span()], [old, &*self]);
        let lengths = spans.map(Option::unwrap_or_default);
        let [old_objects, new_objects] = views.map(ReportView::named_objects);
        let [old_sites, new_sites] = views.map(ReportView::named_sites);
        let has_no_name = |view: &ReportView, index: u32| {
            view.source_name(index).is_none() && view.object(index).figures.wait.count() > 0
        };
        let unnamed = views.map(|view| view.objects.iter().filter(|index| has_no_name(view, **index)).count());
        let rows = [compare(old_objects, new_objects, lengths), compare(old_sites, new_sites, lengths)];
        self.comparison = Some(TraceComparison::new(rows, spans, unnamed.iter().sum()));
    }

    fn selected_span(&self) -> Option<u64> {
        self.analysis.span.map(|(start, end)| self.analysis.selection.clip(start, end))
    }

    fn named_objects(&self) -> Vec<NamedWaits> {
        let named = |index: &u32| {
            let object = self.object(*index);
            let name = self.name_of_lives(*index)?.to_owned();
            let blocks = object.figures.wait_blocks.as_deref().cloned().unwrap_or_default();
            Some(NamedWaits { kind: object.kind.name(), name, blocks, is_idle: object.figures.idleness > 0 })
        };
        self.objects.iter().filter_map(named).collect()
    }

    fn named_sites(&self) -> Vec<NamedWaits> {
        let named = |SiteRow { place, wait_blocks, idleness, .. }| NamedWaits {
            kind: "site",
            name: place,
            blocks: wait_blocks,
            is_idle: idleness > 0,
        };
        self.sites().into_iter().map(named).collect()
    }
}

impl Document<'_> {
    /// The comparison in the document.
    pub fn against(&mut self, comparison: &TraceComparison) -> Value {
        let mut list =
            |name: &str, rows: &[ComparedRow]| self.list(name, rows, |_, row| row_entry(row)).collect::<Vec<Value>>();
        let objects = list("against.objects", &comparison.objects);
        let sites = list("against.sites", &comparison.sites);
        let [old, new] = comparison.spans.map(|span| json!({ "span": span }));
        json!({
            "old": old,
            "new": new,
            "regression": comparison.regression(),
            "objects": objects,
            "sites": sites,
            "unnamed": comparison.unnamed,
        })
    }
}

fn row_entry(row: &ComparedRow) -> Value {
    let figures = |figures: WaitFigures| json!({ "waits": figures.waits, "waited": figures.waited, "mean": figures.mean(), "per_second": figures.rate.round() });
    let [ratio, rate_ratio] = row.ratios();
    let [mean_interval, rate_interval] = row.intervals();
    json!({
        "name": row.name,
        "old_name": row.old_name,
        "kind": row.kind,
        "old": row.old.map(figures),
        "new": row.new.map(figures),
        "ratio": ratio,
        "interval": mean_interval,
        "per_second_ratio": rate_ratio,
        "per_second_interval": rate_interval,
        "change": row.change.name(),
    })
}

/// Appends the tables: what became worse, and then what became better.
pub fn append_comparison(view: &ReportView, comparison: &TraceComparison, options: &PageOptions, out: &mut Vec<u8>) {
    let mut text = String::new();
    let [old, new] = comparison.spans.map(|span| span.map_or("nothing".to_owned(), duration_text));
    text += &format!("compared    OLD, {old}, with NEW, {new}\n");
    for line in view.missing_names() {
        text += &format!("missing     {line}\n");
    }
    if comparison.unnamed > 0 {
        text += &format!("missing     {} objects, which have no name to find them by\n", comparison.unnamed);
    }
    if options.by != Some(ReportTable::Site) {
        table("object", &comparison.objects, options.top, &mut text);
    }
    if options.by != Some(ReportTable::Object) {
        table("site", &comparison.sites, options.top, &mut text);
    }
    out.extend_from_slice(text.as_bytes());
}

fn table(what: &str, rows: &[ComparedRow], top: usize, text: &mut String) {
    let changed: Vec<&ComparedRow> = rows.iter().filter(|row| row.change != WaitChange::None).collect();
    let (worse, mut better): (Vec<&ComparedRow>, Vec<_>) = changed.iter().partition(|row| row.difference() >= 0.0);
    better.reverse();
    if !changed.is_empty() {
        *text += &format!("\n{:<34}{:>18}{:>20}{:>20}\n", "", "waits", "waited per s", "mean wait");
        *text += &format!(
            "{what:<34}{:>9}{:>9}{:>10}{:>10}{:>10}{:>10}  {:<6}\n",
            "old", "new", "old", "new", "old", "new", "change"
        );
    } else {
        text.push('\n');
    }
    for list in [worse, better] {
        list.iter().take(top).for_each(|row| append_row(row, text));
        more(list.len(), top, text);
    }
    *text += &format!("{what}s with waits, but no change that is certain: {}\n", rows.len() - changed.len());
}

fn append_row(row: &ComparedRow, text: &mut String) {
    let is_named_by_kind = row.kind == "site" || row.name.starts_with(row.kind);
    let label = if is_named_by_kind { row.name.clone() } else { format!("{} {}", row.kind, row.name) };
    if label.chars().count() >= 34 {
        // It has a line of its own.
        *text += &format!("{label}\n{:<34}", "");
    } else {
        *text += &format!("{label:<34}");
    }
    let column = |value: fn(WaitFigures) -> String| [row.old, row.new].map(|side| side.map_or("-".to_owned(), value));
    let [old, new] = column(|figures| figures.waits.to_string());
    *text += &format!("{old:>9}{new:>9}");
    for [old, new] in
        [column(|figures| short_duration(figures.rate as u64)), column(|figures| short_duration(figures.mean()))]
    {
        *text += &format!("{old:>10}{new:>10}");
    }
    *text += &format!("  {}\n", row.change.name());
    let interval = |interval: Option<[f64; 2]>| interval.map(|[low, high]| format!("{low:.2} to {high:.2} times"));
    let [mean, rate] = row.intervals().map(interval);
    let parts = [rate.map(|rate| format!("{rate} the time per s")), mean.map(|mean| format!("{mean} the mean"))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        *text += &format!("    {}\n", parts.join(", "));
    }
    if let Some(name) = &row.old_name {
        *text += &format!("    was {name}\n");
    }
}
