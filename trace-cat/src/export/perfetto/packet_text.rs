//! The tracks of a file, and the texts of its packets.

use super::interned_texts::TextUse;
use crate::export::program_event::ProgramText;
use crate::export::scene::TimelineScene;
use crate::export::waiting_counts::CounterSubject;

/// A track of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Track {
    Process(u32),
    /// Process and LWP.
    Thread(u32, u32),
    /// Process, LWP, what is on it, and its number.
    Lane(u32, u32, &'static str, u32),
    /// Process and name.
    UserCounter(u32, ProgramText),
    Counter(CounterSubject),
}

/// What a text in a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketText {
    Category(&'static str),
    ArgumentName(&'static str),
    Argument(&'static str),
    /// An object, or the end of a thread, and which edges cut the wait.
    Wait(Option<u32>, bool, bool),
    Hold(u32, bool, bool),
    Address(u32),
    Place(u32),
    Thread(u32),
    /// An event of the program of the process with this ID, and which edges cut it if it is a span.
    Program(u32, ProgramText, bool, bool),
}

impl PacketText {
    /// The text, and what it is used for.
    pub fn text(self, scene: &TimelineScene) -> (TextUse, String) {
        // The dots show in the picture that a slice is cut off.
        let cut = |name: String, begins_before, ends_after| {
            let [before, after] =
                [(begins_before, "… "), (ends_after, " …")].map(|(cut, dots)| if cut { dots } else { "" });
            format!("{before}{name}{after}")
        };
        match self {
            PacketText::Category(name) => (TextUse::Category, name.to_owned()),
            PacketText::ArgumentName(name) => (TextUse::ArgumentName, name.to_owned()),
            PacketText::Argument(text) => (TextUse::Argument, text.to_owned()),
            PacketText::Wait(object, before, after) => {
                (TextUse::EventName, cut(scene.wait_name(object), before, after))
            }
            PacketText::Hold(object, before, after) => {
                (TextUse::EventName, cut(format!("hold {}", scene.object_name(object)), before, after))
            }
            PacketText::Address(object) => (TextUse::Argument, format!("{:#x}", scene.object(object).address)),
            PacketText::Place(site) => (TextUse::Argument, scene.place(site).unwrap_or_default()),
            PacketText::Thread(thread) => (TextUse::Argument, scene.names.thread_label(thread)),
            PacketText::Program(pid, text, before, after) => {
                (TextUse::EventName, cut(scene.program_text(pid, text), before, after))
            }
        }
    }
}
