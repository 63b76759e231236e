//! A program without symbols, one of whose futexes is a lock, and another one a queue of work.

use super::*;

#[test]
fn a_futex_whose_waiters_wake_each_other_is_named() {
    const TURNS: u64 = 120;
    let test = TestDirectory::new("futex-waiters");
    let output = test.traced(Program::with_flags("report/futex_waiters.c", &["-s"])).env("THR_TRACE_DETAIL", "1").run();
    output.exited(0);
    let (lock, queue) = output.stdout_text().trim().split_once(' ').expect("two addresses");
    let output = report(&test, &["-F", "json"]).run();
    output.success();
    let document = document(&output);
    let of = |address: &str| {
        let objects = document["objects"].as_array().unwrap();
        objects.iter().find(|object| object["kind"] == "futex" && object["address"] == address).unwrap()
    };
    // All but the first to take the lock have waited for it, and each has woken the other one, but for the last.
    let waits = number(&of(lock)["waits"]);
    assert!(waits >= 2 * TURNS - 1, "{:#}", of(lock));
    assert!(number(&of(lock)["wakes_by_waiters"]) >= number(&of(lock)["wakes"]) - 1, "{:#}", of(lock));
    assert!(number(&of(queue)["waits"]) >= 2 * TURNS, "{:#}", of(queue));
    assert_eq!(of(queue)["wakes_by_waiters"], 0, "{:#}", of(queue));
    assert_eq!([&of(lock)["like_lock"], &of(queue)["like_lock"]], [&true, &false].map(|like| like));
    // What counts as contention is as it was.
    assert_eq!((number(&document["contention"]), &of(lock)["lock"]), (0, &Value::Null));
    let page = report(&test, &[]).run();
    page.success();
    let page = page.stdout_text();
    let says = page.lines().position(|line| line.starts_with("lock-like   futex ")).expect(page);
    let lines: Vec<&str> = page.lines().skip(says).take(4).collect();
    let figures = format!(" {lock}: {waits} waits, ");
    assert!(lines[0].contains(&figures) && lines[0].ends_with(", counted as idleness;"), "{page}");
    assert_eq!(lines[1], "            its waiters wake each other as those of a lock do");
    assert_eq!(page.matches("counted as idleness").count(), 1, "the queue is named: {page}");
    // The command that it prints.
    let words: Vec<&str> = lines[3].split_whitespace().collect();
    assert_eq!(words[..2], ["trace-cat", "report"], "{page}");
    let sites = test.native(trace_cat()).args(&words[1..]).run();
    sites.success();
    assert!(sites.stdout_text().contains(&format!("{waits:>9}")), "{}", sites.stdout_text());
}
