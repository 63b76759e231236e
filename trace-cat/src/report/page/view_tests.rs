//! What a view shows of an analysis.

use super::sample_view::{INFO, SampleView, WAITS};
use super::view::ReportView;
use crate::report::contention::NumericRecord;
use crate::report::process_info::ProcessInfo;

#[test]
fn sites_of_other_processes_are_left_out() {
    let mut sample = SampleView::new(WAITS, INFO);
    sample.recorded.insert(2, sample.recorded[&1].clone());
    let record = b"1795174740:000000095:0000009:0000002:0x000000000009:02:03:0:0x20:0:0:0:0x1700\n";
    sample.analysis.add(&NumericRecord::parse(record).unwrap());
    let places = |view: &ReportView| view.sites().into_iter().map(|row| row.place).collect::<Vec<String>>();
    assert_eq!(places(&sample.view()), ["a b+0xb00", "a b+0xa00", "a b+0xc00"]);
    sample.analysis.selection.pids = vec![1];
    assert_eq!(places(&sample.view()), ["a b+0xb00", "a b+0xa00"]);
}

#[test]
fn misuse_at_one_place_is_one_entry() {
    let unlock = |time: u32, error: u32, address: &str| format!("{time}:1:02:04:0:0x10:{error}:0:0:{address}\n");
    let with_stack = "20:1:00:03:1:0x1500:0x1600:0:0:0\n".to_owned() + &unlock(20, 1, "0x1500");
    let lines = unlock(10, 1, "0x1500") + &with_stack + &unlock(30, 22, "0x1500") + &unlock(40, 1, "0x1600");
    let sample = SampleView::new(&(lines + &unlock(50, 1, "0x1500") + &unlock(60, 1, "0x1600")), INFO);
    let view = sample.view();
    let rows: Vec<_> = view.misuse().iter().map(|(row, _)| (row.count, row.time % 100, view.place(row.site))).collect();
    let [first, second] = ["a b+0xa00", "a b+0xb00"].map(|place| Some(place.to_owned()));
    assert_eq!(rows, [(3, 10, first.clone()), (2, 40, second), (1, 30, first)]);
}

/// Of a process that has executed another program every record may have been lost that shows it.
#[test]
fn the_last_program_with_records_is_the_last_of_its_process() {
    let info = ["first", "second"].map(|name| format!("format 1\npid 1\nexe /bin/{name}\ncmdline {name}\n")).concat();
    let programs = |lines: &str| {
        let mut sample = SampleView::new(lines, &info);
        sample.known.insert(1, ProcessInfo { command: "second".to_owned(), ..ProcessInfo::default() });
        let document = sample.document();
        let entries = document["processes"].as_array().unwrap().iter();
        entries.map(|entry| format!("{} {}", entry["exe"], entry["command"])).collect::<Vec<_>>()
    };
    let [first, second] = [r#""/bin/first" "first""#, r#""/bin/second" "second""#];
    let (before, exec, after) = ("10:1:02:04:0:0x10:0:0:0:0\n", "20:1:11:03:1:0:0:0:0:0\n", "30:1:11:02:0:7:0:0:0:0\n");
    assert_eq!(programs(before), [second]);
    assert_eq!(programs(&[before, exec, after].concat()), [first, second]);
}
