//! The critical path: as entries of the document, and as a paragraph of the page.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde_json::{Value, json};

use super::object_rows::{ListedObjects, ObjectRow};
use super::tables::{SHARE_MIN, percent, thread_label};
use super::view::ReportView;
use crate::report::contention::ObjectKind;
use crate::report::critical_path::{CriticalPath, HoldShare};
use crate::support::counted::counted;
use crate::support::duration::duration_text;

/// How many processes, objects, places and threads the paragraph names.
const PROCESSES_MAX: usize = 3;
const OBJECTS_MAX: usize = 5;
const PLACES_MAX: usize = 2;
/// The most sites of an object whose names are looked up for that.
const NAMED_SITES_MAX: usize = 64;
const THREADS_MAX: usize = 4;

/// How much of a path was spent holding an object.
struct ObjectOnPath {
    object: u32,
    time: u64,
    holds: u64,
    /// By site.
    sites: Vec<HoldShare>,
}

impl ObjectOnPath {
    fn add(&mut self, share: HoldShare) {
        (self.time, self.holds) = (self.time + share.time, self.holds + share.holds);
        match self.sites.iter_mut().find(|known| known.site == share.site) {
            Some(known) => (known.time, known.holds) = (known.time + share.time, known.holds + share.holds),
            None => self.sites.push(share),
        }
    }
}

/// The paths of the selected processes, the longest first.
pub fn selected_paths<'a>(view: &ReportView<'a>) -> Vec<&'a CriticalPath> {
    let is_wanted = |path: &&CriticalPath| view.analysis.selection.wants_process(view.pid(path.process));
    let mut paths: Vec<&CriticalPath> = view.analysis.critical_paths.iter().filter(is_wanted).collect();
    paths.sort_by_key(|path| (Reverse(path.length), path.process));
    paths
}

/// How much of a path was spent holding an object that was acquired at a place.
struct PlaceOnPath {
    place: Option<String>,
    time: u64,
    holds: u64,
}

/// The shares of at most `max` sites by the place in the program, the longest first. Several sites can be at one place, such as the
/// same call with a stack, because it waited, and without.
fn places_on(view: &ReportView, sites: &[HoldShare], max: usize) -> Vec<PlaceOnPath> {
    let mut places: Vec<PlaceOnPath> = Vec::new();
    for share in sites.iter().take(max) {
        let place = view.place(share.site);
        match places.iter_mut().find(|known| known.place == place) {
            Some(known) => (known.time, known.holds) = (known.time + share.time, known.holds + share.holds),
            None => places.push(PlaceOnPath { place, time: share.time, holds: share.holds }),
        }
    }
    places.sort_by_key(|place| Reverse(place.time));
    places
}

/// The objects of a path, the longest time first; `None` if the records do not show what threads hold.
fn objects_on(view: &ReportView, listed: &ListedObjects, path: &CriticalPath) -> Option<Vec<ObjectOnPath>> {
    let knowledge = view.analysis.processes[path.process as usize].knowledge;
    if knowledge.only_blocked || knowledge.is_partial {
        return None;
    }
    let mut objects: HashMap<u32, ObjectOnPath> = HashMap::new();
    for hold in &path.holds {
        let number = listed.listed(hold.object);
        let new = ObjectOnPath { object: number, time: 0, holds: 0, sites: Vec::new() };
        objects.entry(number).or_insert(new).add(*hold);
    }
    let mut objects: Vec<ObjectOnPath> = objects.into_values().collect();
    objects.sort_by_key(|object| (Reverse(object.time), object.object));
    Some(objects)
}

/// Objects of a path, of which those that were at one address are one row; the longest time first.
fn sums_of_lives(view: &ReportView, objects: Vec<ObjectOnPath>) -> Vec<(ObjectRow, ObjectOnPath)> {
    let rows = view.lives(objects.iter().map(|object| object.object));
    let mut objects: HashMap<u32, ObjectOnPath> = objects.into_iter().map(|object| (object.object, object)).collect();
    let sum = |row: &ObjectRow| {
        let mut lives = row.objects.iter().filter_map(|object| objects.remove(object));
        let mut sum = lives.next()?;
        for life in lives {
            life.sites.into_iter().for_each(|share| sum.add(share));
        }
        sum.sites.sort_by_key(|share| (Reverse(share.time), share.site));
        Some(sum)
    };
    let sums: Vec<Option<ObjectOnPath>> = rows.iter().map(sum).collect();
    let mut sums: Vec<(ObjectRow, ObjectOnPath)> =
        rows.into_iter().zip(sums).filter_map(|(row, sum)| Some((row, sum?))).collect();
    sums.sort_by_key(|(_, sum)| (Reverse(sum.time), sum.object));
    sums
}

/// A path as an entry of the document, with lists of at most `list_max` entries.
pub fn path_entry(view: &ReportView, listed: &ListedObjects, path: &CriticalPath, list_max: usize) -> Value {
    let share = |time: u64| if path.length == 0 { 0.0 } else { time as f64 / path.length as f64 };
    let site = |at: PlaceOnPath| json!({ "site": at.place, "time": at.time, "holds": at.holds });
    let object = |object: &ObjectOnPath| {
        json!({
            "object": listed.name(view, object.object),
            "time": object.time,
            "holds": object.holds,
            "share": share(object.time),
            "sites": places_on(view, &object.sites, list_max).into_iter().map(site).collect::<Vec<_>>(),
        })
    };
    let objects = objects_on(view, listed, path);
    let has_holds = objects.is_some();
    let shares = path.shares;
    let thread = |(thread, time): &(u32, u64)| json!({ "thread": view.thread(*thread).lwp, "time": time });
    json!({
        "pid": view.pid(path.process),
        "image": view.analysis.processes[path.process as usize].image,
        "length": path.length,
        "holding": has_holds.then_some(shares.holding),
        "other": has_holds.then_some(shares.other),
        "latency": shares.latency,
        "unknown": shares.unknown,
        "timed_out": shares.timed_out,
        "other_processes": shares.by_others,
        "by_object": objects.map(|objects| objects.iter().take(list_max).map(object).collect::<Vec<_>>()),
        "by_thread": path.threads.iter().take(list_max).map(thread).collect::<Vec<_>>(),
    })
}

/// Appends what the lengths of the longest paths depend on.
pub fn append_paragraph(view: &ReportView, top: usize, text: &mut String) {
    let paths = selected_paths(view);
    let has_several_threads = |path: &&&CriticalPath| path.threads.len() > 1 || !path.holds.is_empty();
    for path in paths.iter().filter(has_several_threads).take(PROCESSES_MAX.min(top)) {
        append_path(view, path, top, text);
    }
}

/// Whether a process waits for locks of which only releases are recorded, and these only while others wait.
fn has_futex_locks(view: &ReportView, process: u32) -> bool {
    let mut objects = view.analysis.objects.numbers().map(|number| view.object(number));
    objects.any(|object| object.process == process && object.futex_lock().is_some())
}

fn append_path(view: &ReportView, path: &CriticalPath, top: usize, text: &mut String) {
    let share = |time: u64| percent(time, path.length);
    let (pid, length) = (view.pid(path.process), duration_text(path.length));
    *text += &format!("\nCritical path of process {pid}: what its {length} depend on\n");
    let shares = path.shares;
    let objects = objects_on(view, &ListedObjects::default(), path).map(|objects| sums_of_lives(view, objects));
    let is_shown = |object: &ObjectOnPath| object.time * SHARE_MIN > path.length;
    let shown = objects.iter().flatten().filter(|(_, object)| is_shown(object));
    for (row, object) in shown.take(OBJECTS_MAX.min(top)) {
        *text += &format!("  {:>7}  holding {}\n", share(object.time), row.label(view));
        let times = counted(object.holds, "time", "times");
        // How long such a lock was held while nobody waited is not known.
        let is_partial = row.objects.iter().any(|index| view.object(*index).kind == ObjectKind::Futex);
        let gain = match is_partial {
            true => " while others waited; what shorter holds can gain is not known".to_owned(),
            false => format!(": shorter holds can gain at most {}", share(object.time)),
        };
        *text += &format!("           {times}{gain}\n");
        for PlaceOnPath { place, time, .. } in
            places_on(view, &object.sites, NAMED_SITES_MAX).into_iter().take(PLACES_MAX)
        {
            if let Some(place) = place {
                *text += &format!("           {:>7} from {place}\n", share(time));
            }
        }
    }
    if objects.is_some() {
        let latency = share(shares.latency);
        *text +=
            &format!("  {:>7}  neither holding nor waiting; {latency} from wake-ups to returns\n", share(shares.other));
        if has_futex_locks(view, path.process) {
            *text += "           locks that wait by futex(2) are known to be held while others wait for them\n";
        }
    }
    if objects.is_none() {
        let knowledge = view.analysis.processes[path.process as usize].knowledge;
        let variable = if knowledge.only_blocked { "THR_TRACE_LEVEL" } else { "THR_TRACE_EVENTS" };
        *text += &format!("           which locks its threads held is not recorded ({variable})\n");
    }
    if shares.unknown > 0 {
        *text += &format!("  {:>7}  unknown: no thread of it is known to have ended the wait", share(shares.unknown));
        for (time, what) in [(shares.timed_out, "timed out"), (shares.by_others, "ended by other processes")] {
            *text += &if time > 0 { format!("; {} {what}", share(time)) } else { String::new() };
        }
        text.push('\n');
    }
    let threads = path.threads.iter().take(THREADS_MAX);
    let threads: Vec<String> =
        threads.map(|(thread, time)| format!("{} {}", thread_label(view, *thread), share(*time))).collect();
    let more = path.threads.len().saturating_sub(THREADS_MAX);
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    *text += &format!("           threads: {}{more}\n", threads.join(", "));
}

#[cfg(test)]
mod tests {
    use spec::futex_locks::FUTEX_LOCKS;

    use super::super::sample_view::{INFO, SampleView, WAITS};
    use super::*;

    /// The sample's calls at `0x1500` and `0x1600` are sites 1 and 2. A further site without a place stands for itself.
    #[test]
    fn sites_at_one_place_are_one() {
        let sample = SampleView::new(WAITS, INFO);
        let at = |site, time| HoldShare { object: 0, site, time, holds: 1 };
        let named = |shares: &[HoldShare], max| -> Vec<(Option<String>, u64, u64)> {
            let places = places_on(&sample.view(), shares, max).into_iter();
            places.map(|at| (at.place, at.time, at.holds)).collect()
        };
        let [first, second] = ["a b+0xa00", "a b+0xb00"].map(|place| Some(place.to_owned()));
        let shares = [at(2, 9), at(1, 7), at(1, 6), at(0, 2)];
        assert_eq!(named(&shares, 64), [(first.clone(), 13, 2), (second.clone(), 9, 1), (None, 2, 1)]);
        assert_eq!(named(&shares, 2), [(second, 9, 1), (first, 7, 1)]);
    }

    #[test]
    fn locks_by_futex_are_known_while_others_wait() {
        let lines = "10:1:10:01:1:0x40:137:2:0:0x1500\n20:2:10:02:0:0x40:129:1:1:0x1600\n30:1:10:01:2:0:0:0:0:0\n\
                     90:1:02:05:0:0x10:0:0:0:0\n";
        let mut sample = SampleView::new(lines, INFO);
        let text = |sample: &mut SampleView| {
            let mut text = String::new();
            sample.analysis.find_critical_paths().unwrap();
            append_paragraph(&sample.view(), 5, &mut text);
            text
        };
        let note = "locks that wait by futex(2) are known to be held while others wait for them";
        let plain = text(&mut sample);
        assert!(plain.contains("neither holding") && !plain.contains(note), "{plain}");
        let mut sample = SampleView::new(lines, INFO);
        let word = sample.analysis.objects.numbers().next().unwrap();
        sample.analysis.objects[word as usize].futex_lock = Some(Some(&FUTEX_LOCKS[0]));
        let known = text(&mut sample);
        assert!(known.contains(note), "{known}");
    }

    /// Of a lock by futex(2) the holds are known only while others wait.
    #[test]
    fn what_shorter_holds_can_gain_is_known_if_all_holds_are() {
        let page = |object: usize| {
            let mut sample = SampleView::new(&(WAITS.to_owned() + "95:2:10:01:1:0x40:137:2:0:0x1500\n"), INFO);
            sample.analysis.find_critical_paths().unwrap();
            let object = sample.analysis.objects.numbers().nth(object).unwrap();
            let hold = HoldShare { object, site: 0, time: 50, holds: 3 };
            sample.analysis.critical_paths[0].holds = vec![hold];
            let mut text = String::new();
            append_paragraph(&sample.view(), 5, &mut text);
            text
        };
        assert!(page(0).contains("3 times: shorter holds can gain at most "), "{}", page(0));
        let futex = page(1);
        assert!(futex.contains("3 times while others waited; what shorter holds can gain is not known\n"), "{futex}");
        assert!(!futex.contains("at most"), "{futex}");
    }
}
