//! Where a stack cannot be followed, or must not: the program does what it does natively, and the stack ends, marked.

use super::{Stack, names_of_frames, stacks_of};
use crate::harness::{Program, TestDirectory};

/// The stacks of the failed tries of a case, which prints the same natively.
fn stacks(case: &str) -> Vec<Stack> {
    let program = Program::with_flags("stack/hostile.c", &["-O1", "-fno-omit-frame-pointer"]);
    let test = TestDirectory::new("hostile-stacks");
    let native = test.native(&program).arg(case).run();
    native.success();
    let traced = test.traced(&program).arg(case).env("THR_TRACE_STACK", "64").run();
    traced.success();
    assert_eq!(traced.stdout_text(), native.stdout_text());
    stacks_of(&test.merged(), "mutex_trylock")
}

#[test]
fn generated_code_ends_the_stack_unless_it_has_a_frame() {
    let [with_frame, without] = stacks("generated").try_into().unwrap();
    assert!(!with_frame.is_cut && with_frame.addresses.len() > 4, "{with_frame:x?}");
    // The function that fails, and the generated code.
    assert!(without.is_cut && without.addresses.len() == 2, "{without:x?}");
}

/// A just-in-time compiler frees its code before the process ends. What a damaged stack has is no code.
#[test]
fn code_that_is_removed_is_known_as_code_that_was_made() {
    for (case, made, unknown) in [("removed", 6, 0), ("overwritten", 0, 1)] {
        let program = Program::with_flags("stack/hostile.c", &["-O1", "-fno-omit-frame-pointer"]);
        let test = TestDirectory::new("removed-code");
        test.traced(&program).arg(case).env("THR_TRACE_STACK", "16").run().success();
        let output = test.trace_cat().args(["-F", "text", "--stack", "-e", "mutex_trylock"]).run();
        let text = output.success().stdout_text();
        let count =
            |place| text.lines().filter(|line| line.trim_start().starts_with('#') && line.contains(place)).count();
        assert_eq!((count("[jit]"), count("[unmapped]")), (made, unknown), "{text}");
    }
}

/// No hook shows that. So often as mappings are read, each stack has the name of its file; later ones have none that is wrong.
#[test]
fn a_file_that_is_mapped_at_the_address_of_another_one_has_its_own_name() {
    for (count, certain) in [(5, 10), (300, 500)] {
        let program = Program::with_flags("stack/hostile.c", &["-O1", "-fno-omit-frame-pointer"]);
        let test = TestDirectory::new("mapped-files");
        let run = test.traced(&program).args(["mapped", &count.to_string()]).current_dir(test.directory());
        run.env("THR_TRACE_STACK", "16").run().success();
        let output = test.trace_cat().args(["-F", "text", "--stack", "-e", "mutex_trylock"]).run();
        let text = output.success().stdout_text();
        let frames: Vec<&str> = text.lines().filter_map(|line| line.trim_start().strip_prefix("#1  ")).collect();
        assert_eq!(frames.len(), 2 * count);
        let names = ["first+0x1006", "first+0x1006", "second+0x1006", "second+0x1006"];
        let wrong = |(frame, name): &(&&str, &str)| **frame != *name && !frame.ends_with(" or another library");
        let wrong: Vec<_> = frames.iter().zip(names.into_iter().cycle()).filter(wrong).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        let unsure = frames.iter().filter(|frame| frame.contains(" or ")).count();
        assert!(frames.len() - unsure >= certain, "{unsure} of {count}");
    }
}

#[test]
fn a_stack_at_the_end_of_what_is_mapped_is_left_in_time() {
    let stacks = stacks("edge");
    assert_eq!(stacks.len(), 8);
    assert!(stacks.iter().all(|stack| stack.is_cut && stack.addresses.len() >= 2), "{stacks:x?}");
}

/// The program may serve the fault, also in the thread whose stack it is. What a stack has of frames has been touched.
#[test]
fn what_is_above_a_stack_is_not_touched() {
    for flag in ["-fomit-frame-pointer", "-fno-omit-frame-pointer"] {
        let program = Program::with_flags("stack/untouched.c", &["-O1", flag]);
        let test = TestDirectory::new("untouched");
        test.native(&program).run().success();
        let output = test.traced(&program).env("THR_TRACE_STACK", "32").run();
        assert_eq!(output.success().stdout_text(), "0\n0\n");
        let stacks = stacks_of(&test.merged(), "mutex_trylock");
        let names = names_of_frames(&test);
        assert!(stacks.len() == 2 && stacks.iter().all(|stack| stack.is_cut), "{stacks:x?}");
        assert_eq!(names[..3], ["try", "fail", "coroutine"]);
    }
}

/// Its frame pointers lead to the stack of the thread that has made it.
#[test]
fn a_coroutine_does_not_continue_in_its_thread() {
    let [coroutine] = stacks("coroutine").try_into().unwrap();
    assert!(coroutine.is_cut && coroutine.addresses.len() == 2, "{coroutine:x?}");
}

/// Its frame is on the coroutine's stack, and leads to functions that have returned.
#[test]
fn what_a_handler_has_interrupted_that_has_returned_is_not_in_the_stack() {
    let test = TestDirectory::new("signal-coroutine");
    let program = Program::with_flags("stack/signal_coroutine.c", &["-O1"]);
    test.traced(&program).env("THR_TRACE_STACK", "32").run().success();
    let names = names_of_frames(&test);
    assert_eq!(names[..2], ["fail", "begin"], "{names:?}");
    assert!(names.len() <= 4 && names.last().unwrap() == "[could not be followed further]", "{names:?}");
}

#[test]
fn a_handler_on_an_alternate_stack_is_left_for_stacks_only() {
    let stacks = stacks("lost");
    assert_eq!(stacks.len(), 10);
    // Of what is in place of a stack words may be taken for frames.
    assert!(stacks.iter().all(|stack| stack.addresses.len() >= 3), "{stacks:x?}");
    assert!(stacks.iter().filter(|stack| stack.is_cut).count() >= 7, "{stacks:x?}");
}

#[test]
fn an_overwritten_stack_ends() {
    let [nowhere, itself] = stacks("overwritten").try_into().unwrap();
    assert!(nowhere.is_cut && nowhere.addresses.last() == Some(&0x4141_4141_4141_4141), "{nowhere:x?}");
    assert!((3..64).contains(&itself.addresses.len()), "{itself:x?}");
}

#[test]
fn handlers_children_and_cancelled_threads_do_as_natively() {
    // The frames of the handler, the one that the kernel has made, and those of what it has interrupted, up to the first.
    let alternate = stacks("alternate");
    assert!(!alternate[0].is_cut && alternate[0].addresses.len() >= 7, "{alternate:x?}");
    assert!(stacks("child").iter().all(|stack| !stack.is_cut && stack.addresses.len() > 3));
    assert!(stacks("cancelled").is_empty());
}

#[test]
fn small_stacks_suffice() {
    let program = Program::c("hostile/small_stacks.c");
    let test = TestDirectory::new("small-stacks");
    let output = test.traced(&program).env("THR_TRACE_STACK", "64").run();
    output.success();
    assert_eq!(output.stdout_text(), "done\n");
    assert!(!test.merged().of("trace_stack").is_empty());
}

#[test]
fn threads_that_hang_have_their_stacks() {
    let test = TestDirectory::new("deadlock");
    let program = Program::with_flags("stack/deadlock.c", &["-O2", "-fomit-frame-pointer"]);
    let mut program = test.traced(&program).env("THR_TRACE_STACK", "16").spawn();
    program.wait_for("ready\n");
    let waits = || {
        let stacks = stacks_of(&test.merged(), "mutex_lock");
        (stacks.len() == 2).then_some(stacks)
    };
    let running = (0..1000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        waits()
    });
    running.expect("both threads wait");
    program.signal(libc::SIGKILL);
    let output = program.wait();
    output.killed(libc::SIGKILL);
    let stacks = waits().expect("both threads still have their stacks");
    let functions: Vec<u64> = output
        .stdout_text()
        .lines()
        .next()
        .unwrap()
        .split(' ')
        .map(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap())
        .collect();
    for stack in stacks {
        assert!(!stack.is_cut);
        for (address, function) in stack.addresses.iter().zip(&functions) {
            // A function of this program is shorter.
            assert!((*function..*function + 256).contains(address), "{stack:x?} {functions:x?}");
        }
    }
}
