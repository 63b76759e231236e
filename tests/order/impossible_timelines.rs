//! Small timelines made by hand: possible ones, which the checker accepts, and impossible ones, which it rejects.

use spec::{Argument, EVENTS, Record};

use super::checker::{check, check_interrupted};
use super::outcome::Census;

const PID: u32 = 100;
/// The main thread and two others, by LWP.
const MAIN: u32 = 100;
const A: u32 = 101;
const B: u32 = 102;
/// Addresses.
const M: u64 = 0x1000;
const C: u64 = 0x2000;
const ROUTINE: u64 = 0x4000;

/// A record by its event's name and its first arguments, at no time yet.
fn record(lwpid: u32, name: &str, which: u8, arguments: &[u64]) -> Record {
    let event = EVENTS.iter().find(|event| event.name == name).unwrap_or_else(|| panic!("no event {name}"));
    assert!(event.kind(which).is_some(), "{name} has no record {which}");
    let mut values = [Argument::Decimal(0); 5];
    for (value, &bits) in values.iter_mut().zip(arguments) {
        *value = Argument::Decimal(bits);
    }
    let (event1, event2) = (event.category, event.number);
    Record { time: 0, lwpid, pid: PID, tid: tid(lwpid), event1, event2, which, arguments: values }
}

fn tid(lwpid: u32) -> u64 {
    0x7f00_0000_0000 + u64::from(lwpid)
}

/// The threads A and B, created by the main thread.
fn begun() -> Vec<Record> {
    [A, B]
        .iter()
        .flat_map(|&lwp| {
            [
                record(MAIN, "thr_create", 1, &[0, 0, ROUTINE, lwp.into()]),
                record(lwp, "thr_begin", 0, &[ROUTINE, lwp.into()]),
                record(MAIN, "thr_create", 2, &[0, tid(lwp)]),
            ]
        })
        .collect()
}

/// A call that was done at once: both its records.
fn both(lwpid: u32, name: &str, first: &[u64], second: &[u64]) -> [Record; 2] {
    [record(lwpid, name, 1, first), record(lwpid, name, 2, second)]
}

/// The records after the start of A and B, a nanosecond apart.
fn timed(records: Vec<Record>) -> Vec<Record> {
    let mut records = [begun(), records].concat();
    for (index, record) in records.iter_mut().enumerate() {
        record.time = 1000 + index as u64;
    }
    records
}

fn checked(records: Vec<Record>) -> Result<Census, String> {
    check(&timed(records)).map_err(|impossible| impossible.why)
}

/// The timeline is rejected for a reason that contains `why`; without its last record it is accepted, so that it is
/// the last one that is impossible.
#[track_caller]
fn rejected(records: &[&[Record]], why: &str) {
    let records = records.concat();
    let found = checked(records.clone()).expect_err("impossible, but accepted");
    assert!(found.contains(why), "{found}");
    checked(records[..records.len() - 1].to_vec()).expect("possible but for its last record");
}

#[test]
fn a_mutex_has_one_owner() {
    let lock = |lwp| both(lwp, "mutex_lock", &[M], &[0, 0]);
    let unlock = |lwp| [record(lwp, "mutex_unlock", 0, &[M, 0, 0])];
    let census = checked([&lock(A)[..], &unlock(A), &lock(B), &unlock(B)].concat()).unwrap();
    assert_eq!((census.locks, census.handed_on), (2, 1));
    rejected(&[&lock(A), &lock(B)], "two owners");
    rejected(&[&lock(A), &lock(A)], "two owners");
    rejected(&[&lock(A), &[record(B, "mutex_trylock", 0, &[M, 0])]], "two owners");
    rejected(&[&lock(A), &both(B, "mutex_timedlock", &[M, 0, 9], &[0, 1])], "two owners");
    rejected(&[&lock(A), &unlock(B)], "another than its owner");
    rejected(&[&lock(A), &unlock(A), &unlock(A)], "nobody had it");
    // A failed try and a failed unlock change nothing.
    checked([&lock(A)[..], &[record(B, "mutex_trylock", 0, &[M, 16])], &unlock(A)].concat()).unwrap();
    checked([&lock(A)[..], &[record(B, "mutex_unlock", 0, &[M, 1, 0])], &unlock(A)].concat()).unwrap();
}

#[test]
fn a_recursive_mutex_has_one_owner_and_a_depth() {
    let lock = |lwp, depth| both(lwp, "rmutex_lock", &[M], &[0, 0, depth]);
    let unlock = |lwp| [record(lwp, "rmutex_unlock", 0, &[M, 0])];
    checked([&lock(A, 1)[..], &lock(A, 2), &unlock(A), &unlock(A), &lock(B, 1)].concat()).unwrap();
    rejected(&[&lock(A, 1), &lock(A, 2), &unlock(A), &lock(B, 1)], "two owners");
    rejected(&[&lock(A, 1), &lock(A, 1)], "rm_depth");
}

#[test]
fn a_spin_lock_has_one_owner() {
    let lock = |lwp| both(lwp, "spin_lock", &[M], &[0]);
    let unlock = |lwp| [record(lwp, "spin_unlock", 0, &[M])];
    checked([&lock(A)[..], &unlock(A), &lock(B)].concat()).unwrap();
    rejected(&[&lock(A), &lock(B)], "two owners");
    rejected(&[&lock(A), &[record(B, "spin_trylock", 0, &[M, 0])]], "two owners");
}

#[test]
fn a_wait_releases_its_mutex_and_acquires_it_again() {
    let lock = |lwp| both(lwp, "mutex_lock", &[M], &[0, 0]);
    let unlock = |lwp| [record(lwp, "mutex_unlock", 0, &[M, 0, 0])];
    let wait = [record(A, "cond_wait", 1, &[C, M])];
    let woken = [record(A, "cond_wait", 2, &[0])];
    let signal = [record(B, "cond_signal", 0, &[C, 0, 1])];
    let census = checked([&lock(A)[..], &wait, &lock(B), &signal, &unlock(B), &woken, &unlock(A)].concat()).unwrap();
    assert_eq!(census.wakes, 1);
    rejected(&[&lock(A), &wait, &lock(B), &signal, &woken], "two owners");
    rejected(&[&lock(A), &wait, &lock(B), &signal, &unlock(B), &woken, &lock(B)], "two owners");
    rejected(&[&wait, &signal, &woken, &lock(B)], "two owners");
}

#[test]
fn a_release_in_flight_may_have_happened() {
    let lock = |lwp| both(lwp, "mutex_lock", &[M], &[0, 0]);
    let unlock = |lwp| [record(lwp, "mutex_unlock", 0, &[M, 0, 0])];
    let in_flight = |object| [record(A, "trace_inflight", 0, &[204, object])];
    checked([&lock(A)[..], &in_flight(M), &lock(B), &unlock(B)].concat()).unwrap();
    checked([&lock(A)[..], &in_flight(M), &unlock(A), &lock(B)].concat()).unwrap();
    rejected(&[&lock(A), &in_flight(M + 64), &lock(B)], "two owners");
    rejected(&[&lock(B), &in_flight(M), &lock(A)], "two owners");
}

#[test]
fn a_wake_up_has_its_signal() {
    let lock = both(A, "mutex_lock", &[M], &[0, 0]);
    let unlock = [record(A, "mutex_unlock", 0, &[M, 0, 0])];
    let wait = [record(A, "cond_wait", 1, &[C, M])];
    let woken = [record(A, "cond_wait", 2, &[0])];
    let signal = [record(B, "cond_broadcast", 0, &[C, 0, 1])];
    // Nobody signalled; somebody did, but too early, or something else.
    rejected(&[&lock, &wait, &woken, &unlock], "before its signal");
    rejected(&[&lock, &signal, &wait, &woken, &unlock], "before its signal");
    rejected(&[&lock, &wait, &[record(B, "cond_signal", 0, &[C + 64, 0, 1])], &woken, &unlock], "before its signal");
    // A spurious wake-up: the thread waits again until there is a signal.
    checked([&lock[..], &wait, &woken, &wait, &signal, &woken, &unlock].concat()).unwrap();
    rejected(&[&lock, &wait, &woken, &wait, &woken, &unlock], "before its signal");
    // A wait whose time ran out needs none; of the last wait of a killed program nobody knows what followed.
    let late = [record(A, "cond_timedwait", 1, &[C, M, 5, 0]), record(A, "cond_timedwait", 2, &[110])];
    checked([&lock[..], &late, &unlock].concat()).unwrap();
    checked([&lock[..], &wait, &woken].concat()).unwrap();
}

#[test]
fn readers_and_writers_exclude_each_other() {
    let read = |lwp| both(lwp, "rw_rdlock", &[M], &[0, 0, 1]);
    let write = |lwp| both(lwp, "rw_wrlock", &[M], &[0, 0]);
    let unlock = |lwp| [record(lwp, "rw_unlock", 0, &[M, 0, 0])];
    let census = checked([&read(A)[..], &read(B), &unlock(A), &unlock(B), &write(A), &unlock(A)].concat()).unwrap();
    assert_eq!(census.rwlocks, 3);
    rejected(&[&write(A), &read(B)], "beside the writer");
    rejected(&[&write(A), &write(B)], "second writer");
    rejected(&[&read(A), &write(B)], "beside the reader");
    rejected(&[&read(A), &read(A), &unlock(A), &write(B)], "beside the reader");
    rejected(&[&read(A), &[record(B, "rw_trywrlock", 0, &[M, 0])]], "beside the reader");
    rejected(&[&write(A), &[record(B, "rw_tryrdlock", 0, &[M, 0])]], "beside the writer");
    rejected(&[&write(A), &both(B, "rw_timedrdlock", &[M, 0, 9], &[0, 1, 1])], "beside the writer");
    rejected(&[&read(A), &both(B, "rw_timedwrlock", &[M, 0, 9], &[0, 1])], "beside the reader");
    rejected(&[&read(A), &unlock(B)], "neither reads nor writes");
}

#[test]
fn a_semaphore_gives_no_more_than_it_has() {
    let start = [record(MAIN, "sema_init", 0, &[M, 0, 1])];
    let wait = |lwp| both(lwp, "sema_wait", &[M, 0], &[0]);
    let post = [record(A, "sema_post", 0, &[M, 0, 0])];
    let census = checked([&start[..], &wait(A), &post, &wait(B)].concat()).unwrap();
    assert_eq!(census.tokens, 2);
    rejected(&[&start, &wait(A), &wait(B)], "nobody has posted");
    rejected(&[&start, &wait(A), &[record(B, "sema_trywait", 0, &[M, 0])]], "nobody has posted");
    rejected(&[&start, &wait(A), &both(B, "sema_timedwait", &[M, 0, 0, 9], &[0])], "nobody has posted");
    rejected(&[&start, &wait(A), &[record(A, "sema_post", 0, &[M, 75, 0])], &wait(B)], "nobody has posted");
    checked([&start[..], &wait(A), &[record(B, "sema_trywait", 0, &[M, 11])], &post].concat()).unwrap();
}

#[test]
fn a_barrier_waits_for_all() {
    let start = [record(MAIN, "barrier_init", 0, &[M, 0, 2])];
    let arrive = |lwp| [record(lwp, "barrier_wait", 1, &[M, 2])];
    let leave = |lwp, rval: i64| [record(lwp, "barrier_wait", 2, &[rval as u64])];
    let round = [&start[..], &arrive(A), &arrive(B), &leave(B, -1), &leave(A, 0)].concat();
    assert_eq!(checked(round.clone()).unwrap().barriers, 2);
    rejected(&[&start, &arrive(A), &leave(A, 0)], "1 arrivals");
    rejected(&[&round, &arrive(A), &leave(A, -1)], "3 arrivals");
    checked([&round[..], &arrive(A), &arrive(B), &leave(A, -1)].concat()).unwrap();
}

#[test]
fn a_thread_is_created_begins_exits_and_is_joined() {
    let begin = [record(103, "thr_begin", 0, &[ROUTINE, 9])];
    let create = |arg| [record(MAIN, "thr_create", 1, &[0, 0, ROUTINE, arg])];
    let exit = [record(A, "thr_exit", 0, &[0])];
    let join = both(MAIN, "thr_join", &[tid(A)], &[tid(A), 0, 0]);
    let census = checked([&exit[..], &join].concat()).unwrap();
    assert_eq!(census.joins, 1);
    rejected(&[&join], "before the thread's thr_exit");
    rejected(&[&[record(MAIN, "thr_tryjoin", 0, &[tid(A), 0, 0])]], "before the thread's thr_exit");
    rejected(&[&both(MAIN, "thr_timedjoin", &[tid(A), 0, 9], &[tid(A), 0, 0])], "before the thread's thr_exit");
    let created = [create(9), [record(MAIN, "thr_create", 2, &[0, 7])]].concat();
    rejected(&[&created, &both(MAIN, "thr_join", &[7], &[7, 0, 0])], "before the thread's thr_begin");
    rejected(&[&begin], "before the creator's thr_create");
    rejected(&[&create(8), &begin], "before the creator's thr_create");
    rejected(&[&create(9), &[record(MAIN, "thr_create", 2, &[11, 0])], &begin], "before the creator's thr_create");
    rejected(&[&create(9), &[record(103, "thr_yield", 0, &[])], &begin], "not the thread's first record");
    checked([&create(9)[..], &begin, &[record(MAIN, "thr_tryjoin", 0, &[tid(A), 0, 16])]].concat()).unwrap();
}

#[test]
fn times_and_pairs_are_in_order() {
    let mut records = begun();
    records[0].time = 1;
    assert_eq!(check(&records).unwrap_err().why, "its time is before its predecessor's");
    rejected(&[&[record(A, "mutex_lock", 2, &[0, 0])]], "without its first");
    rejected(&[&[record(A, "sema_wait", 1, &[M, 0])], &[record(A, "mutex_lock", 2, &[0, 0])]], "without its first");
}

#[test]
fn an_exec_forgets_what_was_locked() {
    let lock = both(MAIN, "mutex_lock", &[M], &[0, 0]);
    let exec = [record(MAIN, "proc_exec", 1, &[])];
    let failed = [record(MAIN, "proc_exec", 2, &[2])];
    checked([&lock[..], &exec, &lock].concat()).unwrap();
    rejected(&[&lock, &exec, &failed, &lock], "two owners");
}

/// xz ends while its workers run, one of which has just unlocked and not yet recorded it.
#[test]
fn an_interrupted_thread_may_have_released_without_a_record() {
    let lock = |lwp| both(lwp, "mutex_lock", &[M], &[0, 0]);
    let start = [record(MAIN, "sema_init", 0, &[M, 0, 0])];
    let take = both(B, "sema_wait", &[M, 0], &[0]);
    let exit = [record(A, "thr_exit", 0, &[0])];
    let wait = both(B, "cond_wait", &[C, M], &[0]);
    let after = [record(B, "thr_yield", 0, &[])];
    let interrupted = |records: &[&[Record]]| {
        let records = timed(records.concat());
        check(&records).expect_err("no thread was interrupted");
        check_interrupted(&records).map_err(|impossible| impossible.why)
    };
    interrupted(&[&lock(A), &lock(B)]).unwrap();
    interrupted(&[&both(A, "rw_wrlock", &[M], &[0, 0]), &both(B, "rw_rdlock", &[M], &[0, 0, 1])]).unwrap();
    interrupted(&[&start, &take]).unwrap();
    interrupted(&[&lock(B), &wait, &after]).unwrap();
    // One release each, none by a thread that is heard of again or has exited.
    interrupted(&[&start, &take, &take, &take]).unwrap_err();
    interrupted(&[&lock(A), &lock(B), &exit]).unwrap_err();
    interrupted(&[&lock(A), &exit, &lock(B)]).unwrap_err();
}
