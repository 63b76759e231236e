//! The figures of a report that `--fail-if` compares with limits.

use super::object_rows::ObjectRow;
use super::tables::{percent, short_duration};
use super::view::ReportView;
use crate::options::{Comparison, FailCondition, Figure, ObjectFigure, Quantity};

/// How many objects a message lists that have the same name.
const LISTED_MAX: usize = 5;

impl ReportView<'_> {
    /// What a condition says of the report, if it holds.
    ///
    /// # Errors
    /// The figure is not known.
    pub fn exceeded(&self, condition: &FailCondition) -> Result<Option<String>, String> {
        let unknown = |why: String| format!("--fail-if '{}': not known: {why}", condition.text);
        let holds = |value: Quantity| condition.comparison.holds(value, condition.limit);
        let [lives, contention, idleness] = self.thread_sums();
        let share = |time: u64| match condition.limit {
            Quantity::Percent(_) if lives == 0 => Err(unknown("no thread lived".to_owned())),
            Quantity::Percent(_) => {
                let value = Quantity::Percent(time as f64 * 100.0 / lives as f64);
                Ok(holds(value).then(|| percent(time, lives)))
            }
            _ => Ok(holds(Quantity::Duration(time)).then(|| short_duration(time))),
        };
        let count = |number: u64| holds(Quantity::Count(number)).then(|| number.to_string());
        // A number that may be larger: more than that is certain, less is not.
        let at_least = |number: usize, doubt: Option<String>| {
            let is_larger = matches!(condition.comparison, Comparison::More | Comparison::AtLeast);
            let found = count(number as u64);
            match doubt.filter(|_| found.is_some() != is_larger) {
                Some(doubt) => Err(unknown(format!("it is at least {number}; {doubt}"))),
                None => Ok(found),
            }
        };
        let found = match &condition.figure {
            Figure::Contention => share(contention)?,
            Figure::Idleness if self.analysis.selection.only_contention => {
                return Err(unknown("--only-contention leaves idleness out".to_owned()));
            }
            Figure::Idleness => share(idleness)?,
            Figure::Deadlocks => at_least(self.graph.deadlocks.len(), self.undecided_deadlocks())?,
            Figure::Stuck => at_least(self.graph.stuck.len(), self.undecided_stuck())?,
            Figure::Cycles => match self.cycles() {
                Some(cycles) => at_least(cycles.len(), self.unsearched_cycles().or_else(|| self.missing_calls()))?,
                None => return Err(unknown("the order of locks is not recorded".to_owned())),
            },
            Figure::Misuse => at_least(self.misuse().len(), self.calls_left_out().or_else(|| self.missing_calls()))?,
            Figure::Lost => {
                let lost: u64 = self.analysis.processes.iter().map(|process| process.lost).sum();
                at_least(lost as usize, self.unread_records())?
            }
            Figure::Regression => {
                let Some(comparison) = &self.comparison else {
                    return Err(unknown("it is that of --against OLD".to_owned()));
                };
                let Some(value) = comparison.regression() else {
                    return Err(unknown("one of the traces has no records".to_owned()));
                };
                holds(Quantity::Percent(value)).then(|| format!("{value:.1} %"))
            }
            Figure::OfObject(figure, name) => {
                let rows = self.rows_named(name);
                if rows.is_empty() {
                    return Err(unknown(format!("no object is named '{name}' (see --by object)")));
                }
                let mut found = None;
                for row in rows {
                    let Some(value) = self.row_figure(&row, *figure) else {
                        return Err(unknown(format!("the holds of {} are not recorded", row.label(self))));
                    };
                    if found.is_none() && holds(value) {
                        let value = match value {
                            Quantity::Count(number) => number.to_string(),
                            Quantity::Duration(time) => short_duration(time),
                            Quantity::Percent(share) => format!("{share} %"),
                        };
                        found = Some(format!("{value} ({})", row.label(self)));
                    }
                }
                found
            }
        };
        Ok(found.map(|value| format!("fails, since {} holds: it is {value}", condition.text)))
    }

    /// The address of the object that has a name.
    ///
    /// # Errors
    /// No object has it, or objects at several addresses have.
    pub fn address_of(&self, name: &str) -> Result<u64, String> {
        let mut objects: Vec<u32> = self.objects.iter().copied().filter(|index| self.is_named(*index, name)).collect();
        objects.sort_by_key(|index| self.object(*index).address);
        objects.dedup_by_key(|index| self.object(*index).address);
        match objects[..] {
            [] => Err("no object is named so (see --by object)".to_owned()),
            [object] => Ok(self.object(object).address),
            [..] => {
                let listed: Vec<String> =
                    objects.iter().take(LISTED_MAX).map(|index| self.object_name(*index)).collect();
                let more = if objects.len() > LISTED_MAX { ", …" } else { "" };
                Err(format!("{} objects have this name: use one of {}{more}", objects.len(), listed.join(", ")))
            }
        }
    }

    /// Whether an object has a name: that in the source, its address, or both as tables show them.
    fn is_named(&self, index: u32, name: &str) -> bool {
        self.source_name(index) == Some(name)
            || self.object_name(index) == name
            || self.object_label(index) == name
            || format!("{:#x}", self.object(index).address) == name
    }

    /// The objects that have a name. A name that lives of an object have in common, or an address, stands for all of them.
    fn rows_named(&self, name: &str) -> Vec<ObjectRow> {
        let mut named = Vec::new();
        for row in self.rows_of_lives() {
            let first = row.first();
            let address = format!("{:#x}", self.object(first).address);
            if self.name_of_lives(first) == Some(name) || address == name || row.label(self) == name {
                named.push(row);
            } else {
                let lives = row.objects.into_iter().filter(|index| self.is_named(*index, name));
                named.extend(lives.map(|index| ObjectRow { objects: vec![index] }));
            }
        }
        named
    }

    /// A figure of a row; `None` if it is not known. Without a wait, times waited are 0.
    fn row_figure(&self, row: &ObjectRow, figure: ObjectFigure) -> Option<Quantity> {
        let figures = row.figures(self);
        let wait = figures.wait.summary().unwrap_or_default();
        let has_holds = || row.objects.iter().all(|index| self.has_holds(self.object(*index)));
        let time = match figure {
            ObjectFigure::Waits => return Some(Quantity::Count(figures.wait.count())),
            ObjectFigure::Held if !has_holds() => return None,
            ObjectFigure::Held => figures.hold.sum(),
            ObjectFigure::Waited => figures.wait.sum(),
            ObjectFigure::Mean => wait.mean,
            ObjectFigure::P50 => wait.p50,
            ObjectFigure::P90 => wait.p90,
            ObjectFigure::P99 => wait.p99,
            ObjectFigure::Max => wait.max,
        };
        Some(Quantity::Duration(time))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample_view::{INFO, SampleView, WAITS};
    use super::*;
    use crate::report::contention::NumericRecord;

    #[test]
    fn an_object_has_an_address_unless_its_name_is_that_of_others() {
        let mut sample = SampleView::new(WAITS, INFO);
        let name = "mutex first used in a b+0xa00";
        for object in ["0x10", "1:0x10#1", name, "mutex first used in a b+0xa00 0x10"] {
            assert_eq!(sample.view().address_of(object), Ok(16), "{object}");
        }
        assert!(sample.view().address_of("queue").unwrap_err().contains("--by object"));
        // Another process that runs the same program.
        sample.recorded.insert(2, sample.recorded[&1].clone());
        let record = b"1795174740:000000095:0000009:0000002:0x000000000009:02:03:0:0x20:0:0:0:0x1500\n";
        sample.analysis.add(&NumericRecord::parse(record).unwrap());
        assert_eq!(
            sample.view().address_of(name).unwrap_err(),
            "2 objects have this name: use one of 1:0x10#1, 2:0x20#1"
        );
        assert_eq!(sample.view().address_of("2:0x20#1"), Ok(32));
    }

    #[test]
    fn a_name_stands_for_all_lives_of_an_object() {
        let life = |life: u64| {
            format!(
                "{0}01:1:02:01:0:0x10:0:0:0:0x1700\n{0}10:1:02:02:1:0x10:0:0:0:0x1500\n{0}11:1:02:02:2:0:0:0:0:0\n\
                 {0}20:2:02:02:1:0x10:0:0:0:0x1600\n{0}60:1:02:04:0:0x10:0:1:0:0\n{0}{1}:2:02:02:2:0:1:0:0:0\n\
                 {0}90:2:02:04:0:0x10:0:0:0:0\n{0}95:1:02:05:0:0x10:0:0:0:0x1800\n",
                life,
                60 + 10 * life
            )
        };
        let sample = SampleView::new(&(life(1) + &life(2)), INFO);
        let view = sample.view();
        let result = |text: &str| view.exceeded(&FailCondition::parse(text).unwrap()).unwrap();
        let row = "(mutex of a b+0xc00 0x10, 2 lives)";
        for text in ["waits(mutex of a b+0xc00) > 1", "max(mutex of a b+0xc00) > 50ns", "waited(0x10) >= 110ns"] {
            assert!(result(text).is_some_and(|message| message.contains(row)), "{text}: {:?}", result(text));
        }
        // One of them.
        assert_eq!(result("max(1:0x10#1) > 50ns"), None);
        assert!(
            result("max(mutex of a b+0xc00 #2) > 50ns")
                .is_some_and(|message| message.contains("(mutex of a b+0xc00 #2"))
        );
    }

    #[test]
    fn figures_are_compared_or_unknown() {
        let sample = SampleView::new(WAITS, INFO);
        let view = sample.view();
        let result = |text: &str| view.exceeded(&FailCondition::parse(text).unwrap());
        for (text, expected) in [
            ("contention > 60ns", None),
            ("contention >= 60ns", Some("60 ns")),
            ("contention > 1%", Some(" %")),
            ("deadlocks > 0", None),
            ("cycles > 0", None),
            ("misuse <= 0", Some("it is 0")),
            ("deadlocks < 1", Some("it is 0")),
            ("waits(0x10) > 1", Some("it is 2 (mutex ")),
            ("max(1:0x10#1) > 29ns", Some("it is 30 ns")),
            ("held(0x10) > 1s", None),
        ] {
            let result = result(text).unwrap();
            let is_expected = match (&result, expected) {
                (Some(message), Some(expected)) => message.contains(expected),
                (result, expected) => result.is_none() && expected.is_none(),
            };
            assert!(is_expected, "{text}: {result:?}");
        }
        assert!(result("regression > 1%").unwrap_err().contains("--against OLD"));
        assert!(result("p99(queue) > 1s").unwrap_err().contains("no object is named 'queue'"));
    }

    /// What was left out can only make the number of possible deadlocks larger.
    #[test]
    fn a_number_that_may_be_larger_is_known_only_if_that_changes_nothing() {
        let mut sample = SampleView::new(WAITS, INFO);
        sample.analysis.order.as_mut().unwrap().left_out = 7;
        let result = |sample: &SampleView, text: &str| sample.view().exceeded(&FailCondition::parse(text).unwrap());
        let message = "it is at least 0; 7 acquisitions inside other locks and 0 groups of locks were left out";
        assert_eq!(result(&sample, "cycles > 0"), Err(format!("--fail-if 'cycles > 0': not known: {message}")));
        assert!(result(&sample, "cycles < 1").is_err());
        assert!(result(&sample, "cycles >= 0").unwrap().is_some());
        assert_eq!(result(&sample, "cycles < 0"), Ok(None));
        sample.analysis.order.as_mut().unwrap().left_out = 0;
        assert_eq!(result(&sample, "cycles > 0"), Ok(None));
        sample.analysis.cycles_left_out = 1;
        assert!(result(&sample, "cycles > 0").is_err());
        // A circle of two threads, of which one may have left its wait.
        let lines = "10:1:02:02:1:0x10:0:0:0:0\n10:1:02:02:2:0:0:0:0:0\n11:1:02:02:1:0x10:0:0:0:0\n";
        assert!(result(&SampleView::new(lines, INFO), "deadlocks > 0").unwrap().is_some());
        let sample = SampleView::new(&(lines.to_owned() + "12:1:04:04:0:0x70:0:0:0:0\n"), INFO);
        for condition in ["deadlocks > 0", "stuck > 0"] {
            assert!(result(&sample, condition).unwrap_err().contains("in 1 circle of waits a thread may have left"));
        }
    }
}
