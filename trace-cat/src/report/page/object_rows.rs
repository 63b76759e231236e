//! The rows of the overview: objects, of which those that had one address one after the other, with the same name, are one row.
//! A program that initialises a mutex anew for each task would fill the page with lives of the same variable otherwise.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::view::{PairRow, ReportView};
use crate::report::contention::{ObjectFigures, ObjectKind};

/// Objects of a process at one address that have the same kind and name.
#[derive(Clone, Debug)]
pub struct ObjectRow {
    /// In the order of their lives.
    pub objects: Vec<u32>,
}

/// What the lives of an object have in common: process, address, kind, and name, or else site.
type LivesKey<'a> = (u32, u64, ObjectKind, Result<&'a str, u32>);

impl ReportView<'_> {
    /// The process of an object as a label has it, if there are others.
    pub fn process_suffix(&self, index: u32) -> String {
        if self.has_several_processes() {
            format!(" of {}", self.pid(self.object(index).process))
        } else {
            String::new()
        }
    }

    /// The options of commands that show an object.
    pub fn object_option(&self, index: u32) -> String {
        let object = self.object(index);
        let process =
            if self.has_several_processes() { format!("-p {} ", self.pid(object.process)) } else { String::new() };
        format!("{process}--object {:#x}", object.address)
    }
}

impl ObjectRow {
    /// The name in the source; with several lives, without the number of one.
    pub fn name<'a>(&self, view: &'a ReportView) -> Option<&'a str> {
        let first = self.first();
        if self.objects.len() > 1 { view.name_of_lives(first) } else { view.source_name(first) }
    }

    /// The figures of all lives.
    pub fn figures(&self, view: &ReportView) -> ObjectFigures {
        let mut sum = ObjectFigures::default();
        self.objects.iter().for_each(|index| sum.add(&view.object(*index).figures));
        sum
    }

    /// The first life.
    pub fn first(&self) -> u32 {
        self.objects[0]
    }

    /// Whether who held the object while others waited is asked for.
    pub fn has_blame(&self, view: &ReportView) -> bool {
        self.objects.iter().any(|index| ReportView::has_blame(view.object(*index)))
    }

    /// Kind, name and address for people, with the number of lives, and with the process if there are others.
    pub fn label(&self, view: &ReportView) -> String {
        let (first, lives) = (self.first(), self.objects.len());
        let mut label = match view.name_of_lives(first).filter(|_| lives > 1) {
            Some(name) => view.names().object_label(first, Some(name)),
            None => view.object_label(first),
        };
        label += &view.process_suffix(first);
        if lives > 1 { format!("{label}, {lives} lives") } else { label }
    }
}

/// The objects of a document: each by itself, or the lives of an object as one.
#[derive(Clone, Debug, Default)]
pub struct ListedObjects {
    pub rows: Vec<ObjectRow>,
    /// The first life of those that are not listed by themselves.
    first_lives: HashMap<u32, u32>,
}

impl ListedObjects {
    pub fn separate(view: &ReportView) -> ListedObjects {
        ListedObjects { rows: view.separate_rows(), first_lives: HashMap::new() }
    }

    pub fn joined(view: &ReportView) -> ListedObjects {
        let rows = view.rows_of_lives();
        let later = rows.iter().flat_map(|row| row.objects[1..].iter().map(|life| (*life, row.first())));
        ListedObjects { first_lives: later.collect(), rows }
    }

    /// The object that stands for another one.
    pub fn listed(&self, index: u32) -> u32 {
        self.first_lives.get(&index).copied().unwrap_or(index)
    }

    pub fn name(&self, view: &ReportView, index: u32) -> String {
        view.object_name(self.listed(index))
    }

    /// Who waited for whom, with what is listed, the longest first.
    pub fn pairs(&self, view: &ReportView) -> Vec<PairRow> {
        let pairs = view.pairs();
        if self.first_lives.is_empty() {
            return pairs;
        }
        let mut sums: HashMap<[u32; 3], PairRow> = HashMap::new();
        for pair in pairs {
            let object = self.listed(pair.object);
            let new = PairRow { object, waits: 0, waited: 0, ..pair };
            let sum = sums.entry([pair.waiter, pair.holder, object]).or_insert(new);
            (sum.waits, sum.waited) = (sum.waits + pair.waits, sum.waited + pair.waited);
        }
        let mut pairs: Vec<PairRow> = sums.into_values().collect();
        pairs.sort_by_key(PairRow::rank);
        pairs
    }
}

impl ReportView<'_> {
    /// The selected objects, each in a row of its own.
    pub fn separate_rows(&self) -> Vec<ObjectRow> {
        self.objects.iter().map(|index| ObjectRow { objects: vec![*index] }).collect()
    }

    /// The selected objects, with those at one address in a row: by contention, then by idleness.
    pub fn rows_of_lives(&self) -> Vec<ObjectRow> {
        let mut rows = self.lives(self.objects.iter().copied());
        rows.sort_by_cached_key(|row| {
            let mut sums = [0; 3];
            for figures in row.objects.iter().map(|index| &self.object(*index).figures) {
                let values = [figures.contention, figures.idleness, figures.calls];
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
            (Reverse(sums), row.first())
        });
        rows
    }

    /// Rows of objects, of which those at one address are one, in the order of the first objects.
    pub fn lives(&self, objects: impl Iterator<Item = u32>) -> Vec<ObjectRow> {
        let mut rows: Vec<ObjectRow> = Vec::new();
        let mut row_of_key: HashMap<LivesKey, usize> = HashMap::new();
        for index in objects {
            let next = rows.len();
            let row = *row_of_key.entry(self.lives_key(index)).or_insert(next);
            match rows.get_mut(row) {
                Some(row) => row.objects.push(index),
                None => rows.push(ObjectRow { objects: vec![index] }),
            }
        }
        rows.iter_mut().for_each(|row| row.objects.sort_unstable());
        rows
    }

    fn lives_key(&self, index: u32) -> LivesKey<'_> {
        let object = self.object(index);
        (object.process, object.address, object.kind, self.name_of_lives(index).ok_or(object.site))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample_view::{INFO, SampleView};
    use super::super::text::{PageOptions, append_page};
    use crate::options::ReportTable;
    use crate::report::contention::NumericRecord;

    /// LWP 1 initialises and destroys a mutex `lives` times, at `0x1700` in the program; LWP 2 waits for each.
    fn lives(lives: u64) -> String {
        (0..lives)
            .map(|life| {
                let at = |time: u64| time + life * 1000;
                format!(
                    "{}:1:02:01:0:0x10:0:0:0:0x1700\n{}:1:02:02:1:0x10:0:0:0:0x1500\n{}:1:02:02:2:0:0:0:0:0\n\
                     {}:2:02:02:1:0x10:0:0:0:0x1600\n{}:1:02:04:0:0x10:0:1:0:0\n{}:2:02:02:2:0:1:0:0:0\n\
                     {}:2:02:04:0:0x10:0:0:0:0\n{}:1:02:05:0:0x10:0:0:0:0x1800\n",
                    at(5),
                    at(10),
                    at(11),
                    at(20),
                    at(60 + life),
                    at(70 + life),
                    at(90),
                    at(95)
                )
            })
            .collect()
    }

    fn page(sample: &mut SampleView, by: Option<ReportTable>) -> String {
        let mut out = Vec::new();
        let options = PageOptions { top: 10, by, paths: "DIR".to_owned() };
        sample.analysis.find_critical_paths().unwrap();
        append_page(&sample.view(), &options, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lives_of_an_object_are_one_row_of_the_overview() {
        let mut sample = SampleView::new(&lives(3), INFO);
        let text = page(&mut sample, None);
        let row = "mutex of a b+0xc00 0x10, 3 lives         3   153 ns    51 ns    51 ns    52 ns    52 ns   207 ns\n     \
                   80.4 % held by 1/1 from a b+0xa00\n     19.6 % handoff\n";
        assert!(text.contains(row) && !text.contains("#2"), "{text}");
        assert!(text.contains("holding mutex of a b+0xc00 0x10, 3 lives\n"), "{text}");
        // The full table has each.
        let table = page(&mut sample, Some(ReportTable::Object));
        for name in ["mutex of a b+0xc00 0x10 ", "mutex of a b+0xc00 #2 0x10 ", "mutex of a b+0xc00 #3 0x10 "] {
            assert_eq!(table.matches(name).count(), 1, "{table}");
        }
    }

    #[test]
    fn a_row_has_the_process_if_there_are_others() {
        let mut sample = SampleView::new(&lives(1), INFO);
        let record = b"1795174740:000000199:0000009:0000002:0x000000000009:02:03:0:0x10:0:0:0:0x1500\n";
        sample.analysis.add(&NumericRecord::parse(record).unwrap());
        let text = page(&mut sample, None);
        assert!(text.contains("\nmutex of a b+0xc00 0x10 of 1 ") && !text.contains("lives"), "{text}");
    }
}
