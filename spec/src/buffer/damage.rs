//! What can be wrong with a trbuf.

use core::fmt;

use super::mapped::VERSION;

/// What is wrong with a trbuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It ends within a header.
    Short,
    /// It does not begin with [`MAGIC`](super::MAGIC): its owner died while it made the file, or it is another kind of
    /// file.
    Magic,
    /// Its layout has this number, which is not [`VERSION`].
    Version(u32),
    /// Its rings would have this many bytes, which is not one of [`RING_SIZES`](super::RING_SIZES) or not a multiple of a
    /// page.
    Ring(u64),
    /// The words of this region point outside of it.
    Region(usize),
    /// The text of this region does not consist of complete records.
    Text(usize),
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Short => write!(out, "shorter than its header"),
            Damage::Magic => write!(out, "not a finished trbuf"),
            Damage::Version(version) => write!(out, "layout version {version}, expected {VERSION}"),
            Damage::Ring(size) => write!(out, "rings of {size} bytes"),
            Damage::Region(region) => write!(out, "region {region} has impossible bounds"),
            Damage::Text(region) => write!(out, "region {region} does not consist of complete records"),
        }
    }
}
