//! The limits of a merge.

/// How much memory a merge takes, and how it divides the work.
#[derive(Clone, Copy, Debug)]
pub struct MergeLimits {
    /// Threads that merge.
    pub threads: usize,
    /// The most bytes of a slice, unless records of one time have more. Each thread holds a slice twice: as it was read and as
    /// it will be output. A slice that is transformed is also held as it was merged. With the indexes of its records, a thread
    /// takes four to five times as much memory.
    pub slice_max: u64,
    /// The fewest bytes of a slice.
    pub slice_min: u64,
    /// Bytes of a slice for each input that has records in it, within these limits.
    pub slice_per_input: u64,
    /// Bytes of memory that finished slices may take while they wait for earlier ones.
    pub waiting_max: usize,
    /// Bytes of a block of an index.
    pub block: u64,
    /// The most blocks of all indexes together, beyond one for each input. Blocks are made larger if there would be more.
    pub blocks_max: u64,
    /// Bytes that are read at a time to make the indexes.
    pub scan_chunk: u64,
    /// Bytes that are sorted at a time if a file is in no order.
    pub sorted_run: usize,
    /// The cost of reading from one file for one slice, in bytes that could be read meanwhile.
    pub visit_cost: u64,
    /// Bytes that are read repeatedly rather than put in order in a temporary file.
    pub reread_max: u64,
    /// Records that name a thread are collected when the texts are read.
    pub collects_names: bool,
}

impl Default for MergeLimits {
    fn default() -> MergeLimits {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(16);
        MergeLimits {
            threads,
            slice_max: (24 << 20) / threads.max(3) as u64,
            slice_min: 512 << 10,
            slice_per_input: 128 << 10,
            waiting_max: 32 << 20,
            block: 8 << 10,
            blocks_max: 1 << 20,
            scan_chunk: 2 << 20,
            sorted_run: 48 << 20,
            visit_cost: 16 << 10,
            reread_max: 256 << 20,
            collects_names: false,
        }
    }
}
