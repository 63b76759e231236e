//! Forks in a storm of locks: a child has its own records, from the first to the last, and the parent's are complete.

use std::collections::HashMap;

use spec::Record;

use crate::harness::{Program, SeededRandom, TestDirectory};
use crate::kill::expected_records::{self, Semaphores};
use crate::kill::finished;

/// Children of a round's parent; theirs come on top.
pub const FORKS: usize = 10;

/// What `storm` prints of a child.
struct Child {
    parent: u32,
    pairs: usize,
    /// Its exit status, or minus the signal that ended it.
    end: i32,
}

/// Runs and reads one program. Returns the number of records.
pub fn one(random: &mut SeededRandom) -> u64 {
    let test = TestDirectory::new("soak-storm");
    let counts = test.directory().join("counts");
    let run = test.traced(Program::c("kill/storm.c")).arg(&counts);
    let output = run.args([FORKS.to_string(), random.below(u64::MAX).to_string()]).run();
    output.success();
    let mut lines = output.stdout_text().lines();
    let semaphores = lines.next().and_then(Semaphores::parse).expect("the program's first line");
    let children: HashMap<u32, Child> = lines.map(child).collect();
    assert!(children.len() >= FORKS, "{} children", children.len());

    let merged = test.trace_cat().run();
    merged.success();
    assert_eq!(merged.stderr_text(), "", "trace-cat complains");
    let mut own: HashMap<u32, Vec<Record>> = HashMap::new();
    let mut of_parent = Vec::new();
    let mut records = 0;
    for line in merged.stdout.split_inclusive(|&byte| byte == b'\n') {
        records += 1;
        let text = line.strip_suffix(b"\n").expect("the last record has an end");
        let record = Record::parse(text).unwrap_or_else(|fault| panic!("{fault}: {}", String::from_utf8_lossy(text)));
        if children.contains_key(&record.pid) {
            own.entry(record.pid).or_default().push(record);
        } else {
            of_parent.extend_from_slice(line);
        }
    }
    expected_records::check(&of_parent, semaphores, &finished(&counts))
        .unwrap_or_else(|why| panic!("the parent: {why}"));
    for (pid, child) in &children {
        let records = own.get(pid).map_or(&[][..], |records| records);
        if let Err(why) = child.check(records) {
            panic!("child {pid} of {}, {} pairs, end {}: {why}", child.parent, child.pairs, child.end);
        }
    }
    records
}

/// From `child PID PARENT PAIRS END`.
fn child(line: &str) -> (u32, Child) {
    let numbers: Vec<i32> = line.split(' ').skip(1).map(|word| word.parse().expect("a number")).collect();
    let [pid, parent, pairs, end] = numbers[..] else { panic!("not a child's line: {line}") };
    (pid as u32, Child { parent: parent as u32, pairs: pairs as usize, end })
}

impl Child {
    /// Its records: its beginning, three for each pair, those of forks of its own, its end unless it was killed.
    fn check(&self, records: &[Record]) -> Result<(), String> {
        let names: Vec<&str> = records.iter().map(|record| record.event().map_or("?", |event| event.name)).collect();
        let begin = records.first().ok_or("no records")?;
        if names[0] != "proc_begin" || begin.arguments[0].bits() != u64::from(self.parent) {
            return Err(format!("begins with {}", names[0]));
        }
        let pair = ["rw_rdlock", "rw_rdlock", "rw_unlock"];
        let end = 1 + pair.len() * self.pairs;
        let pairs = names.get(1..end).ok_or_else(|| format!("{} records", names.len()))?;
        if let Some(at) = pairs.iter().zip(pair.iter().cycle()).position(|(found, wanted)| found != wanted) {
            return Err(format!("{} in pair {}", pairs[at], at / pair.len()));
        }
        let others: Vec<&str> = names[end..].iter().copied().filter(|name| *name != "proc_fork").collect();
        let wanted: &[&str] = if self.end < 0 { &[] } else { &["proc_exit"] };
        if others != wanted { Err(format!("ends with {others:?}")) } else { Ok(()) }
    }
}

#[test]
fn a_childs_missing_or_doubled_record_is_detected() {
    let child = Child { parent: 7, pairs: 2, end: 22 };
    let line =
        |what: &str| Record::parse(format!("1795174740:000000001:0000101:0000101:0x7f0000000000:{what}").as_bytes());
    let number = |name: &str, which: u8| {
        let event = spec::EVENTS.iter().find(|event| event.name == name).unwrap();
        format!("{:02}:{:02}:{which}", event.category, event.number)
    };
    let (first, second) = (number("rw_rdlock", 1), number("rw_rdlock", 2));
    let unlock = number("rw_unlock", 0);
    let (begin, end) = (number("proc_begin", 0), number("proc_exit", 0));
    let numbers = [&begin, &first, &second, &unlock, &first, &second, &unlock, &end];
    let records: Vec<Record> = numbers.iter().map(|number| line(&format!("{number}:7:0:0:0:0")).unwrap()).collect();
    child.check(&records).unwrap();
    for at in 0..records.len() {
        let mut lost = records.clone();
        lost.remove(at);
        assert!(child.check(&lost).is_err(), "lost {at}");
        let mut doubled = records.clone();
        doubled.insert(at, records[at]);
        assert!(child.check(&doubled).is_err(), "doubled {at}");
    }
}
