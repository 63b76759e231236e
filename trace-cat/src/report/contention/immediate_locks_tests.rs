//! Lock calls that are taken at once have the effect of their records one after the other.

use std::collections::HashMap;

use spec::event_numbers::TRACE_STACK;

use super::analysis::Analysis;
use super::analysis_tests::{RecordLine, record};
use super::holds::Knowledge;
use super::numeric_record::NumericRecord;
use super::random_threads::RandomThreads;
use super::wait_selection::WaitSelection;
use crate::testing::seeded_random::SeededRandom;

/// An analysis of records, one after the other or with lock calls taken at once, and how many calls were.
fn analysed(
    records: &[NumericRecord],
    knowledge: Knowledge,
    selection: &WaitSelection,
    at_once: bool,
) -> (Analysis, u32) {
    let mut analysis = Analysis::new(HashMap::from([(1, knowledge)]), selection.clone());
    let (mut unread, mut calls) = (records, 0);
    while let [record, after @ ..] = unread {
        unread = after;
        match after.first().filter(|returned| at_once && analysis.add_immediate_lock(record, returned)) {
            Some(_) => (unread, calls) = (&after[1..], calls + 1),
            None => analysis.add(record),
        }
    }
    analysis.finish(&[]);
    analysis.find_critical_paths().unwrap();
    (analysis, calls)
}

/// All that an analysis has found, but for tables that are in no order.
fn findings(analysis: &Analysis) -> Vec<String> {
    let Analysis { processes, threads, sites, missing, cycles, misuse, suspected, critical_paths, .. } = analysis;
    let objects = analysis.objects.iter().map(|object| format!("{object:?}"));
    let threads = threads.iter().map(|thread| format!("{thread:?}"));
    let sites = sites.sites.iter().map(|site| format!("{site:?}"));
    let mut pairs: Vec<_> = analysis.pairs.iter().collect();
    pairs.sort_unstable();
    let others = [
        format!("{processes:?} {missing:?} {:?}", analysis.span),
        format!("{cycles:?} {suspected:?} {:?}", misuse.rows),
        format!("{critical_paths:?}"),
        format!("{pairs:?}"),
    ];
    objects.chain(threads).chain(sites).chain(others).collect()
}

/// The records of a random program at random places, some with stacks or an owner, some of which may be missing.
fn random_records(random: &mut SeededRandom, missing_of_hundred: usize) -> Vec<NumericRecord> {
    let mut records = Vec::new();
    for mut record in RandomThreads::records(random, 300) {
        if random.below(100) < missing_of_hundred {
            continue;
        }
        if record.which < 2 && matches!(record.event.0, 2 | 3 | 5 | 6) {
            record.arguments[4] = [0, 0x1100, 0x1110, 0x1120][random.below(4)];
        }
        if record.which == 1 && matches!(record.event, (2 | 6, 2) | (5, 3)) && random.below(10) == 0 {
            record.arguments[3] = 1 + random.below(4) as u64;
        }
        if record.which == 1 && random.below(10) == 0 {
            let arguments = [0x1100, 0x1200 + random.below(3) as u64, 0, 0, 0];
            records.push(NumericRecord { event: TRACE_STACK, arguments, ..record });
        }
        records.push(record);
    }
    records
}

#[test]
fn calls_at_once_have_the_effect_of_their_records() {
    let mut random = SeededRandom::seeded("immediate locks", 6);
    let everything = WaitSelection::default();
    let a_part = WaitSelection { times: 2000..4000, ..WaitSelection::default() };
    let knowledge = [
        Knowledge::default(),
        Knowledge { complete_from: 2500, ..Knowledge::default() },
        Knowledge { is_partial: true, ..Knowledge::default() },
        Knowledge { misses_conds: true, ..Knowledge::default() },
        Knowledge { is_selective: true, ..Knowledge::default() },
        Knowledge { only_blocked: true, ..Knowledge::default() },
    ];
    let (mut of_blocked, mut of_others) = (0, 0);
    for round in 0..120 {
        let records = random_records(&mut random, [0, 10][round % 2]);
        for (known, selection) in knowledge.iter().flat_map(|known| [(*known, &everything), (*known, &a_part)]) {
            let [(expected, _), (got, calls)] =
                [false, true].map(|at_once| analysed(&records, known, selection, at_once));
            let [expected, got] = [expected, got].map(|analysis| findings(&analysis));
            let difference = expected.iter().zip(&got).find(|(expected, got)| expected != got);
            assert_eq!((difference, got.len()), (None, expected.len()), "{known:?} {:?}", selection.times);
            *(if known.only_blocked { &mut of_blocked } else { &mut of_others }) += calls;
        }
    }
    assert!(of_blocked == 0 && of_others > 10_000, "{of_blocked} {of_others}");
}

#[test]
fn only_both_records_of_a_call_that_did_not_wait_are_taken_at_once() {
    let is_taken = |entry: RecordLine, returned: RecordLine| {
        let mut analysis = Analysis::new(HashMap::new(), WaitSelection::default());
        let begin = record((1, 1, "1:18:0", &[]));
        let [entry, returned] = [entry, returned].map(record);
        assert!(!analysis.add_immediate_lock(&begin, &entry));
        analysis.add(&begin);
        let records = analysis.processes[0].records;
        let is_taken = analysis.add_immediate_lock(&entry, &returned);
        assert_eq!(analysis.processes[0].records - records, if is_taken { 2 } else { 0 });
        is_taken
    };
    for event in ["2:2", "2:30", "6:2", "6:30", "5:2", "5:3", "5:30", "5:31", "9:2"] {
        let [entry, returned] = [1, 2].map(|which| format!("{event}:{which}"));
        assert!(is_taken((5, 1, &entry, &[0x10]), (5, 1, &returned, &[0, 0, 1])), "{event}");
        assert!(!is_taken((5, 1, &entry, &[0x10]), (6, 1, &returned, &[0, 0, 1])), "later");
        assert!(!is_taken((5, 1, &entry, &[0x10]), (5, 2, &returned, &[0, 0, 1])), "of another thread");
        assert!(!is_taken((5, 3, &entry, &[0x10]), (5, 3, &returned, &[0, 0, 1])), "of a new thread");
        assert!(!is_taken((5, 1, &entry, &[0x10]), (5, 1, &entry, &[0x10])), "another call");
        assert!(!is_taken((5, 1, &entry, &[0x10]), (5, 1, &returned, &[1, 1, 1])), "failed or waited");
    }
    assert!(!is_taken((5, 1, "2:2:1", &[0x10]), (5, 1, "2:2:2", &[130, 0])), "its owner had died");
    assert!(!is_taken((5, 1, "2:2:1", &[0x10, 0, 0, 1]), (5, 1, "2:2:2", &[0, 0])), "held by another thread");
    assert!(!is_taken((5, 1, "4:2:1", &[0x10, 1]), (5, 1, "4:2:2", &[0, 0])), "a semaphore");
}
