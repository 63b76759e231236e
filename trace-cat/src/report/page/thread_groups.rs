//! One label for many threads whose names differ in numbers alone, such as those of a pool.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::view::ReportView;

/// Up to so many threads of a program have labels of their own.
const OWN_LABELS_MAX: usize = 16;

/// The labels of all threads.
pub struct ThreadGroups {
    labels: Vec<String>,
}

impl ThreadGroups {
    pub fn new(view: &ReportView) -> ThreadGroups {
        let threads = 0..view.analysis.threads.len() as u32;
        let mut labels: Vec<String> = threads.map(|index| view.group_label(index)).collect();
        let mut groups: HashMap<(u32, String), Vec<usize>, RandomState> = HashMap::default();
        for (index, label) in labels.iter().enumerate() {
            let process = view.thread(index as u32).process;
            groups.entry((process, without_numbers(label))).or_default().push(index);
        }
        for ((_, label), members) in groups.into_iter().filter(|(_, members)| members.len() > OWN_LABELS_MAX) {
            if members.iter().any(|member| labels[*member] != labels[members[0]]) {
                members.into_iter().for_each(|member| labels[member].clone_from(&label));
            }
        }
        ThreadGroups { labels }
    }

    /// The name of a thread, in which numbers are `*` if many are called like it.
    pub fn label(&self, thread: u32) -> &str {
        &self.labels[thread as usize]
    }
}

/// A name with `*` in place of each number.
fn without_numbers(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for character in name.chars() {
        match character.is_ascii_digit() {
            true if text.ends_with('*') => {}
            true => text.push('*'),
            false => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::page::sample_view::{INFO, SampleView};

    #[test]
    fn more_than_a_few_threads_of_one_kind_have_one_label() {
        let named = |count: u32| -> Vec<String> {
            // `w00` and so on; the first thread is the main one.
            let record = |number: u32| {
                let name: String = format!("w{number:02}").bytes().map(|byte| format!("{byte:02x}")).collect();
                format!("5:{lwp}:01:39:0:0x{lwp}:0x{name:0<16}:0:0:0\n", lwp = number + 2)
            };
            let lines: String = (0..count).map(record).collect();
            let sample = SampleView::new(&(lines + "6:1:02:01:0:0x10:0:0:0:0\n"), INFO);
            let view = sample.view();
            let groups = ThreadGroups::new(&view);
            (0..view.analysis.threads.len() as u32).map(|thread| groups.label(thread).to_owned()).collect()
        };
        assert!(named(16).contains(&"w07".to_owned()) && !named(16).contains(&"w*".to_owned()));
        let labels = named(17);
        assert_eq!(labels.iter().filter(|label| *label == "w*").count(), 17, "{labels:?}");
        assert!(labels.contains(&"main thread".to_owned()));
    }

    #[test]
    fn each_number_is_one_star() {
        assert_eq!(without_numbers("pool-12-thread-3b"), "pool-*-thread-*b");
        assert_eq!(without_numbers("worker"), "worker");
    }
}
