//! Packets with track events, which are most of a file. They are written field by field: no structure is made for each.

use super::message::PACKET;

/// The one packet sequence of a file.
pub const SEQUENCE: u32 = 1;

/// Wire types.
const VARINT: u32 = 0;
const EIGHT_BYTES: u32 = 1;
const BYTES: u32 = 2;

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
    time: u64,
}

/// The parts of a packet before its event, which are collected so that they are appended at once.
#[derive(Default)]
struct ShortBytes {
    bytes: [u8; 32],
    len: usize,
}

impl ShortBytes {
    fn varint(&mut self, mut value: u64) -> &mut ShortBytes {
        while value >= 128 {
            self.bytes[self.len] = value as u8 | 128;
            (self.len, value) = (self.len + 1, value >> 7);
        }
        self.bytes[self.len] = value as u8;
        self.len += 1;
        self
    }

    fn key(&mut self, tag: u32, wire_type: u32) -> &mut ShortBytes {
        self.varint(u64::from(tag << 3 | wire_type))
    }

    fn number(&mut self, tag: u32, value: u64) -> &mut ShortBytes {
        self.key(tag, VARINT).varint(value)
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn put_number(tag: u32, value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(ShortBytes::default().number(tag, value).bytes());
}

fn put_flow(tag: u32, flow: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(ShortBytes::default().key(tag, EIGHT_BYTES).bytes());
    out.extend_from_slice(&flow.to_le_bytes());
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

    /// Begins an event with the fields of an earlier one.
    pub fn begin_with(&mut self, fields: &[u8], time: u64) -> &mut EventWriter {
        self.event.clear();
        self.time = time;
        self.event.extend_from_slice(fields);
        self
    }

    /// The fields so far.
    pub fn fields(&self) -> &[u8] {
        &self.event
    }

    pub fn name(&mut self, category: u64, name: u64) -> &mut EventWriter {
        put_number(event::CATEGORY_IIDS, category, &mut self.event);
        put_number(event::NAME_IID, name, &mut self.event);
        self
    }

    /// Adds arguments: name and value of each, as interned texts.
    pub fn arguments(&mut self, arguments: &[(u64, u64)]) -> &mut EventWriter {
        for &(name, value) in arguments {
            self.put_argument(name, annotation::STRING_VALUE_IID, value);
        }
        self
    }

    /// Adds an argument that is a number.
    pub fn number(&mut self, name: u64, value: i64) {
        self.put_argument(name, annotation::INT_VALUE, value as u64);
    }

    fn put_argument(&mut self, name: u64, kind: u32, value: u64) {
        let mut argument = ShortBytes::default();
        argument.number(annotation::NAME_IID, name).number(kind, value);
        let mut head = ShortBytes::default();
        head.key(event::DEBUG_ANNOTATIONS, BYTES).varint(argument.len as u64);
        self.event.extend_from_slice(head.bytes());
        self.event.extend_from_slice(argument.bytes());
    }

    /// An arrow begins here.
    pub fn flow(&mut self, flow: u64) -> &mut EventWriter {
        put_flow(event::FLOW_IDS, flow, &mut self.event);
        self
    }

    /// An arrow ends here.
    pub fn end_of_flow(&mut self, flow: u64) -> &mut EventWriter {
        put_flow(event::TERMINATING_FLOW_IDS, flow, &mut self.event);
        self
    }

    pub fn counter(&mut self, value: u64) -> &mut EventWriter {
        put_number(event::COUNTER_VALUE, value, &mut self.event);
        self
    }

    /// Appends the event as a packet.
    pub fn append(&mut self, out: &mut Vec<u8>) {
        let mut fields = ShortBytes::default();
        fields.number(packet::TIMESTAMP, self.time).number(packet::SEQUENCE_ID, SEQUENCE.into());
        fields.key(packet::TRACK_EVENT, BYTES).varint(self.event.len() as u64);
        let mut head = ShortBytes::default();
        head.key(PACKET, BYTES).varint((fields.len + self.event.len()) as u64);
        out.extend_from_slice(head.bytes());
        out.extend_from_slice(fields.bytes());
        out.extend_from_slice(&self.event);
    }
}
