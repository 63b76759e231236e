//! `--hosts`: the hosts whose traces are read, and what is known of their clocks.

use serde_json::{Value, json};

use crate::support::duration::duration_text;
use crate::trace::hosts::{Host, HostTable};

/// The version of the document.
const FORMAT: u32 = 1;

/// Appends the table: a line for each directory, and one for each process that is shown with another number than its own.
pub fn append_table(table: &HostTable, out: &mut Vec<u8>) {
    let width = table.hosts.iter().map(|host| host.name.chars().count()).max().unwrap_or(0).max(4);
    let mut text =
        format!("{:<width$}  clock           at most wrong by  corrected by  processes  directory\n", "host");
    for host in &table.hosts {
        for (directory, shift) in &host.directories {
            let (state, error) = (host.clock_state.name(), error_text(host));
            let line = format!(
                "{:<width$}  {state:<14}  {error:>16}  {:>12}  {:>9}  {}",
                host.name,
                signed_duration(*shift),
                host.processes,
                directory.display()
            );
            text += line.trim_end();
            text.push('\n');
        }
    }
    for host in &table.hosts {
        for (own, shown) in &host.renumbered {
            text += &format!("process {own} of {} is shown as {shown}\n", host.name);
        }
    }
    out.extend_from_slice(text.as_bytes());
}

/// Appends the document of `-F json`. Times are nanoseconds; what is not known is null.
pub fn append_document(table: &HostTable, out: &mut Vec<u8>) {
    let hosts = table.hosts.iter().map(|host| {
        let directories = host.directories.iter();
        let directories = directories
            .map(|(directory, shift)| json!({"directory": directory.to_string_lossy(), "correction": shift}));
        let renumbered = host.renumbered.iter().map(|(own, shown)| json!({"pid": own, "shown_as": shown}));
        json!({
            "host": host.name,
            "boot_id": Some(&host.boot_id).filter(|id| !id.is_empty()),
            "clock": host.clock_state.name(),
            "error": host.error,
            "processes": host.processes,
            "directories": directories.collect::<Vec<Value>>(),
            "renumbered": renumbered.collect::<Vec<Value>>(),
        })
    });
    let document = json!({ "format": FORMAT, "hosts": hosts.collect::<Vec<Value>>() });
    out.extend_from_slice(format!("{document:#}\n").as_bytes());
}

fn error_text(host: &Host) -> String {
    host.error.map_or_else(|| "-".to_owned(), duration_text)
}

fn signed_duration(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "+" };
    match nanoseconds {
        0 => "0".to_owned(),
        _ => format!("{sign}{}", duration_text(nanoseconds.unsigned_abs())),
    }
}
