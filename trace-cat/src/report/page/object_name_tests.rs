//! Names of objects, as the page has them.

use super::sample_view::{INFO, SampleView};

#[test]
fn objects_are_named_by_where_they_were_initialised_or_first_used() {
    let lines = "\
        1:1:02:01:0:0x10:0:0:0:0x1500\n2:1:02:01:0:0x20:0:0:0:0x1500\n\
        3:1:02:02:1:0x30:0:0:0:0x1600\n4:1:02:02:2:0:0:0:0:0\n\
        5:1:04:01:0:0x40:0:1:0:0\n6:1:04:02:1:0x40:1:0:0:0x1700\n7:1:04:02:2:0:0:0:0:0\n\
        8:1:02:04:0:0x50:0:0:0:0\n";
    let sample = SampleView::new(lines, INFO);
    let view = sample.view();
    let names: Vec<Option<&str>> = (0..5).map(|index| view.source_name(index)).collect();
    let expected = [
        Some("mutex of a b+0xa00"),
        Some("mutex of a b+0xa00 #2"),
        Some("mutex first used in a b+0xb00"),
        // The record of its initialisation has no site.
        Some("sema first used in a b+0xc00"),
        None,
    ];
    assert_eq!(names, expected);
    assert_eq!(view.object_label(3), "sema first used in a b+0xc00 0x40");
    assert_eq!(view.object_label(4), "mutex 1:0x50#1");
}

#[test]
fn the_names_that_the_program_gives_come_first() {
    let info = format!("{INFO}name 0x77 queue\\x20lock\nname 0x78 log\n");
    let sample = SampleView::new(
        "1:1:12:93:0:0x77:0x10:0:0:0\n2:1:02:02:1:0x10:0:0:0:0x1500\n3:1:02:02:2:0:0:0:0:0\n\
         4:1:02:02:1:0x20:0:0:0:0x1600\n5:1:02:02:2:0:0:0:0:0\n6:1:12:93:0:0x78:0x20:0:0:0\n\
         7:1:02:04:0:0x10:0:0:0:0\n8:1:02:05:0:0x10:0:0:0:0\n9:1:02:02:1:0x10:0:0:0:0x1500\n\
         9:1:12:93:0:0x79:0x30:0:0:0\n9:1:04:01:0:0x30:0:1:0:0\n",
        &info,
    );
    let view = sample.view();
    let names: Vec<Option<&str>> = (0..4).map(|index| view.source_name(index)).collect();
    // Another object at the address of one that was destroyed has no name. The text of 0x79 is not known.
    assert_eq!(names, [Some("queue lock"), Some("log"), Some("mutex first used in a b+0xa00"), None]);
}
