//! Lists of categories and events, as in THR_TRACE_EVENTS.

use spec::EventSet;

use super::nearest_name::nearest;

/// The set that a list describes.
///
/// # Errors
/// The first unknown name, with the nearest known one.
pub fn event_set(list: &str) -> Result<EventSet, String> {
    let mut unknown = None;
    let set = EventSet::parse(list.as_bytes(), &mut |name| unknown = unknown.or(Some(name)));
    unknown.map_or(Ok(set), |name| Err(unknown_name(name)))
}

/// The set that a list of events to record describes.
///
/// # Errors
/// As [`event_set`].
pub fn recorded_event_set(list: &str) -> Result<EventSet, String> {
    let mut unknown = None;
    let set = EventSet::parse_recorded(list.as_bytes(), &mut |name| unknown = unknown.or(Some(name)));
    unknown.map_or(Ok(set), |name| Err(unknown_name(name)))
}

/// What to tell of an unknown name.
fn unknown_name(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let name = name.trim_start_matches('-');
    let tip = match nearest(name) {
        Some(right) => format!("\n\n  tip: there is '{right}'"),
        None => String::new(),
    };
    format!("no category or event is named '{name}'{tip}")
}
