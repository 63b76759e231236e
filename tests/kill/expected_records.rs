//! What trace-cat prints of a killed `counting`, held against what the program knows that it finished.

use std::collections::HashMap;

use spec::Record;

/// The records of one call of `work`'s loop, as (event, which): post, lock, lock, unlock.
pub const LOOP: [(&str, u8); 4] = [("sema_post", 0), ("mutex_lock", 1), ("mutex_lock", 2), ("mutex_unlock", 0)];

/// Where the program's semaphores are.
#[derive(Clone, Copy, Debug)]
pub struct Semaphores {
    pub first: u64,
    pub size: u64,
}

impl Semaphores {
    /// From the line that the program prints: `semaphores 0x55… 32`.
    pub fn parse(line: &str) -> Option<Semaphores> {
        let mut words = line.strip_prefix("semaphores 0x")?.split_whitespace();
        let first = u64::from_str_radix(words.next()?, 16).ok()?;
        Some(Semaphores { first, size: words.next()?.parse().ok()? })
    }

    /// Whose semaphore this is.
    pub fn worker(self, address: u64) -> Option<usize> {
        let offset = address.checked_sub(self.first)?;
        (offset % self.size == 0).then_some((offset / self.size) as usize)
    }
}

/// One LWP's records so far.
#[derive(Default)]
struct WorkerProgress {
    /// Known from its first post.
    index: Option<usize>,
    records: u64,
    mutex: u64,
}

/// Checks the text that trace-cat printed. `finished` has the number of calls that each worker has returned from: all of their
/// records must be there, once, in the order of the program; of the next call there may be some.
///
/// Returns how many records of workers there were.
///
/// # Errors
/// What is missing, twice, truncated or out of order.
pub fn check(text: &[u8], semaphores: Semaphores, finished: &[u64]) -> Result<u64, String> {
    let mut workers: HashMap<(u32, u32), WorkerProgress> = HashMap::new();
    let mut time = 0;
    if text.last().is_some_and(|&byte| byte != b'\n') {
        return Err("the last record is truncated".to_owned());
    }
    for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let shown = || String::from_utf8_lossy(line);
        let record = Record::parse(line).map_err(|fault| format!("{fault}: {}", shown()))?;
        if record.time < time {
            return Err(format!("out of order: {}", shown()));
        }
        time = record.time;
        let name = record.event().map_or("?", |event| event.name);
        if LOOP.iter().any(|(event, _)| *event == name) {
            let worker = workers.entry((record.pid, record.lwpid)).or_default();
            worker.next(&record, name, semaphores).map_err(|why| format!("{why}: {}", shown()))?;
        }
    }
    let mut found = vec![0; finished.len()];
    for worker in workers.values() {
        let index = worker.index.ok_or("a thread without a post")?;
        let place = found.get_mut(index).ok_or("no such worker")?;
        if *place != 0 {
            return Err(format!("two threads are worker {index}"));
        }
        *place = worker.records;
    }
    for (index, (&found, &calls)) in found.iter().zip(finished).enumerate() {
        // Three calls make four records; the second of the three makes two.
        let least = calls / 3 * 4 + [0, 1, 3][(calls % 3) as usize];
        // The next call may have been recorded, all of it.
        let most = least + [1, 2, 1][(calls % 3) as usize];
        if found < least || found > most {
            return Err(format!(
                "worker {index} finished {calls} calls and has {found} records, not {least} to {most}"
            ));
        }
    }
    Ok(found.iter().sum())
}

impl WorkerProgress {
    fn next(&mut self, record: &Record, name: &str, semaphores: Semaphores) -> Result<(), String> {
        let (turn, step) = (self.records / 4, (self.records % 4) as usize);
        self.records += 1;
        if (name, record.which) != LOOP[step] {
            return Err(format!("after {turn} turns expected {} {}", LOOP[step].0, LOOP[step].1));
        }
        let arguments = record.arguments.map(spec::Argument::bits);
        match step {
            0 => {
                let index = semaphores.worker(arguments[0]).ok_or("not a semaphore of the program's")?;
                if *self.index.get_or_insert(index) != index {
                    return Err("another worker's semaphore".to_owned());
                }
                if arguments[1] != 0 || arguments[2] != turn {
                    return Err(format!("expected rval 0 and s_count {turn}"));
                }
            }
            1 => self.mutex = arguments[0],
            3 if arguments[0] != self.mutex => return Err("unlocked another mutex than it locked".to_owned()),
            2 | 3 if arguments[1] != 0 => return Err("expected neither an error nor a wait".to_owned()),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEMAPHORES: Semaphores = Semaphores { first: 0x1000, size: 32 };

    /// The first `records` records of worker 0.
    fn text(records: usize) -> Vec<String> {
        let line = |number: usize| {
            let turn = number / 4;
            let what = match number % 4 {
                0 => format!("04:04:0:0x1000:0:{turn}:0:0"),
                1 => "02:02:1:0x2000:0:0:0:0".to_owned(),
                2 => "02:02:2:0:0:0:0:0".to_owned(),
                _ => "02:04:0:0x2000:0:0:0:0".to_owned(),
            };
            format!("1795174740:{number:09}:0000101:0000100:0x7f0000000000:{what}\n")
        };
        (0..records).map(line).collect()
    }

    #[test]
    fn what_was_finished_must_be_there() {
        let all = text(9).concat();
        for calls in 0..12 {
            let result = check(all.as_bytes(), SEMAPHORES, &[calls]);
            // Nine records: two turns and a post, finished or not.
            assert_eq!(result.is_ok(), calls == 6 || calls == 7, "{calls}: {result:?}");
        }
        assert!(check(b"", SEMAPHORES, &[0]).is_ok());
        assert!(check(b"", SEMAPHORES, &[1]).is_err());
    }

    #[test]
    fn what_is_lost_doubled_swapped_or_truncated_is_detected() {
        let lines = text(9);
        for at in 0..9 {
            let mut lost = lines.clone();
            lost.remove(at);
            assert!(check(lost.concat().as_bytes(), SEMAPHORES, &[7]).is_err(), "lost {at}");
            let mut doubled = lines.clone();
            doubled.insert(at, lines[at].clone());
            assert!(check(doubled.concat().as_bytes(), SEMAPHORES, &[7]).is_err(), "doubled {at}");
            if at > 0 {
                let mut swapped = lines.clone();
                swapped.swap(at, at - 1);
                assert!(check(swapped.concat().as_bytes(), SEMAPHORES, &[7]).is_err(), "swapped {at}");
            }
        }
        let all = lines.concat();
        assert!(check(&all.as_bytes()[..all.len() - 1], SEMAPHORES, &[7]).is_err());
        assert!(check(&all.as_bytes()[..all.len() - 3], SEMAPHORES, &[6]).is_err());
    }
}
