//! Which of the merged records are wanted.
//!
//! `--since` and `--until` are a matter of which slices are merged at all; [`Filter`] is asked of each merged record, in many
//! threads, and [`Few`] counts what comes out, in order.

mod few;

use spec::EventSet;

use crate::args::Selection;
use crate::read::columns;
pub use few::Few;

/// What `-e`, `-p` and `-l` ask for. All must agree; one that was not given agrees with everything.
#[derive(Debug)]
pub struct Filter {
    events: Option<EventTable>,
    pids: Vec<u32>,
    lwps: Vec<u32>,
}

impl Filter {
    /// Lists that are empty ask for nothing in particular.
    pub fn new(selection: Selection) -> Filter {
        let Selection { events, pids, lwps, .. } = selection;
        Filter { events: events.map(EventTable::new), pids, lwps }
    }

    /// Whether everything is wanted.
    pub fn is_idle(&self) -> bool {
        self.events.is_none() && self.pids.is_empty() && self.lwps.is_empty()
    }

    /// Whether the record `line` is wanted.
    pub fn wants(&self, line: &[u8]) -> bool {
        (self.pids.is_empty() || self.pids.contains(&columns::pid(line)))
            && (self.lwps.is_empty() || self.lwps.contains(&columns::lwpid(line)))
            && self.events.as_ref().is_none_or(|events| events.contains(line))
    }
}

/// An [`EventSet`] with an answer for each pair of two-digit numbers.
#[derive(Debug)]
struct EventTable(Box<[bool]>);

impl EventTable {
    fn new(set: EventSet) -> EventTable {
        EventTable((0..100 * 100).map(|pair| set.contains_numbers((pair / 100) as u8, (pair % 100) as u8)).collect())
    }

    fn contains(&self, line: &[u8]) -> bool {
        let (category, number, _) = columns::event(line);
        self.0.get(usize::from(category) * 100 + usize::from(number)).is_none_or(|&wanted| wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 4] = [
        "1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0\n",
        "1795174740:544763329:0019956:0019953:0x7fc5de3f86c0:03:04:1:0x559469ed90a0:0:0:0:0\n",
        "1795174740:544763329:0000007:0000007:0x7fc5de3f86c0:12:05:0:0:0:0:0:0\n",
        "1795174740:544763329:0000007:0000007:0x7fc5de3f86c0:00:01:0:5:28:0:0:0\n",
    ];

    fn wanted(events: Option<&str>, pids: &[u32], lwps: &[u32]) -> Vec<usize> {
        let events = events.map(|list| EventSet::parse(list.as_bytes(), &mut |_| panic!("unknown name")));
        let filter = Filter::new(Selection { events, pids: pids.into(), lwps: lwps.into(), ..Selection::default() });
        (0..LINES.len()).filter(|&line| filter.wants(LINES[line].as_bytes())).collect()
    }

    #[test]
    fn each_filter_and_all_together() {
        assert_eq!(wanted(None, &[], &[]), [0, 1, 2, 3]);
        assert_eq!(wanted(None, &[19953], &[]), [0, 1]);
        assert_eq!(wanted(None, &[19953, 7], &[19956, 7]), [1, 2, 3]);
        assert_eq!(wanted(Some("mutex_lock"), &[], &[]), [0, 3], "losses always show");
        assert_eq!(wanted(Some("-cond"), &[], &[]), [0, 2, 3]);
        assert_eq!(wanted(Some("user"), &[7], &[]), [2, 3]);
        assert_eq!(wanted(Some(""), &[19953], &[]), [0usize; 0]);
    }
}
