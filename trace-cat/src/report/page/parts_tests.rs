//! An output is the same whatever else the analysis finds.

use super::report_output::write_report;
use super::sample_view::{INFO, SampleView};
use super::view::ReportView;
use crate::options::{FailCondition, ReportFormat, ReportOptions, ReportTable};
use crate::report::contention::random_threads::RandomThreads;
use crate::report::contention::{AnalysisParts, NumericRecord};
use crate::testing::seeded_random::SeededRandom;

/// The records of a random program whose calls are at random places, after two threads that take two locks in different orders.
fn random_records(random: &mut SeededRandom) -> Vec<NumericRecord> {
    let mut records = Vec::new();
    for (lwp, locks) in [(50, [0x50, 0x60]), (51, [0x60, 0x50])] {
        let calls = locks.map(|lock| [((2, 2), 1, lock), ((2, 2), 2, 0)]).concat();
        for (event, which, lock) in calls.into_iter().chain(locks.map(|lock| ((2, 4), 0, lock))) {
            let (time, tid, arguments) = (100 + records.len() as u64, lwp.into(), [lock, 0, 0, 0, 0]);
            records.push(NumericRecord { time, tid, pid: 1, lwp, event, which, arguments });
        }
    }
    records.extend(RandomThreads::records(random, 400));
    for record in &mut records {
        if record.which < 2 && matches!(record.event.0, 2 | 3 | 5 | 6) {
            record.arguments[4] = 0x1100 + 16 * random.below(6) as u64;
        }
    }
    records
}

fn analysed(records: &[NumericRecord], parts: AnalysisParts) -> SampleView {
    let mut sample = SampleView::of_records(records, INFO, parts);
    sample.analysis.find_critical_paths().unwrap();
    sample
}

/// What a report prints, and what is said of its conditions.
fn output(mut view: ReportView, old: Option<&ReportView>, options: &ReportOptions) -> (Vec<u8>, Vec<String>) {
    if let Some(old) = old {
        view.compare_with(old);
    }
    let mut text = Vec::new();
    let write = &mut |bytes: &[u8]| {
        text.extend_from_slice(bytes);
        Ok(())
    };
    write_report(&view, options, write).unwrap();
    (text, options.fail_if.iter().map(|condition| format!("{:?}", view.exceeded(condition))).collect())
}

/// The options that decide which parts are needed.
fn options() -> Vec<ReportOptions> {
    use ReportFormat::{Csv, Folded, Html, Json, Pprof, Text};
    let tables = [ReportTable::Object, ReportTable::Thread, ReportTable::Site, ReportTable::Pair];
    let tables = || [None].into_iter().chain(tables.map(Some));
    let formats = [Text, Json, Csv, Folded, Pprof, Html].into_iter();
    let outputs = formats.flat_map(|format| tables().map(move |by| (format, by)));
    let conditions =
        ["cycles > 0", "deadlocks > 0", "misuse > 0", "contention > 5%", "held(0x1) > 1ns", "p99(0x1) > 1ns"];
    let conditions: Vec<FailCondition> = conditions.iter().map(|text| FailCondition::parse(text).unwrap()).collect();
    let outputs = outputs.flat_map(|(format, by)| {
        [None, Some("old".into())].map(|against| {
            let fail_if = if by.is_some() { conditions[1..].to_vec() } else { conditions.clone() };
            ReportOptions { format, by, against, fail_if, ..ReportOptions::default() }
        })
    });
    outputs.filter(|options| options.check_format(false).is_ok()).collect()
}

#[test]
fn outputs_are_those_of_an_analysis_of_all_parts() {
    let mut random = SeededRandom::seeded("analysis parts", 4);
    let (mut cycles, mut waits) = (0, 0);
    for _ in 0..40 {
        let [old_records, records] = [0; 2].map(|_| random_records(&mut random));
        let [old, all] = [&old_records, &records].map(|records| analysed(records, AnalysisParts::ALL));
        let limited_old = analysed(&old_records, AnalysisParts::COMPARED);
        for options in options() {
            let limited = analysed(&records, AnalysisParts::of_report(&options));
            let [old, limited_old] = [&old, &limited_old].map(|old| options.against.as_ref().map(|_| old.view()));
            let expected = output(all.view(), old.as_ref(), &options);
            let got = output(limited.view(), limited_old.as_ref(), &options);
            let text = |output: &(Vec<u8>, Vec<String>)| String::from_utf8_lossy(&output.0).into_owned();
            assert!(got == expected, "{options:?}\n{}\n{}\n{:?} {:?}", text(&got), text(&expected), got.1, expected.1);
        }
        cycles += all.analysis.cycles.len();
        waits += all.view().objects.len();
    }
    assert!(cycles >= 40 && waits > 100, "{cycles} {waits}");
}

#[test]
fn a_report_has_the_parts_that_it_shows() {
    let parts = |format, by| AnalysisParts::of_report(&ReportOptions { format, by, ..ReportOptions::default() });
    for by in [ReportTable::Object, ReportTable::Thread, ReportTable::Site, ReportTable::Pair] {
        for format in [ReportFormat::Text, ReportFormat::Csv] {
            let parts = parts(format, Some(by));
            assert!(!parts.lock_order && !parts.critical_paths, "{format:?} {by:?}");
        }
    }
    assert_eq!([ReportFormat::Folded, ReportFormat::Pprof].map(|format| parts(format, None)), [AnalysisParts::NONE; 2]);
    let page = parts(ReportFormat::Text, None);
    assert!(page.lock_order && page.critical_paths && !page.pairs && !page.hold_percentiles);
    let fail_if = vec![FailCondition::parse("cycles > 0").unwrap()];
    let table = ReportOptions { by: Some(ReportTable::Thread), fail_if, ..ReportOptions::default() };
    assert!(AnalysisParts::of_report(&table).lock_order);
}
