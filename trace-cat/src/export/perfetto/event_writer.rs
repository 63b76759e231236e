//! Packets with track events, which are most of a file. They are written field by field: no structure is made for each.

use prost::encoding::{WireType, encode_key, encode_varint};

use super::message::PACKET;

/// The one packet sequence of a file.
pub const SEQUENCE: u32 = 1;

/// Fields of `TracePacket`.
mod packet {
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
}

/// Fields of `TrackEvent`.
mod event {
    pub const CATEGORY_IIDS: u32 = 3;
    pub const DEBUG_ANNOTATIONS: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK_UUID: u32 = 11;
    pub const COUNTER_VALUE: u32 = 30;
    pub const FLOW_IDS: u32 = 47;
    pub const TERMINATING_FLOW_IDS: u32 = 48;
}

/// Fields of `DebugAnnotation`.
mod annotation {
    pub const NAME_IID: u32 = 1;
    pub const INT_VALUE: u32 = 4;
    pub const STRING_VALUE_IID: u32 = 17;
}

/// `TrackEvent.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
    Counter = 4,
}

/// Writes one event after another.
#[derive(Debug, Default)]
pub struct EventWriter {
    event: Vec<u8>,
    packet: Vec<u8>,
    time: u64,
}

fn put_number(tag: u32, value: u64, out: &mut Vec<u8>) {
    encode_key(tag, WireType::Varint, out);
    encode_varint(value, out);
}

fn put_bytes(tag: u32, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(tag, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

impl EventWriter {
    /// Begins an event of a track at `time`, nanoseconds since the first record.
    pub fn begin(&mut self, what: EventType, track: u64, time: u64) -> &mut EventWriter {
        self.event.clear();
        self.time = time;
        put_number(event::TYPE, what as u64, &mut self.event);
        put_number(event::TRACK_UUID, track, &mut self.event);
        self
    }

    pub fn name(&mut self, category: u64, name: u64) -> &mut EventWriter {
        put_number(event::CATEGORY_IIDS, category, &mut self.event);
        put_number(event::NAME_IID, name, &mut self.event);
        self
    }

    /// Adds an argument, both as interned texts.
    pub fn argument(&mut self, name: u64, value: u64) -> &mut EventWriter {
        self.packet.clear();
        put_number(annotation::NAME_IID, name, &mut self.packet);
        put_number(annotation::STRING_VALUE_IID, value, &mut self.packet);
        put_bytes(event::DEBUG_ANNOTATIONS, &self.packet, &mut self.event);
        self
    }

    /// Adds an argument that is a number.
    pub fn number(&mut self, name: u64, value: i64) -> &mut EventWriter {
        self.packet.clear();
        put_number(annotation::NAME_IID, name, &mut self.packet);
        put_number(annotation::INT_VALUE, value as u64, &mut self.packet);
        put_bytes(event::DEBUG_ANNOTATIONS, &self.packet, &mut self.event);
        self
    }

    /// An arrow begins here.
    pub fn flow(&mut self, flow: u64) -> &mut EventWriter {
        encode_key(event::FLOW_IDS, WireType::SixtyFourBit, &mut self.event);
        self.event.extend_from_slice(&flow.to_le_bytes());
        self
    }

    /// An arrow ends here.
    pub fn end_of_flow(&mut self, flow: u64) -> &mut EventWriter {
        encode_key(event::TERMINATING_FLOW_IDS, WireType::SixtyFourBit, &mut self.event);
        self.event.extend_from_slice(&flow.to_le_bytes());
        self
    }

    pub fn counter(&mut self, value: u64) -> &mut EventWriter {
        put_number(event::COUNTER_VALUE, value, &mut self.event);
        self
    }

    /// Appends the event as a packet.
    pub fn append(&mut self, out: &mut Vec<u8>) {
        self.packet.clear();
        put_number(packet::TIMESTAMP, self.time, &mut self.packet);
        put_number(packet::SEQUENCE_ID, SEQUENCE.into(), &mut self.packet);
        put_bytes(packet::TRACK_EVENT, &self.event, &mut self.packet);
        put_bytes(PACKET, &self.packet, out);
    }
}
