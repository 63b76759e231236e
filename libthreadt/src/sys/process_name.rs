//! The name of the process, which `top` and debuggers show.

use core::ffi::c_char;

use super::call::Result;
use super::open::read_proc;
use super::process::{process_id, thread_id, thread_name};

/// The name of the process, which is that of its main thread, NUL-terminated. Without /proc it is the calling thread's.
pub fn process_name() -> Result<[c_char; 16]> {
    if thread_id() == process_id() {
        return thread_name();
    }
    let mut name = [0; 16];
    // The kernel puts a line feed behind a name of at most 15 bytes, which may have some itself.
    match read_proc(c"/proc/self/comm", &mut name).map(|length| name.get_mut(..length).and_then(<[u8]>::last_mut)) {
        Ok(Some(line_feed)) => {
            *line_feed = 0;
            Ok(name.map(u8::cast_signed))
        }
        _ => thread_name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_keeps_its_name_whatever_its_threads_are_called() {
        let before = process_name();
        let renamed = std::thread::Builder::new().name("another\nname".to_owned());
        let names = renamed.spawn(|| (thread_name(), process_name())).unwrap().join().unwrap();
        assert_ne!(names.0, before);
        assert_eq!(names.1, before);
        let comm = std::fs::read("/proc/self/comm").unwrap();
        let expected = comm.iter().rev().skip(1).rev().map(|byte| byte.cast_signed()).chain([0; 16]).take(16);
        assert_eq!(before.unwrap().to_vec(), expected.collect::<Vec<_>>());
    }
}
