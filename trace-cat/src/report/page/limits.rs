//! The figures of a report that `--fail-if` compares with limits.

use super::tables::{percent, short_duration};
use super::view::ReportView;
use crate::options::{FailCondition, Figure, ObjectFigure, Quantity};

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
        let found = match &condition.figure {
            Figure::Contention => share(contention)?,
            Figure::Idleness if self.analysis.selection.only_contention => {
                return Err(unknown("--only-contention leaves idleness out".to_owned()));
            }
            Figure::Idleness => share(idleness)?,
            Figure::Deadlocks => count(self.graph.deadlocks.len() as u64),
            Figure::Stuck => count(self.graph.stuck.len() as u64),
            Figure::Cycles => match self.cycles() {
                Some(cycles) => count(cycles.len() as u64),
                None => return Err(unknown("the order of locks is not recorded".to_owned())),
            },
            Figure::Misuse => count(self.misuse().len() as u64),
            Figure::Lost => count(self.analysis.processes.iter().map(|process| process.lost).sum()),
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
                let objects: Vec<u32> =
                    self.objects.iter().copied().filter(|index| self.is_named(*index, name)).collect();
                if objects.is_empty() {
                    return Err(unknown(format!("no object is named '{name}' (see --by object)")));
                }
                let mut found = None;
                for index in objects {
                    let Some(value) = self.object_figure(index, *figure) else {
                        return Err(unknown(format!("the holds of {} are not recorded", self.object_label(index))));
                    };
                    if found.is_none() && holds(value) {
                        let value = match value {
                            Quantity::Count(number) => number.to_string(),
                            Quantity::Duration(time) => short_duration(time),
                            Quantity::Percent(share) => format!("{share} %"),
                        };
                        found = Some(format!("{value} ({})", self.object_label(index)));
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

    /// A figure of an object; `None` if it is not known. Without a wait, times waited are 0.
    fn object_figure(&self, index: u32, figure: ObjectFigure) -> Option<Quantity> {
        let object = self.object(index);
        let wait = object.figures.wait.summary().unwrap_or_default();
        let time = match figure {
            ObjectFigure::Waits => return Some(Quantity::Count(object.figures.wait.count())),
            ObjectFigure::Held if !self.has_holds(object) => return None,
            ObjectFigure::Held => object.figures.hold.sum(),
            ObjectFigure::Waited => object.figures.wait.sum(),
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
}
