//! The spans that a thread is in: those that the program itself names, and functions.
//!
//! Ends may be missing: `longjmp` leaves functions without them. The end of a function shows that those which it called have ended.
//! So does a call by a function that called others before, which [`SpanCaller`] tells.

use super::program_event::{ProgramSpan, ProgramText};

/// The most spans that a thread is in; with more, the outermost is forgotten.
const DEPTH_MAX: usize = 1 << 16;

/// A span that has begun.
#[derive(Clone, Copy, Debug)]
struct OpenSpan {
    text: ProgramText,
    /// Of a function, to where it returns.
    site: u64,
    from: u64,
    lane: u32,
}

/// Whether a return address is in the code of a function, both of a process.
pub type SpanCaller<'a> = dyn Fn(u32, u64, u64) -> bool + 'a;

/// The spans of one thread, the outermost first.
#[derive(Debug, Default)]
pub struct OpenSpans {
    spans: Vec<OpenSpan>,
}

impl OpenSpans {
    /// Begins a span that has a name or a number.
    pub fn begin(&mut self, text: ProgramText, time: u64) {
        self.push(OpenSpan { text, site: 0, from: time, lane: 0 });
    }

    /// Ends the newest span of this text; `false` if there is none. The ends of spans go to `ended`.
    pub fn end(&mut self, text: ProgramText, thread: u32, time: u64, ended: &mut Vec<ProgramSpan>) -> bool {
        let Some(place) = self.spans.iter().rposition(|span| span.text == text) else { return false };
        self.end_at(place, thread, time, false, ended);
        true
    }

    /// Enters a function, which returns to `site`.
    pub fn enter(
        &mut self,
        (process, function, site): (u32, u64, u64),
        (thread, time): (u32, u64),
        is_in: &SpanCaller,
        ended: &mut Vec<ProgramSpan>,
    ) {
        let text = ProgramText::Function(process, function, 0);
        self.leave_all_but_callers(text, site, (thread, time), is_in, ended);
        self.push(OpenSpan { text, site, from: time, lane: 0 });
    }

    /// Leaves a function, and those that it called; `false` if it was not entered.
    pub fn leave(
        &mut self,
        (text, site): (ProgramText, u64),
        thread: u32,
        time: u64,
        ended: &mut Vec<ProgramSpan>,
    ) -> bool {
        let is_left = |span: &OpenSpan| span.text == text && span.site == site;
        let Some(place) = self.spans.iter().rposition(is_left) else { return false };
        self.leave_above(place + 1, (thread, time), ended);
        self.end_at(place, thread, time, false, ended);
        true
    }

    /// Ends all, because the thread has ended.
    pub fn end_all(&mut self, thread: u32, time: u64, ended: &mut Vec<ProgramSpan>) {
        while let Some(last) = self.spans.len().checked_sub(1) {
            self.end_at(last, thread, time, true, ended);
        }
    }

    /// Gives each span a lane, because all are cut off at the same time: of two on one lane the outer one would have to come first.
    pub fn separate_lanes(&mut self) {
        (1..).zip(&mut self.spans).for_each(|(lane, span)| span.lane = lane);
    }

    fn push(&mut self, span: OpenSpan) {
        if self.spans.len() >= DEPTH_MAX {
            self.spans.remove(0);
        }
        self.spans.push(span);
    }

    /// Leaves the functions that the caller of this one called before, if the caller is known and is not the newest one.
    fn leave_all_but_callers(
        &mut self,
        text: ProgramText,
        site: u64,
        (thread, time): (u32, u64),
        is_in: &SpanCaller,
        ended: &mut Vec<ProgramSpan>,
    ) {
        let calls = |span: &OpenSpan| match span.text {
            ProgramText::Function(process, function, _) => is_in(process, function, site),
            _ => false,
        };
        let functions = |span: &&OpenSpan| matches!(span.text, ProgramText::Function(..));
        let Some(newest) = self.spans.iter().rfind(functions) else { return };
        // An inlined function has the return address of the function that it is in.
        if calls(newest) || newest.site == site && newest.text != text {
            return;
        }
        let Some(caller) = self.spans.iter().rposition(calls) else { return };
        let callers_site = self.spans[caller].site;
        let stays = |span: &OpenSpan| span.site == callers_site || span.site == site && span.text != text;
        let inlined = self.spans[caller + 1..].iter().take_while(|span| stays(span)).count();
        self.leave_above(caller + 1 + inlined, (thread, time), ended);
    }

    /// Leaves functions from a place on, without a record.
    fn leave_above(&mut self, place: usize, (thread, time): (u32, u64), ended: &mut Vec<ProgramSpan>) {
        for above in (place..self.spans.len()).rev() {
            if matches!(self.spans[above].text, ProgramText::Function(..)) {
                self.end_at(above, thread, time, true, ended);
            }
        }
    }

    /// Ends the span at a place. Those within it that go on cross it, and get lanes of their own.
    fn end_at(&mut self, place: usize, thread: u32, time: u64, has_no_end: bool, ended: &mut Vec<ProgramSpan>) {
        for above in place + 1..self.spans.len() {
            if self.spans[above].lane == 0 {
                let is_free = |lane: &u32| self.spans.iter().all(|span| span.lane != *lane);
                self.spans[above].lane = (1..).find(is_free).unwrap_or(u32::MAX);
            }
        }
        let OpenSpan { text, from, lane, .. } = self.spans.remove(place);
        ended.push(ProgramSpan { thread, text, from, to: time, is_cut: (false, has_no_end), has_no_end, lane });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ProgramText = ProgramText::Name(1);
    const B: ProgramText = ProgramText::Name(2);

    /// Text, times, whether the end is missing, and lane.
    type Drawn = (ProgramText, u64, u64, bool, u32);

    fn drawn(ended: &[ProgramSpan]) -> Vec<Drawn> {
        ended.iter().map(|span| (span.text, span.from, span.to, span.has_no_end, span.lane)).collect()
    }

    #[test]
    fn spans_that_cross_have_lanes_and_those_without_an_end_are_marked() {
        let (mut spans, mut ended) = (OpenSpans::default(), Vec::new());
        spans.begin(A, 1);
        spans.begin(B, 2);
        assert!(spans.end(A, 0, 3, &mut ended));
        spans.begin(A, 4);
        assert!(spans.end(B, 0, 5, &mut ended));
        assert!(!spans.end(B, 0, 6, &mut ended));
        spans.end_all(0, 7, &mut ended);
        assert_eq!(drawn(&ended), [(A, 1, 3, false, 0), (B, 2, 5, false, 1), (A, 4, 7, true, 2)]);
    }

    /// Functions at 0x100, 0x200 …, each with the code up to the next.
    fn is_in(_: u32, function: u64, site: u64) -> bool {
        (function..function + 0x100).contains(&site)
    }

    fn function(address: u64) -> ProgramText {
        ProgramText::Function(0, address, 0)
    }

    #[test]
    fn calls_and_ends_of_callers_show_which_functions_were_left_by_a_jump() {
        let (mut spans, mut ended) = (OpenSpans::default(), Vec::new());
        let mut time = 0;
        let mut enter = |spans: &mut OpenSpans, address, site, ended: &mut Vec<ProgramSpan>| {
            time += 1;
            spans.enter((0, address, site), (0, time), &is_in, ended);
            spans.spans.len()
        };
        // Something that is not recorded calls 0x100, that 0x200, that itself, and 0x300 jumps back to the first.
        assert_eq!(enter(&mut spans, 0x100, 0x9000, &mut ended), 1);
        assert_eq!(enter(&mut spans, 0x200, 0x110, &mut ended), 2);
        assert_eq!(enter(&mut spans, 0x200, 0x220, &mut ended), 3);
        assert_eq!(enter(&mut spans, 0x300, 0x210, &mut ended), 4);
        assert_eq!(enter(&mut spans, 0x200, 0x110, &mut ended), 2);
        assert_eq!(
            drawn(&ended),
            [(function(0x300), 4, 5, true, 0), (function(0x200), 3, 5, true, 0), (function(0x200), 2, 5, true, 0)]
        );
        // 0x400 is inlined in 0x200 and calls 0x500, which a function without records calls back.
        ended.clear();
        assert_eq!(enter(&mut spans, 0x400, 0x110, &mut ended), 3);
        assert_eq!(enter(&mut spans, 0x500, 0x230, &mut ended), 4);
        assert_eq!(enter(&mut spans, 0x600, 0x9000, &mut ended), 5);
        assert!(ended.is_empty());
        assert!(spans.leave((function(0x200), 0x110), 0, 20, &mut ended));
        assert!(!spans.leave((function(0x200), 0x110), 0, 20, &mut ended));
        let texts: Vec<ProgramText> = ended.iter().map(|span| span.text).collect();
        assert_eq!(texts, [0x600, 0x500, 0x400, 0x200].map(function));
    }
}
