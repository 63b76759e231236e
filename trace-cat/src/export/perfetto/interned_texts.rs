//! Texts that packets refer to by a number. Each is written once, before the first packet that needs it.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::event_writer::SEQUENCE;
use super::message::{InternedData, InternedText, TracePacket};

/// What a text is used for: Perfetto numbers each of these apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextUse {
    Category,
    EventName,
    ArgumentName,
    Argument,
}

/// The texts so far.
#[derive(Debug, Default)]
pub struct InternedTexts {
    numbers: HashMap<(TextUse, String), u64, RandomState>,
}

impl InternedTexts {
    /// The number of a text; a new one is appended to `out`.
    pub fn number(&mut self, usage: TextUse, text: String, out: &mut Vec<u8>) -> u64 {
        // Numbers begin with 1. Texts of different uses need no common ones, but one count is simplest.
        let next = self.numbers.len() as u64 + 1;
        *self.numbers.entry((usage, text)).or_insert_with_key(|(_, text)| {
            let texts = vec![InternedText { iid: next, text: text.clone() }];
            let data = match usage {
                TextUse::Category => InternedData { event_categories: texts, ..InternedData::default() },
                TextUse::EventName => InternedData { event_names: texts, ..InternedData::default() },
                TextUse::ArgumentName => InternedData { debug_annotation_names: texts, ..InternedData::default() },
                TextUse::Argument => InternedData { debug_annotation_string_values: texts, ..InternedData::default() },
            };
            let packet = TracePacket {
                trusted_packet_sequence_id: SEQUENCE,
                interned_data: Some(data),
                ..TracePacket::default()
            };
            packet.append(out);
            next
        })
    }
}
