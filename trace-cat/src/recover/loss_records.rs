//! Losses that no loss record counts, as those of a thread that was killed before it had room for one. Each becomes a trace_lost, the
//! last record of its thread: when the trbuf is gone, readers still know whose newest records are missing.
//!
//! The record is put into the first region of its slot, from where it is written like any other text, and then the count of the slot
//! is cleared. If recovery dies in between, the next one finds both, and only clears the count.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::mem::offset_of;
use std::path::Path;

use spec::buffer::{self, PAGE, REGION_OFFSETS, SlotHeader, pack_range, region_word_offsets};
use spec::record::RECORD_LEN_MAX;
use spec::{Record, id};

use super::claim::ClaimedTrbuf;
use super::file_operations::FileOperations;
use super::recovery_plan::{RegionRecovery, UncountedLoss};
use crate::trace::buffers::slots::{SlotEntry, Slots, read_up_to};
use crate::trace::file_handle::open_if_present;

/// How many bytes at the end of a record file mostly have a record of each of its threads: more than all regions of a slot.
const TAIL_LEN: u64 = 1 << 20;

impl UncountedLoss {
    /// The loss record, with its newline: its time is that of the thread's latest record in the file at `path`, since nobody knows
    /// when the first record was lost. `None` if the thread has no record there.
    pub fn line(&self, path: &Path) -> io::Result<Option<String>> {
        let Some(mut file) = open_if_present(path)? else { return Ok(None) };
        let start = file.metadata()?.len().saturating_sub(TAIL_LEN);
        let mut latest = latest_record(&mut file, start, self.lwp)?;
        if latest.is_none() && start > 0 {
            latest = latest_record(&mut file, 0, self.lwp)?;
        }
        let event = String::from_utf8_lossy(&id::TRACE_LOST_0.event_text);
        Ok(latest.map(|columns| format!("{columns}{event}{}:{}:0:0:0\n", self.records, self.cause)))
    }

    /// Puts the loss record into the slot's first region, in which no text may be, and clears the count. Returns what is to be written.
    pub fn place(
        &self,
        line: &str,
        claimed: &ClaimedTrbuf,
        operations: &mut dyn FileOperations,
    ) -> io::Result<RegionRecovery> {
        let start = REGION_OFFSETS[0];
        operations.write(&claimed.buffers, line.as_bytes(), self.slot + start as u64)?;
        let position = pack_range(0..line.len() as u32).to_le_bytes();
        operations.write(&claimed.buffers, &position, self.slot + region_word_offsets(0).write_position as u64)?;
        clear_count(claimed, operations, self.slot)?;
        let unwritten = start..start + line.len();
        Ok(RegionRecovery { slot: self.slot, number: 0, write_intent: None, older: None, unwritten })
    }
}

/// Clears the counts of losses whose records an earlier recovery has put into their slots.
pub fn clear_placed(claimed: &ClaimedTrbuf, operations: &mut dyn FileOperations) -> io::Result<()> {
    let mut page = [0; PAGE];
    let mut slots = Slots::new(&claimed.buffers, claimed.owner.layout)?;
    while let Some(entry) = slots.next(&mut page)? {
        let SlotEntry::Slot { at, .. } = entry else { continue };
        if let Ok(Some(loss)) = buffer::slot_lost(&page)
            && holds_record_of(loss, claimed, &page, at)?
        {
            clear_count(claimed, operations, at)?;
        }
    }
    Ok(())
}

/// Whether the loss record with these numbers is all that is in the first region of the slot at `at`, which `page` begins. The thread
/// may have made the same one, and have lost as many records again: then trinfo has the difference.
fn holds_record_of(
    (records, cause): (u32, u32),
    claimed: &ClaimedTrbuf,
    page: &[u8; PAGE],
    at: u64,
) -> io::Result<bool> {
    let Ok(leftover) = buffer::region_leftover(page, claimed.owner.layout, 0) else { return Ok(false) };
    let text = leftover.unwritten;
    if leftover.write_intent.is_some() || text.start != REGION_OFFSETS[0] || text.len() > RECORD_LEN_MAX {
        return Ok(false);
    }
    let mut line = vec![0; text.len()];
    let length = read_up_to(&claimed.buffers, &mut line, at + text.start as u64)?;
    let record = line[..length].strip_suffix(b"\n").and_then(|line| Record::parse(line).ok());
    Ok(record.is_some_and(|record| {
        let numbers = [u64::from(records), u64::from(cause)];
        record.event().is_some_and(|event| event.name == "trace_lost")
            && record.arguments[..2].iter().map(|argument| argument.bits()).eq(numbers)
    }))
}

/// Clears the number of lost records of a slot, and the cause beside it, in one step.
fn clear_count(claimed: &ClaimedTrbuf, operations: &mut dyn FileOperations, slot: u64) -> io::Result<()> {
    const _: () = assert!(offset_of!(SlotHeader, cause) == offset_of!(SlotHeader, lost) + 4);
    operations.write(&claimed.buffers, &0u64.to_le_bytes(), slot + offset_of!(SlotHeader, lost) as u64)
}

/// The columns of time and thread of a thread's latest record among those that begin after `start`.
fn latest_record(file: &mut File, start: u64, lwp: u32) -> io::Result<Option<String>> {
    file.seek(SeekFrom::Start(start))?;
    let mut reader = BufReader::new(file);
    let (mut latest, mut line): (Option<(u64, String)>, _) = (None, Vec::new());
    loop {
        line.clear();
        if reader.by_ref().take(RECORD_LEN_MAX as u64 + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(latest.map(|(_, columns)| columns));
        }
        // The first line may be the end of one, and a hole in the file is none.
        let Some(record) = line.strip_suffix(b"\n").and_then(|line| Record::parse(line).ok()) else { continue };
        if record.lwpid == lwp && latest.as_ref().is_none_or(|(time, _)| *time <= record.time) {
            let columns: Vec<&str> = std::str::from_utf8(&line).unwrap_or_default().splitn(6, ':').take(5).collect();
            latest = Some((record.time, columns.join(":") + ":"));
        }
    }
}
