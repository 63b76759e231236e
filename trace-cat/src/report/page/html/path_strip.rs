//! The critical paths as strips: who was on each, and what it did.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::report::critical_path::{CriticalPath, PathActivity, PathSegment};
use crate::report::page::object_rows::ListedObjects;
use crate::report::page::path_summary::selected_paths;
use crate::report::page::view::ReportView;

/// How many paths have a strip.
pub const PATHS_MAX: usize = 3;
/// How many columns a strip has.
const COLUMNS: u64 = 1000;

/// The strips of the longest paths. A segment has its beginning and end, an LWP, and the index of the object that was held, or -1
/// for none and -2 where nobody knows.
pub fn strips(view: &ReportView, listed: &ListedObjects) -> Value {
    let begin = view.analysis.span.map_or(0, |span| span.0);
    let time = |time: u64| time.saturating_sub(begin);
    let strip = |path: &CriticalPath| {
        let mut objects: Vec<u32> = Vec::new();
        let mut object_number = |object: u32| {
            let object = listed.listed(object);
            objects.iter().position(|known| *known == object).unwrap_or_else(|| {
                objects.push(object);
                objects.len() - 1
            }) as i64
        };
        let segments = columns(path.segments()).into_iter().map(|segment| {
            let what = match segment.what {
                PathActivity::Holding(object) => object_number(object),
                PathActivity::Other => -1,
                PathActivity::Unknown => -2,
            };
            json!([time(segment.from), time(segment.until), view.thread(segment.thread).lwp, what])
        });
        let segments: Vec<Value> = segments.collect();
        let objects: Vec<String> = objects.iter().map(|object| view.object_name(*object)).collect();
        let process = &view.analysis.processes[path.process as usize];
        json!({ "pid": process.pid, "image": process.image, "segments": segments, "objects": objects })
    };
    selected_paths(view).into_iter().take(PATHS_MAX).map(strip).collect()
}

/// The segments in columns of equal time, each of which has what lasted longest in it. Equal neighbours are one segment.
fn columns(segments: &[PathSegment]) -> Vec<PathSegment> {
    let [first, .., last] = segments else { return segments.to_vec() };
    let (begin, length) = (first.from, last.until - first.from);
    let border = |column: u64| begin + (u128::from(length) * u128::from(column) / u128::from(COLUMNS)) as u64;
    let mut columns: Vec<PathSegment> = Vec::new();
    let mut from = 0;
    for column in 0..COLUMNS {
        let (start, end) = (border(column), border(column + 1));
        let mut times: HashMap<(u32, PathActivity), u64> = HashMap::new();
        while let Some(segment) = segments.get(from).filter(|segment| segment.from < end) {
            let time = segment.until.min(end) - segment.from.max(start);
            *times.entry((segment.thread, segment.what)).or_default() += time;
            if segment.until > end {
                break;
            }
            from += 1;
        }
        let longest = times.into_iter().max_by_key(|((thread, what), time)| (*time, *thread, *what));
        let Some(((thread, what), _)) = longest else { continue };
        match columns.last_mut() {
            Some(last) if (last.thread, last.what, last.until) == (thread, what, start) => last.until = end,
            _ => columns.push(PathSegment { thread, from: start, until: end, what }),
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_what_lasted_longest() {
        let segment = |thread, from, until, what| PathSegment { thread, from, until, what };
        let few = [segment(1, 5, 15, PathActivity::Other), segment(2, 15, 25, PathActivity::Holding(7))];
        assert_eq!(
            columns(&few).iter().map(|column| (column.thread, column.from, column.until)).collect::<Vec<_>>(),
            [(1, 5, 15), (2, 15, 25)]
        );
        // Thread 1 has one of ten nanoseconds, thread 2 nine; then thread 3 has as much as ten columns.
        let mut many: Vec<PathSegment> = (0..20_000)
            .map(|index| segment(1 + index % 2, index.div_ceil(2) as u64, 0, PathActivity::Unknown))
            .collect();
        let mut time = 0;
        for (index, segment) in many.iter_mut().enumerate() {
            segment.from = time;
            time += if index % 2 == 0 { 1 } else { 9 };
            segment.until = time;
        }
        many.push(segment(3, time, time + 2_000, PathActivity::Other));
        let shown: Vec<_> = columns(&many).iter().map(|column| (column.thread, column.from, column.until)).collect();
        assert_eq!(shown, [(2, 0, 99_960), (3, 99_960, 102_000)]);
    }
}
