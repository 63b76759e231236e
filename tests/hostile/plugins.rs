//! Libraries that come and go while the program runs.

use super::super::harness::{Program, TestDirectory};
use super::traced_mutexes;

/// The plug-in starts a thread when it is loaded, joins it when it is unloaded, and is mapped somewhere else each time:
/// the recorder must keep nothing that points into it. The program's own dlerror is left alone.
#[test]
fn a_library_with_a_thread_is_loaded_and_unloaded() {
    let plugin = Program::with_flags("hostile/plugin.c", &["-shared", "-fPIC"]);
    let program = Program::c("hostile/loader.c");
    // With RTLD_DEEPBIND the library's calls go to libc at once, past every preloaded library.
    for (deep, plugin_pairs) in [(false, 1 + 100 + 10 + 50 + 2), (true, 0)] {
        let test = TestDirectory::new("plugin");
        let arguments = || [plugin.path().to_str().unwrap(), "20"].into_iter().chain(deep.then_some("deep"));
        test.native(&program).args(arguments()).run().success();
        traced_mutexes(&test, &program).args(arguments()).run().success();
        super::assert_complete(&test, 3 * (20 * (plugin_pairs + 1) + 2));
    }
}
