//! A packet of the stream: some events, with the times between which they are.

/// The most bytes of a packet.
const PACKET_MAX: usize = 256 << 10;
/// The most bytes of an event: header, context, a byte and six values.
const EVENT_MAX: usize = 6 + 16 + 1 + 6 * 8;
/// Bytes before the first event: magic number, stream ID, and the five numbers of [`finished`](Packet::finished).
const HEADER: usize = 4 + 4 + 5 * 8;
/// The number with which each packet begins.
const MAGIC: u32 = 0xc1fc_1fc1;

/// A packet that is being filled. All numbers are little-endian.
#[derive(Debug)]
pub struct Packet {
    /// Space for the header, and the events.
    bytes: Vec<u8>,
    first_time: u64,
    last_time: u64,
    /// Records that were lost since the beginning of the stream, this packet included.
    lost: u64,
    /// Records were lost in this packet.
    has_losses: bool,
    /// No packet is before this one.
    is_first: bool,
}

impl Packet {
    /// The first packet of a stream, whose first event is of `time`.
    pub fn first(time: u64) -> Packet {
        let bytes = Vec::from([0; HEADER]);
        Packet { bytes, first_time: time, last_time: time, lost: 0, has_losses: false, is_first: true }
    }

    /// True if an event of `time` that reports `lost` records can be in this packet.
    pub fn has_room(&self, time: u64, lost: u64) -> bool {
        if self.bytes.len() == HEADER {
            // Readers count losses from one packet to the next.
            return lost == 0 || !self.is_first;
        }
        // An event has only the low half of its time. Losses are between the end of the packet before and the end of their own, so
        // a packet begins with its first loss.
        let is_near = time.wrapping_sub(self.last_time) <= u64::from(u32::MAX);
        is_near && self.bytes.len() + EVENT_MAX <= PACKET_MAX && (lost == 0 || self.has_losses)
    }

    /// Adds an event of `time` that reports `lost` records.
    pub fn push(&mut self, time: u64, lost: u64, event: &[u8]) {
        if self.bytes.len() == HEADER {
            self.first_time = time;
        }
        self.last_time = time;
        self.lost = self.lost.saturating_add(lost);
        self.has_losses |= lost > 0;
        self.bytes.extend_from_slice(event);
    }

    /// The finished packet.
    pub fn finished(&mut self) -> &[u8] {
        let bits = self.bytes.len() as u64 * 8;
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&MAGIC.to_le_bytes());
        // timestamp_begin, timestamp_end, content_size, packet_size, events_discarded.
        for (place, number) in
            header[8..].chunks_exact_mut(8).zip([self.first_time, self.last_time, bits, bits, self.lost])
        {
            place.copy_from_slice(&number.to_le_bytes());
        }
        self.bytes[..HEADER].copy_from_slice(&header);
        &self.bytes
    }

    /// Begins the next packet.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEADER);
        (self.has_losses, self.is_first) = (false, false);
    }
}
