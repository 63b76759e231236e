//! Sums of threads, added up by the place in the program: threads that do the same work are one line of the page.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::view::{ReportView, ranked};

/// The most sites of an object that are named, since each name may have to be looked up in debug information.
const SITES_MAX: usize = 64;

/// What threads did at a place.
#[derive(Clone, Debug)]
pub struct PlaceSum {
    /// `None` where sites are not recorded; the sum is of one thread then.
    pub place: Option<String>,
    /// The thread that has most of it.
    thread: u32,
    threads: HashSet<u32>,
    pub sum: u64,
}

impl PlaceSum {
    /// The thread, or the one that has most of it and how many others there are: `work/25281 and 3 others`.
    pub fn threads(&self, view: &ReportView) -> String {
        let label = view.names().thread_label(self.thread);
        match self.threads.len() - 1 {
            0 => label,
            1 => format!("{label} and another one"),
            others => format!("{label} and {others} others"),
        }
    }
}

/// Sums by thread and site, added up by place; the largest first. Those of the sites with the least are left out if there are many.
pub fn place_sums(view: &ReportView, sums: &[((u32, u32), u64)]) -> Vec<PlaceSum> {
    let mut of_site: HashMap<u32, u64> = HashMap::new();
    for &((_, site), sum) in sums {
        *of_site.entry(site).or_default() += sum;
    }
    let mut sites: Vec<(u32, u64)> = of_site.into_iter().collect();
    sites.sort_unstable_by_key(|(site, sum)| (Reverse(*sum), *site));
    let places: HashMap<u32, Option<String>> =
        sites.into_iter().take(SITES_MAX).map(|(site, _)| (site, view.place(site))).collect();
    // Without a place, each thread has its own sum.
    let mut of_place: HashMap<Result<&str, u32>, PlaceSum> = HashMap::new();
    let mut by_thread: HashMap<(Result<&str, u32>, u32), u64> = HashMap::new();
    for &((thread, site), sum) in sums {
        let Some(place) = places.get(&site) else { continue };
        let key = place.as_deref().ok_or(thread);
        let new = || PlaceSum { place: place.clone(), thread, threads: HashSet::new(), sum: 0 };
        let total = of_place.entry(key).or_insert_with(new);
        total.threads.insert(thread);
        total.sum += sum;
        *by_thread.entry((key, thread)).or_default() += sum;
    }
    for ((key, thread), _) in ranked(&by_thread.into_iter().collect::<Vec<_>>()).into_iter().rev() {
        of_place.entry(key).and_modify(|total| total.thread = thread);
    }
    let mut sums: Vec<PlaceSum> = of_place.into_values().collect();
    sums.sort_by(|a, b| (b.sum, &a.place, a.thread).cmp(&(a.sum, &b.place, b.thread)));
    sums
}

#[cfg(test)]
mod tests {
    use super::super::sample_view::{INFO, SampleView, WAITS};
    use super::*;

    /// The lines of the page: sums, threads and places. The sample's LWPs 1 and 2 call at `0x1500` and `0x1600`, numbers 1 and 2.
    fn lines(sums: &[((u32, u32), u64)]) -> Vec<String> {
        let sample = SampleView::new(WAITS, INFO);
        let view = sample.view();
        let line = |sum: &PlaceSum| format!("{} {} {:?}", sum.sum, sum.threads(&view), sum.place.as_deref());
        place_sums(&view, sums).iter().map(line).collect()
    }

    #[test]
    fn threads_at_one_place_are_one_line() {
        let sums = [((0, 1), 10), ((0, 2), 5), ((1, 1), 20), ((2, 1), 15), ((2, 2), 5)];
        assert_eq!(
            lines(&sums),
            [r#"45 1/2 and 2 others Some("a b+0xa00")"#, r#"10 1/1 and another one Some("a b+0xb00")"#]
        );
    }

    #[test]
    fn threads_without_places_have_lines_of_their_own() {
        assert_eq!(lines(&[((0, 0), 10), ((1, 0), 20)]), ["20 1/2 None", "10 1/1 None"]);
    }

    #[test]
    fn sites_with_little_are_not_named() {
        let sums: Vec<((u32, u32), u64)> = (1..100).map(|site| ((0, 1000 + site), site.into())).collect();
        let [line] = &lines(&sums)[..] else { panic!("{:?}", lines(&sums)) };
        assert_eq!(*line, format!("{} 1/1 None", (36..100).sum::<u64>()));
    }
}
