//! Objects that live by the hundred thousand for a few calls each.

use super::analysis::Analysis;
use super::holds::Knowledge;
use super::numeric_record::NumericRecord;
use super::object_state::ObjectState;
use super::object_table::ENDED_MAX;
use super::path_tests::analysed_with_paths;
use super::wakeups::Wakeups;

/// Of a hundred thousand objects, each byte more is 100 KB of a report.
#[test]
fn an_object_takes_680_bytes_and_a_queue_that_it_does_not_have_a_pointer() {
    assert!(size_of::<ObjectState>() <= 680);
    assert_eq!(size_of::<Wakeups>(), size_of::<usize>());
}

const SITE: u64 = 0x500;
/// How many objects there are: more by this number than are kept.
const COUNT: u64 = ENDED_MAX as u64 + 10;

fn record(time: u64, lwp: u32, event: (u8, u8, u8), arguments: [u64; 5]) -> NumericRecord {
    let (event, which) = ((event.0, event.1), event.2);
    NumericRecord { time, lwp, pid: 1, tid: lwp.into(), event, which, arguments }
}

fn initialise(time: u64, address: u64) -> NumericRecord {
    record(time, 1, (2, 1, 0), [address, 0, 0, 0, SITE])
}

fn lock(time: u64, lwp: u32, address: u64) -> [NumericRecord; 2] {
    [record(time, lwp, (2, 2, 1), [address, 0, 0, 0, SITE]), record(time, lwp, (2, 2, 2), [0; 5])]
}

fn unlock(time: u64, lwp: u32, address: u64) -> NumericRecord {
    record(time, lwp, (2, 4, 0), [address, 0, 0, 0, SITE])
}

fn destroy(time: u64, address: u64) -> NumericRecord {
    record(time, 1, (2, 5, 0), [address, 0, 0, 0, SITE])
}

/// Objects that thread 1 initialises, holds for 3 ns and destroys, one after the other, with what `more` does before the
/// destruction of an object.
fn analysed(more: impl Fn(u64, u64) -> Vec<NumericRecord>) -> Analysis {
    let mut records = Vec::new();
    for number in 0..COUNT {
        let (time, address) = (100 * (number + 1), 16 * (number + 1));
        records.push(initialise(time, address));
        records.extend(lock(time + 1, 1, address));
        records.push(unlock(time + 4, 1, address));
        records.extend(more(number, address));
        records.push(destroy(time + 99, address));
    }
    analysed_with_paths(&records, Knowledge::default())
}

fn waited(number: u64) -> bool {
    number.is_multiple_of(2) && number > COUNT - 5
}

#[test]
fn objects_that_ended_and_that_nobody_waited_for_are_summed_up() {
    let analysis = analysed(|_, _| Vec::new());
    assert_eq!(analysis.objects.iter().count(), ENDED_MAX + 1);
    let sum = analysis.objects.iter().last().unwrap();
    assert_eq!((sum.others, sum.figures.calls, sum.figures.hold.count(), sum.figures.hold.sum()), (9, 40, 10, 30));
    assert_eq!(sum.address, 16 * (ENDED_MAX as u64 + 1));
    // The critical path has them as one, too.
    let holds = &analysis.critical_paths[0].holds;
    assert_eq!(holds.len(), ENDED_MAX + 1);
    assert_eq!((holds[0].object, holds[0].time, holds[0].holds), (ENDED_MAX as u32, 30, 10));
}

#[test]
fn objects_that_threads_waited_for_are_not_summed_up() {
    let analysis = analysed(|number, address| {
        let time = 100 * (number + 1);
        let mut records = Vec::new();
        if waited(number) {
            records.extend(lock(time + 10, 1, address));
            records.push(record(time + 20, 2, (2, 2, 1), [address, 0, 0, 0, SITE]));
            records.push(unlock(time + 30, 1, address));
            records.push(record(time + 31, 2, (2, 2, 2), [0, 1, 0, 0, 0]));
            records.push(unlock(time + 40, 2, address));
        }
        records
    });
    let waits: Vec<(u64, u64, u32)> = analysis
        .objects
        .iter()
        .filter(|object| object.figures.wait.count() > 0)
        .map(|object| (object.address, object.figures.contention, object.others))
        .collect();
    let expected: Vec<_> =
        (0..COUNT).filter(|number| waited(*number)).map(|number| (16 * (number + 1), 11, 0)).collect();
    assert_eq!(waits, expected);
    assert_eq!(analysis.objects.iter().map(|object| u64::from(object.others) + 1).sum::<u64>(), COUNT);
}

#[test]
fn objects_that_findings_name_are_not_summed_up() {
    let last = COUNT - 1;
    // It is destroyed while it is held: the destruction that succeeds is misuse.
    let analysis =
        analysed(
            |number, address| {
                if number == last { lock(100 * (number + 1) + 50, 1, address).to_vec() } else { Vec::new() }
            },
        );
    let named: Vec<u64> = analysis
        .misuse
        .rows
        .iter()
        .filter_map(|misuse| misuse.object)
        .map(|object| analysis.objects[object as usize].address)
        .collect();
    assert_eq!(named, [16 * COUNT]);
}

#[test]
fn a_condition_returns_to_the_mutex_that_it_released() {
    let (last, cond) = (COUNT - 1, 8);
    // A thread waits with the last mutex, which is destroyed meanwhile.
    let analysis = analysed(|number, address| {
        let time = 100 * (number + 1);
        let mut records = Vec::new();
        if number == last {
            records.extend(lock(time + 10, 2, address));
            records.push(record(time + 20, 2, (3, 4, 1), [cond, address, 0, 0, SITE]));
        }
        records
    });
    assert!(analysis.objects.iter().any(|object| object.address == 16 * COUNT));
}

#[test]
fn each_of_many_holders_has_its_blame_in_the_report() {
    const HOLDERS: u64 = 300;
    let mut records = Vec::new();
    // Thread 1 waits 10 ns for each of the others, which call at a place of their own.
    for number in 0..HOLDERS {
        let (time, lwp) = (100 * (number + 1), 2 + (number * 7 % HOLDERS) as u32);
        let site = |mut record: NumericRecord| {
            record.arguments[4] = 0x1000 + u64::from(lwp);
            record
        };
        let [entry, returned] = lock(time, lwp, 16);
        let [wait, mut acquired] = lock(time + 10, 1, 16);
        (acquired.time, acquired.arguments[1]) = (time + 20, 1);
        records.extend([
            site(entry),
            returned,
            wait,
            site(unlock(time + 20, lwp, 16)),
            acquired,
            unlock(time + 21, 1, 16),
        ]);
    }
    let analysis = analysed_with_paths(&records, Knowledge::default());
    let figures = &analysis.objects.iter().next().unwrap().figures;
    let lwp = |thread: u32| analysis.threads[thread as usize].lwp;
    let mut blamed: Vec<_> = figures.holders().into_iter().map(|((thread, _), time)| (lwp(thread), time)).collect();
    let mut wakers: Vec<_> =
        figures.wakers.in_order().iter().map(|((thread, _), count)| (lwp(*thread), *count)).collect();
    assert!(figures.holders().is_sorted());
    [&mut blamed, &mut wakers].into_iter().for_each(|list| list.sort_unstable());
    let of_each = |sum: u64| (2..2 + HOLDERS as u32).map(|lwp| (lwp, sum)).collect::<Vec<_>>();
    assert_eq!((blamed, wakers), (of_each(10), of_each(1)));
}
