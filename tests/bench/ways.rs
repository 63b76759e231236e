//! The ways in which a workload is run.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Untraced.
    Native,
    /// Two clock readings a pair and the bytes of its records through write(2): less is not possible.
    Floor,
    /// The library preloaded, nothing enabled.
    Off,
    /// Another version of the library (BENCH_AGAINST).
    Before,
    /// The library without settings.
    Default,
    /// THR_TRACE_BUF: each record at once in its file.
    Buf,
    /// The bytes of two records a pair, for each of them open, fstat, pwrite and close: less is not possible for
    /// THR_TRACE_BUF, as long as no descriptor stays open.
    BufFloor,
    /// THR_TRACE_LEVEL=blocked.
    Blocked,
    /// THR_TRACE_RING=4M.
    Ring,
    /// THR_TRACE_DETAIL.
    Detail,
    /// THR_TRACE_DETAIL and THR_TRACE_STACK=16.
    Stack,
    /// LTTng-UST's pthread wrapper, channels that discard.
    Lttng,
    /// The same with channels that overwrite.
    LttngOverwrite,
    /// uftrace.
    Uftrace,
}

impl Way {
    /// All, in the table's order.
    pub const ALL: [Way; 14] = [
        Way::Native,
        Way::Floor,
        Way::Off,
        Way::Before,
        Way::Default,
        Way::Buf,
        Way::BufFloor,
        Way::Blocked,
        Way::Ring,
        Way::Detail,
        Way::Stack,
        Way::Lttng,
        Way::LttngOverwrite,
        Way::Uftrace,
    ];

    /// As it stands in the table and in BENCH_ONLY.
    pub fn name(self) -> &'static str {
        match self {
            Way::Native => "native",
            Way::Floor => "floor",
            Way::Off => "off",
            Way::Before => "before",
            Way::Default => "default",
            Way::Buf => "buf",
            Way::BufFloor => "buf-floor",
            Way::Blocked => "blocked",
            Way::Ring => "ring",
            Way::Detail => "detail",
            Way::Stack => "stack",
            Way::Lttng => "lttng",
            Way::LttngOverwrite => "lttng-overwrite",
            Way::Uftrace => "uftrace",
        }
    }

    /// In words.
    pub fn what(self) -> &'static str {
        match self {
            Way::Native => "untraced",
            Way::Floor => "no recorder: two clock readings a pair, the bytes of default by write(2) in 144 KiB blocks",
            Way::Off => "libthreadt, THR_TRACE_EVENTS empty",
            Way::Before => "libthreadt of BENCH_AGAINST, default",
            Way::Default => "libthreadt",
            Way::Buf => "libthreadt, THR_TRACE_BUF=1 (fewer turns)",
            Way::BufFloor => "no recorder: open, fstat, pwrite and close for each write of buf",
            Way::Blocked => "libthreadt, THR_TRACE_LEVEL=blocked",
            Way::Ring => "libthreadt, THR_TRACE_RING=4M",
            Way::Detail => "libthreadt, THR_TRACE_DETAIL=1",
            Way::Stack => "libthreadt, THR_TRACE_DETAIL=1 THR_TRACE_STACK=16",
            Way::Lttng => "LTTng-UST's pthread wrapper, default channel (4 x 512 KiB a CPU, discard), no contexts",
            Way::LttngOverwrite => "the same, snapshot session (overwrite), one snapshot at the end",
            Way::Uftrace => "uftrace record --force --no-event; programs: --nest-libcall -F ^pthread_ -F ^sem_",
        }
    }

    /// What our library gets to read beside its directory.
    pub fn variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Way::Off => &[("THR_TRACE_EVENTS", "")],
            Way::Buf => &[("THR_TRACE_BUF", "1")],
            Way::Blocked => &[("THR_TRACE_LEVEL", "blocked")],
            Way::Ring => &[("THR_TRACE_RING", "4M")],
            Way::Detail => &[("THR_TRACE_DETAIL", "1")],
            Way::Stack => &[("THR_TRACE_DETAIL", "1"), ("THR_TRACE_STACK", "16")],
            _ => &[],
        }
    }

    /// True if it reports how many records it lost. A ring counts none, and uftrace's report is not read.
    pub fn reports_losses(self) -> bool {
        !matches!(self, Way::Ring | Way::LttngOverwrite | Way::Uftrace)
    }
}

/// The order of the ways in a round: each round begins one further on, so that none always follows the same.
pub fn rotated(ways: &[Way], round: usize) -> Vec<Way> {
    let mut ways = ways.to_vec();
    let places = round % ways.len().max(1);
    ways.rotate_left(places);
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_each_place_once() {
        let ways = [Way::Native, Way::Default, Way::Lttng];
        let rounds: Vec<Vec<Way>> = (0..3).map(|round| rotated(&ways, round)).collect();
        for place in 0..3 {
            let mut names: Vec<&str> = rounds.iter().map(|round| round[place].name()).collect();
            names.sort_unstable();
            assert_eq!(names, ["default", "lttng", "native"]);
        }
        assert_eq!(rotated(&ways, 3), ways);
        assert!(rotated(&[], 3).is_empty());
    }
}
