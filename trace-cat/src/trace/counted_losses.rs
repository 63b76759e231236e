//! How many records a process has lost, as its trinfo counts them.
//!
//! Each program of the process counts its own, in lines `lost NUMBER`, the last of which counts. A killed process writes none:
//! `trace-cat --recover` does, from its trbuf.

/// The count, as far as the lines were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedLosses {
    /// What the programs before the last one have lost.
    before: u64,
    in_all: u64,
}

impl CountedLosses {
    /// The count of further lines, where `in_all` records were counted before.
    pub fn after(in_all: u64) -> CountedLosses {
        CountedLosses { before: 0, in_all }
    }

    /// Takes a line.
    pub fn add_line(&mut self, key: &[u8], value: &[u8]) {
        match key {
            // Another program begins, and its own count.
            b"format" => self.before = self.in_all,
            b"lost" => self.in_all = self.before.saturating_add(number(value)),
            _ => {}
        }
    }

    /// What all programs have lost.
    pub fn in_all(&self) -> u64 {
        self.in_all
    }

    /// The line, with its newline, that makes the count this one; `None` if it is not less.
    pub fn line_for(&self, in_all: u64) -> Option<String> {
        (in_all > self.in_all).then(|| format!("lost {}\n", in_all - self.before))
    }
}

/// The number that a value is; 0 if it is none.
pub fn number(value: &[u8]) -> u64 {
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use spec::info;

    use super::*;

    fn counted(text: &str) -> CountedLosses {
        let mut losses = CountedLosses::default();
        info::lines(text.as_bytes()).for_each(|(key, value)| losses.add_line(key, value));
        losses
    }

    #[test]
    fn a_line_makes_the_count_greater() {
        let execs = "format 1\nlost 2\nlost 3\nformat 1\n";
        for (text, known) in [("", 0), ("format 1\n", 0), (execs, 3), ("format 1\nlost 3\nformat 1\nlost 4\n", 7)] {
            let losses = counted(text);
            assert_eq!((losses.in_all(), losses.line_for(known)), (known, None), "{text}");
            let line = losses.line_for(9).unwrap();
            assert_eq!(counted(&format!("{text}{line}")).in_all(), 9, "{text}");
            // Who was killed within the line writes it again.
            let (torn, _) = line.split_at(line.len() / 2);
            let again = counted(&format!("{text}{torn}\n")).line_for(9).unwrap();
            assert_eq!(counted(&format!("{text}{torn}\n{again}")).in_all(), 9, "{text}");
        }
        assert_eq!(counted("format 1\nlost x\nlost 18446744073709551615\nformat 1\nlost 7\n").in_all(), u64::MAX);
    }
}
