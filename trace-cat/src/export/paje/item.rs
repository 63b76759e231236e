//! What a Paje trace shows, in a form that can be sorted.

use crate::export::scene::OTHER_CALLS;

/// What an item is. The order is that of items of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// The life of a thread, which is around all that the thread does.
    Life,
    /// The subject is a text, the other one a lane.
    Span,
    /// The subject is an object, the other one the thread that held it.
    Contention,
    /// A wait that is idleness; the subject is an object.
    Wait,
    /// The subject is an object.
    Hold,
    /// An arrow from the thread to the subject, which is a thread, too; the other one is a [`FlowKind`].
    Flow,
    /// The subject is a number or an object; the other one is a [`MarkKind`].
    Mark,
    /// The subject is an object, [`ALL_WAITING`] or [`ALL_OTHERS`], and `to` is the value.
    Sample,
    /// The subject is a text, and `to` is the value, which is signed; here and below.
    ProgramMark,
    ProgramSample,
}

const KINDS: [ItemKind; 10] = [
    ItemKind::Life,
    ItemKind::Span,
    ItemKind::Contention,
    ItemKind::Wait,
    ItemKind::Hold,
    ItemKind::Flow,
    ItemKind::Mark,
    ItemKind::Sample,
    ItemKind::ProgramMark,
    ItemKind::ProgramSample,
];

/// Why an arrow leads from one thread to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    EndsWait,
    Creates,
    IsJoined,
    Forks,
}

/// What a mark is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// The subject is the number of records.
    Loss,
    LossEnd,
    /// The subject is the event: a hundred times the category, and the number.
    MissingEntry,
    MissingReturn,
    /// The subject is the object, here and below.
    LostHold,
    BeganEarlier,
    EndsLater,
    /// The subject is a text.
    MissingBegin,
    /// What is recorded was changed.
    Change,
}

/// The values of arrows.
pub const FLOW_VALUES: [&str; 4] = ["\"ends wait\"", "creates", "\"is joined\"", "forks"];
/// What marks are called. What the subject is follows.
pub const MARK_NAMES: [(MarkKind, &str); 9] = [
    (MarkKind::Loss, "records lost: "),
    (MarkKind::LossEnd, "records are complete again"),
    (MarkKind::MissingEntry, "no entry record: "),
    (MarkKind::MissingReturn, "no return record: "),
    (MarkKind::LostHold, "no release recorded: "),
    (MarkKind::BeganEarlier, "began earlier: "),
    (MarkKind::EndsLater, "ends later: "),
    (MarkKind::MissingBegin, "no beginning recorded: "),
    (MarkKind::Change, OTHER_CALLS),
];

/// Stands for no object, and no thread.
pub const NONE: u32 = u32::MAX;
/// The subjects of the counters of all threads.
pub const ALL_WAITING: u32 = u32::MAX;
pub const ALL_OTHERS: u32 = u32::MAX - 1;

/// An interval, an arrow, a mark or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PajeItem {
    pub kind: ItemKind,
    /// The place of a note, 0 for none.
    pub note: u8,
    pub from: u64,
    pub to: u64,
    pub thread: u32,
    pub subject: u32,
    pub other: u32,
    pub site: u32,
}

impl PajeItem {
    /// Its bytes.
    pub fn to_bytes(self) -> [u8; 40] {
        let PajeItem { kind, note, from, to, thread, subject, other, site } = self;
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let words = [from, to, pair(kind as u32, note.into()), pair(thread, subject), pair(other, site)];
        let mut bytes = [0; 40];
        bytes.chunks_exact_mut(8).zip(words).for_each(|(place, word)| place.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// The item of such bytes.
    pub fn of_bytes(bytes: &[u8]) -> PajeItem {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |index: usize| words.get(index).map_or(0, |word| u64::from_le_bytes(*word));
        let (high, low) = (|index| (word(index) >> 32) as u32, |index| word(index) as u32);
        PajeItem {
            kind: KINDS[high(2) as usize],
            note: low(2) as u8,
            from: word(0),
            to: word(1),
            thread: high(3),
            subject: low(3),
            other: high(4),
            site: low(4),
        }
    }

    /// By which items are sorted: time, and kind.
    pub fn sort_key(bytes: &[u8]) -> (u64, u8) {
        let item = PajeItem::of_bytes(bytes);
        (item.from, item.kind as u8)
    }
}
