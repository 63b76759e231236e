//! The results for people, and for programs.

use std::fmt::Write;

use crate::bars::Bar;
use crate::figures::{Cell, Sample, Summary};
use crate::results::Results;
use crate::ways::Way;

/// One line a workload and way, separated by tabs, with a heading.
pub fn tsv(results: &Results) -> String {
    let mut text = "workload\tway\tunit\truns\tmedian\tmin\tmax\tx native\tcpu s\tcpu min\tcpu max\twritten bytes\t\
        records\tlost\tpeak KiB\tnot measured\n"
        .to_owned();
    for Row { name, unit, way, cell, native } in rows(results) {
        let _ = write!(text, "{name}\t{}\t{unit}\t", way.name());
        let _ = match cell {
            Cell::Not(reason) => writeln!(text, "0{}\t{reason}", "\t".repeat(11)),
            Cell::Measured(samples) => {
                let (Some(figure), Some(cpu)) = (cell.summary(|run| run.figure), cell.summary(|run| run.cpu)) else {
                    let _ = writeln!(text, "0{}\tnot run", "\t".repeat(11));
                    continue;
                };
                let times = native.map_or_else(String::new, |native| format!("{:.3}", figure.median / native));
                let Summary { median, min, max } = figure;
                let rounded = |column: fn(&Sample) -> Option<f64>| {
                    median_of(cell, column).map_or_else(String::new, |value| format!("{value:.0}"))
                };
                writeln!(
                    text,
                    "{}\t{median:.4}\t{min:.4}\t{max:.4}\t{times}\t{:.4}\t{:.4}\t{:.4}\t{}\t{}\t{}\t{}\t",
                    samples.len(),
                    cpu.median,
                    cpu.min,
                    cpu.max,
                    rounded(|run| Some(run.written as f64)),
                    rounded(|run| run.records.map(|records| records as f64)),
                    rounded(|run| Some(run.lost as f64)),
                    rounded(|run| Some(run.peak as f64)),
                )
            }
        };
    }
    text
}

/// A line of either table.
struct Row<'a> {
    name: &'static str,
    unit: &'static str,
    way: Way,
    cell: &'a Cell,
    /// The native median.
    native: Option<f64>,
}

fn rows(results: &Results) -> impl Iterator<Item = Row<'_>> {
    results.workloads.iter().flat_map(move |workload| {
        let native = results.cell(workload.name, Way::Native).and_then(Cell::figure);
        results.ways.iter().filter_map(move |&way| {
            let cell = results.cell(workload.name, way)?;
            Some(Row { name: workload.name, unit: workload.unit(), way, cell, native })
        })
    })
}

/// The median of a column; `None` if it is not known.
fn median_of(cell: &Cell, column: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    match cell {
        Cell::Measured(samples) => Summary::of(samples.iter().filter_map(column)).map(|summary| summary.median),
        Cell::Not(_) => None,
    }
}

/// Aligned columns, a block a workload.
pub fn table(results: &Results) -> String {
    let mut text = format!(
        "{:15} {:>9} {:>9} {:>9} {:>8} {:>8} {:>9} {:>9} {:>9} {:>8}\n",
        "", "median", "min", "max", "x native", "CPU s", "MB", "records", "lost", "peak MB"
    );
    for row in rows(results) {
        if row.way == results.ways[0] {
            let what =
                results.workloads.iter().find(|workload| workload.name == row.name).map_or("", |found| found.what);
            let _ = writeln!(text, "\n{}: {what}, {}", row.name, row.unit);
        }
        let _ = write!(text, "  {:13} ", row.way.name().replace("lttng-overwrite", "lttng-overwr."));
        let (figure, cpu) = (row.cell.summary(|run| run.figure), row.cell.summary(|run| run.cpu));
        let _ = match (row.cell, figure, cpu) {
            (Cell::Not(reason), ..) => writeln!(text, "not measured: {reason}"),
            (_, Some(figure), Some(cpu)) => {
                let times = row.native.map_or_else(String::new, |native| format!("{:.2}", figure.median / native));
                let digits = if row.unit == "s" { 3 } else { usize::from(figure.median < 10_000.0) };
                let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"));
                writeln!(
                    text,
                    "{:>9.digits$} {:>9.digits$} {:>9.digits$} {times:>8} {:>8.3} {:>9.1} {:>9} {:>9} {:>8.1}",
                    figure.median,
                    figure.min,
                    figure.max,
                    cpu.median,
                    median_of(row.cell, |run| Some(run.written as f64)).unwrap_or(0.0) / 1e6,
                    number(median_of(row.cell, |run| run.records.map(|records| records as f64))),
                    number(median_of(row.cell, |run| Some(run.lost as f64))),
                    median_of(row.cell, |run| Some(run.peak as f64)).unwrap_or(0.0) * 1024.0 / 1e6,
                )
            }
            _ => writeln!(text, "not run"),
        };
    }
    text
}

/// What was aimed at, and whether it was met.
pub fn bars(bars: &[Bar]) -> String {
    let mut text = String::new();
    for bar in bars {
        // A ratio that misses its bar by 0.004 must not be rounded to one that meets it.
        let digits = if bar.unit.is_empty() { 3 } else { 1 };
        let most = format!("{:.digits$} {}", bar.most, bar.unit);
        let _ = match (&bar.value, bar.met()) {
            (Ok(value), Some(met)) => {
                let value = format!("{value:.digits$} {}", bar.unit);
                let verdict = if met { "met" } else { "MISSED" };
                writeln!(text, "{:58} {value:>12}  at most {most:>12}  {verdict}", bar.what)
            }
            (Err(reason), _) => {
                writeln!(text, "{:58} {:>12}  at most {most:>12}  not measured: {reason}", bar.what, "-")
            }
            (Ok(_), None) => Ok(()),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::WORKLOADS;

    fn results() -> Results {
        let mut results = Results::new(WORKLOADS[..1].to_vec(), vec![Way::Native, Way::Default, Way::Lttng]);
        let mut add = |way, run| results.cell_mut("mutex-1", way).unwrap().add(run);
        let sample = |figure| Sample { figure, cpu: 0.25, written: 3_000_000, records: Some(9), lost: 2, peak: 1000 };
        add(Way::Native, Ok(sample(20.0)));
        add(Way::Default, Ok(sample(100.0)));
        add(Way::Default, Ok(sample(140.0)));
        add(Way::Lttng, Err("lttng: it is not here".to_owned()));
        results
    }

    #[test]
    fn every_line_has_every_column() {
        let text = tsv(&results());
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [16; 4]);
        assert_eq!(lines[2][..8], ["mutex-1", "default", "ns", "2", "120.0000", "100.0000", "140.0000", "6.000"]);
        assert_eq!(lines[2][11..], ["3000000", "9", "2", "1000", ""]);
        assert_eq!((lines[3][3], lines[3][15]), ("0", "lttng: it is not here"));
    }

    #[test]
    fn what_was_not_measured_is_reported() {
        let text = table(&results());
        assert!(text.contains("mutex-1: lock + unlock of a free mutex, one thread, ns\n"), "{text}");
        assert!(text.contains("  lttng         not measured: lttng: it is not here\n"), "{text}");
        let bar = |value| Bar { what: "a".to_owned(), value, most: 0.6, unit: "" };
        let text = bars(&[bar(Ok(0.6)), bar(Ok(0.61)), bar(Err("gone".to_owned()))]);
        let results: Vec<&str> = text.lines().map(|line| line.rsplit("  ").next().unwrap()).collect();
        assert_eq!(results, ["met", "MISSED", "not measured: gone"]);
    }
}
