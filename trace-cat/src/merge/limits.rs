//! How much memory merging takes, and how the work is divided.

/// How much memory merging takes, and how the work is cut.
#[derive(Clone, Copy, Debug)]
pub struct MergeLimits {
    /// Threads that work.
    pub threads: usize,
    /// Bytes of a slice at most, as far as records of one time allow it. Each thread holds it as it comes in and as it goes
    /// out; where it is shaped also as it is merged, and with what is known of its records four to five times.
    pub slice: u64,
    /// Bytes of a slice at least.
    pub least: u64,
    /// Bytes of a slice for each input that it is from, if it has room for that.
    pub part: u64,
    /// Bytes of memory that finished slices may take while they wait for their turn.
    pub waiting: usize,
    /// Bytes that a block of an index is for.
    pub block: u64,
    /// Blocks of all indexes together at most, beyond one for each input; then they are for more bytes.
    pub blocks: u64,
    /// Bytes that are read at a time to make the indexes.
    pub chunk: u64,
    /// Bytes that are sorted at a time, where a file is in no order.
    pub sort: usize,
    /// What reading a bit of a file for each slice costs, in bytes that could be read meanwhile.
    pub visit: u64,
    /// Bytes of reading that are not worth a temporary file.
    pub patience: u64,
}

impl Default for MergeLimits {
    fn default() -> MergeLimits {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(16);
        MergeLimits {
            threads,
            slice: (24 << 20) / threads.max(3) as u64,
            least: 512 << 10,
            part: 128 << 10,
            waiting: 32 << 20,
            block: 8 << 10,
            blocks: 1 << 20,
            chunk: 2 << 20,
            sort: 48 << 20,
            visit: 16 << 10,
            patience: 256 << 20,
        }
    }
}
