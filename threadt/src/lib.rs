//! What a program records itself while `libthreadt.so` records it: spans, marks, counters, names of locks, and events with numbers.
//! `threadt.h` is the same for C and C++; threadt(3) describes it.
//!
//! There is nothing to link with: the references to libthreadt are weak, and without it (and on any machine other than x86-64 Linux)
//! a call is a test of a pointer. Stable Rust has no weak references, so each is an instruction in assembly, which reads the
//! address from the program's global offset table. All calls are safe in signal handlers, and leave errno as it is.
//!
//! ```
//! static WORK: threadt_events::Name = threadt_events::Name::new("work");
//! static DEPTH: threadt_events::Name = threadt_events::Name::new("queue depth");
//!
//! fn work(queue: &std::sync::Mutex<Vec<u32>>) {
//!     threadt_events::Name::new("queue").of_object(queue);
//!     let _span = WORK.span();
//!     DEPTH.counter(queue.lock().unwrap().len() as i64);
//! }
//! # work(&std::sync::Mutex::new(vec![1]));
//! ```

#![no_std]

use core::sync::atomic::AtomicU64;

/// Numbers of events from this one on are not the program's.
const NUMBERS: u8 = 90;

/// The address of a function of libthreadt, as a function pointer of the type; `None` without libthreadt.
macro_rules! find {
    ($symbol:literal as $type:ty) => {{
        #[cfg(all(target_arch = "x86_64", target_os = "linux", target_pointer_width = "64"))]
        {
            let address: usize;
            // SAFETY: reads an entry of the global offset table, which the linker makes for the weak reference: 0 where
            // nothing has the symbol.
            unsafe {
                core::arch::asm!(
                    concat!(".weak ", $symbol),
                    concat!("mov {}, qword ptr [rip + ", $symbol, "@GOTPCREL]"),
                    out(reg) address,
                    options(pure, nomem, nostack, preserves_flags),
                );
                // SAFETY: libthreadt exports functions of these types; `None` is 0.
                core::mem::transmute::<usize, Option<$type>>(address)
            }
        }
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_pointer_width = "64")))]
        {
            None::<$type>
        }
    }};
}

type PutEvent = extern "C" fn(u32, i64, i64, i64, i64, i64);
type PutNamed = unsafe extern "C" fn(*const u8, usize, *const AtomicU64, i64);

/// Records an event of the program's own. Of a number from 90 on nothing is recorded.
#[inline]
pub fn event(number: u8, arguments: [i64; 5]) {
    put_event(number, 0, arguments);
}

/// Records the first of the two records of a call, which readers pair.
#[inline]
pub fn event_entry(number: u8, arguments: [i64; 5]) {
    put_event(number, 1, arguments);
}

/// Records the second of the two records of a call.
#[inline]
pub fn event_return(number: u8, arguments: [i64; 5]) {
    put_event(number, 2, arguments);
}

#[inline(always)]
fn put_event(number: u8, which: u32, [a1, a2, a3, a4, a5]: [i64; 5]) {
    if let Some(put) = find!("threadt_put_event" as PutEvent)
        && number < NUMBERS
    {
        put(u32::from(number) | which << 8, a1, a2, a3, a4, a5);
    }
}

/// A name. As a `static` it costs least, because libthreadt keeps in it how the trace calls the name.
#[derive(Debug)]
pub struct Name<'a> {
    text: &'a str,
    id: AtomicU64,
}

macro_rules! put_named {
    ($symbol:literal, $name:expr, $value:expr) => {
        if let Some(put) = find!($symbol as PutNamed) {
            // SAFETY: the text lives as long as the name, and the word is an atomic for this text alone.
            unsafe { put($name.text.as_ptr(), $name.text.len(), &$name.id, $value) };
        }
    };
}

impl<'a> Name<'a> {
    /// The name with this text, of which the first 255 bytes count.
    pub const fn new(text: &'a str) -> Name<'a> {
        Name { text, id: AtomicU64::new(0) }
    }

    /// Records that this thread begins what has this name.
    #[inline]
    pub fn begin(&self) {
        put_named!("threadt_put_begin", self, 0);
    }

    /// Records that this thread ends what has this name.
    #[inline]
    pub fn end(&self) {
        put_named!("threadt_put_end", self, 0);
    }

    /// Records the beginning, and the end when the result is dropped.
    #[inline]
    #[must_use = "the span ends when this is dropped"]
    pub fn span(&self) -> Span<'_> {
        self.begin();
        Span { name: self }
    }

    /// Records that something happens.
    #[inline]
    pub fn mark(&self, value: i64) {
        put_named!("threadt_put_mark", self, value);
    }

    /// Records that what is counted under this name is `value` now.
    #[inline]
    pub fn counter(&self, value: i64) {
        put_named!("threadt_put_counter", self, value);
    }

    /// Gives this name to an object: a lock, a condition variable, a semaphore. Reports use it.
    #[inline]
    pub fn of_object<T: ?Sized>(&self, object: *const T) {
        put_named!("threadt_put_object", self, object.cast::<u8>() as i64);
    }
}

/// A span that ends when this is dropped.
#[derive(Debug)]
pub struct Span<'a> {
    name: &'a Name<'a>,
}

impl Drop for Span<'_> {
    #[inline]
    fn drop(&mut self) {
        self.name.end();
    }
}
