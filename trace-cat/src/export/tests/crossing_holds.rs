//! Holds that cross, and which events selections leave out.

use super::*;

/// LWPs 1 and 2 hold the mutex at 0x10 while 2 and 3 wait for it; 2 holds 0x20 across the border of that hold.
const CROSSING: &str = "\
    10:1:02:02:1:0x10:0:0:0:0\n10:1:02:02:2:0:0:0:0:0\n\
    20:2:02:02:1:0x10:0:0:0:0\n30:3:02:02:1:0x10:0:0:0:0\n\
    45:1:02:04:0:0x10:0:1:0:0\n50:2:02:02:2:0:1:0:0:0\n\
    60:2:02:02:1:0x20:0:0:0:0\n60:2:02:02:2:0:0:0:0:0\n\
    70:2:02:04:0:0x10:0:1:0:0\n80:2:02:04:0:0x20:0:0:0:0\n90:2:00:01:0:5:0:0:0:0\n95:2:01:18:0:0:0:0:0:0\n";

#[test]
fn holds_that_cross_are_on_two_lanes_and_losses_and_open_waits_show() {
    let file = exported(
        &records(CROSSING),
        WaitSelection::default(),
        &Selection::default(),
        Box::<PerfettoTimeline>::default(),
    );
    let reading = PerfettoReading::of(&file);
    let lanes = reading.track_names.values().filter(|name| name.contains(" holds"));
    assert_eq!(lanes.count(), 3, "{:?}", reading.track_names);
    let wanted = ["wait mutex 0x10", "wait mutex 0x10 …", "hold mutex 0x20", "5 records lost"];
    for name in wanted {
        assert!(reading.names.iter().any(|found| found == name), "{name}: {:?}", reading.names);
    }
    assert_eq!(reading.sums[&("missing".to_owned(), String::new())], (1, 5));
    assert_eq!(reading.wakes(), 1);
}

#[test]
fn selections_leave_out_threads_holds_and_short_waits() {
    let names = |waits: WaitSelection, selection: &Selection| {
        let file = exported(&records(CROSSING), waits, selection, Box::<PerfettoTimeline>::default());
        let mut names = PerfettoReading::of(&file).names;
        names.retain(|name| name.contains("mutex"));
        names
    };
    let of = |selection: &Selection| names(EventSelection::waits(selection, 0), selection);
    let none = Selection::default();
    assert_eq!(of(&none).len(), 5);
    assert_eq!(of(&Selection { blocked: true, ..none.clone() }), ["wait mutex 0x10", "wait mutex 0x10 …"]);
    assert_eq!(of(&Selection { longer: Some(31), ..none.clone() }).len(), 2);
    assert_eq!(of(&Selection { lwps: vec![1], ..none.clone() }), ["hold mutex 0x10"]);
    assert_eq!(of(&Selection { tids: vec![1], ..none.clone() }), ["hold mutex 0x10"]);
    assert_eq!(of(&Selection { objects: vec![0x20], ..none.clone() }), ["hold mutex 0x20"]);
    assert_eq!(of(&Selection { pids: vec![9], ..none.clone() }), [""; 0]);
    let start = records("48:1:01:18:0:0:0:0:0:0")[0].time;
    let times = WaitSelection { times: start..start + 8, ..WaitSelection::default() };
    assert_eq!(names(times, &none), ["… wait mutex 0x10", "… wait mutex 0x10 …", "hold mutex 0x10 …"]);
}

#[test]
fn arrows_end_where_the_hold_that_a_wait_led_to_is_left_out() {
    for selection in
        [Selection { blocked: true, ..Selection::default() }, Selection { longer: Some(28), ..Selection::default() }]
    {
        let waits = EventSelection::waits(&selection, 0);
        let file = exported(&records(CROSSING), waits.clone(), &selection, Box::<PerfettoTimeline>::default());
        let reading = PerfettoReading::of(&file);
        assert_eq!(reading.wakes(), 1, "{:?}", reading.names);
        assert_eq!(
            chrome_sums(&exported(&records(CROSSING), waits, &selection, Box::<ChromeTimeline>::default())).1,
            1
        );
    }
}
