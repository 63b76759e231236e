//! Stacks of functions of many shapes, frame by frame as the C library's unwinder finds them.

use super::stacks_of;
use crate::harness::{Program, TestDirectory, library};

/// The stacks that a program prints: `shape: 0x... 0x...`.
fn printed_stacks(text: &str) -> Vec<(String, Vec<u64>)> {
    let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("an address");
    let stack = |line: &str| {
        let (shape, addresses) = line.split_once(':')?;
        Some((shape.to_owned(), addresses.split_whitespace().map(address).collect()))
    };
    text.lines().filter_map(stack).collect()
}

/// Fails unless the stacks of the failed tries are the printed ones. The first address is in the function that prints.
pub fn assert_as_printed(output: &str, test: &TestDirectory, limit: usize) {
    let printed = printed_stacks(output);
    let recorded = stacks_of(&test.merged(), "mutex_trylock");
    assert_eq!(printed.len(), recorded.len());
    for ((shape, printed), recorded) in printed.iter().zip(&recorded) {
        let expected = &printed[..printed.len().min(limit - 1)];
        let found = &recorded.addresses[1..];
        assert!(found == expected, "{shape}: expected {expected:#x?}, found {found:#x?}");
        assert!(!recorded.is_cut || shape == "coroutine", "{shape} is cut");
    }
}

#[test]
fn stacks_are_those_that_the_unwinder_finds() {
    // Segments with gaps between them, as those of programs that want large pages.
    let gaps = ["-O2", "-fomit-frame-pointer", "-no-pie", "-Wl,-z,max-page-size=2097152"];
    let others =
        [&["-O2", "-fomit-frame-pointer"][..], &["-O2", "-fno-omit-frame-pointer"], &["-O0"], &["-O3", "-mavx2"]];
    for flags in others.into_iter().chain([&gaps[..]]) {
        let program = Program::with_flags("stack/shapes.cpp", flags);
        for limit in [1, 4, 5, 6, 64] {
            let test = TestDirectory::new("shapes");
            let output = test.traced(&program).env("THR_TRACE_STACK", limit.to_string()).run();
            output.success();
            assert_as_printed(output.stdout_text(), &test, limit);
        }
    }
}

#[test]
fn a_library_in_the_place_of_a_closed_one_has_its_own_rules() {
    let library = |flag: &str| Program::with_flags("stack/closed_library.c", &["-O2", "-shared", "-fPIC", flag]);
    let (small, large) = (library("-DSMALL"), library("-DLARGE"));
    let program = Program::with_flags("stack/hostile.c", &["-O2", "-fomit-frame-pointer"]);
    let test = TestDirectory::new("closed");
    let output = test.traced(&program).arg("closed").args([&small, &large]).env("THR_TRACE_STACK", "64").run();
    output.success();
    assert_as_printed(output.stdout_text(), &test, 64);
    assert_eq!(stacks_of(&test.merged(), "mutex_trylock").len(), 4);
}

/// Another thread may open a library, and call it, when the one that was there is unmapped and its `dlclose` has not returned yet; or
/// close one meanwhile, and read the mappings.
#[test]
fn a_library_that_is_opened_within_the_closing_of_another_one_has_its_own_rules() {
    let closed = |flag: &str| Program::with_flags("stack/closed_library.c", &["-O2", "-shared", "-fPIC", flag]);
    let (small, large) = (closed("-DSMALL"), closed("-DLARGE"));
    let interposer = Program::with_flags("stack/closing.c", &["-shared", "-fPIC", "-DINTERPOSER"]);
    for (case, calls) in [("within", 5), ("read", 3)] {
        let test = TestDirectory::new("closing");
        let run = test.traced(Program::with_flags("stack/closing.c", &["-O2", "-fomit-frame-pointer"])).arg(case);
        let run = run.env("LD_PRELOAD", format!("{}:{}", library().display(), interposer.path().display()));
        let output = run.args([&small, &large]).env("THR_TRACE_STACK", "64").run();
        let text = output.success().stdout_text();
        let printed = printed_stacks(text);
        assert_eq!(printed.len(), calls);
        // Else there is nothing to mix up.
        assert!(printed.iter().all(|(_, addresses)| addresses[..2] == printed[0].1[..2]), "{text}");
        assert_as_printed(text, &test, 64);
    }
}

/// Unwind information needs a register there that callees change: the signal's frame has it.
#[test]
fn a_signal_may_interrupt_a_function_that_probes_its_frame() {
    let test = TestDirectory::new("stack-probed");
    let program = Program::with_flags("stack/probed_frame.c", &["-O2", "-fstack-clash-protection"]);
    test.traced(&program).env("THR_TRACE_STACK", "32").env("THR_TRACE_EVENTS", "sema_trywait").run().success();
    let output = test.trace_cat().args(["-F", "text", "--stack"]).run();
    let text = output.success().stdout_text();
    let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count("could not be followed"), 0, "{text}");
    assert!(count("  probed ") > 50 && count("  main ") == 200, "{text}");
}
