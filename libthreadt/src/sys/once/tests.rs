use super::*;

/// Another thread need not wait for the one that has left the work, and may not begin it anew.
#[test]
fn work_that_may_not_begin_is_anybodys() {
    let once = Once::new();
    let left = Holder::new(thread_id(), stack_pointer() - 4096);
    once.0.store(left.word(), Release);
    assert!(!once.run_unless_asleep(Reentry::BySignals, u64::MAX, || false, |_| (), || unreachable!()));
    assert!(!once.is_busy() && !once.has_failed());
    assert!(std::thread::scope(|scope| scope.spawn(|| once.run(|| true)).join().unwrap()));
}

/// A thread that computes instead may return to the work: its result does not count any more.
#[test]
fn work_of_a_thread_that_computes_is_taken_over() {
    let (once, is_done, taken_from) = (Once::new(), AtomicU32::new(0), AtomicU32::new(0));
    let work = || {
        while is_done.load(Acquire) == 0 {
            std::hint::spin_loop();
        }
        false
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| (thread_id(), once.run(work)));
        while !once.is_busy() {
            std::hint::spin_loop();
        }
        let note = |lwp| taken_from.store(lwp, Relaxed);
        assert!(once.run_unless_asleep(Reentry::BySignals, u64::MAX, || true, note, || true));
        is_done.store(1, Release);
        assert_eq!(first.join().unwrap(), (taken_from.load(Relaxed), true));
    });
}

/// Without patience a thread that sleeps does not keep its work either; and it may still come back to it.
#[test]
fn work_of_a_thread_that_sleeps_is_taken_over() {
    for patience in [0, 1] {
        let (once, taken_from) = (Once::new(), AtomicU32::new(0));
        let (begin, begun) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let work = move || {
            begin.send(thread_id()).unwrap();
            ended.recv().is_err()
        };
        std::thread::scope(|scope| {
            let first = scope.spawn(|| once.run(work));
            let sleeper = begun.recv().unwrap();
            let take_over = || {
                let note = |lwp| taken_from.store(lwp, Relaxed);
                once.run_unless_asleep(Reentry::BySignals, patience, || true, note, || true)
            };
            // The first time it is found to sleep, then to sleep for longer than a nanosecond.
            assert!(take_over() || patience == 1 && take_over());
            assert_eq!(taken_from.load(Relaxed), sleeper);
            drop(end);
            assert!(first.join().unwrap() && once.is_done());
        });
    }
}

#[test]
fn work_is_done_once_and_does_not_wait_for_itself() {
    let once = Once::new();
    assert!(once.run_calling_others(|| {
        assert!(!once.run_calling_others(|| true), "re-entered");
        true
    }));
    assert!(once.run(|| unreachable!()));
    let once = Once::new();
    // As after a jump out of the work.
    let left = Holder::new(thread_id(), stack_pointer() - 4096);
    once.0.store(left.word(), Release);
    assert!(once.run(|| true), "work that was left does not begin anew");
    let once = Once::new();
    assert!(!once.run(|| false));
    assert!(!once.run(|| unreachable!()));
}

/// As after a jump to where the next call is made from deeper in the stack than the one that began the work.
#[test]
fn work_that_was_left_begins_anew_from_deeper_in_the_stack() {
    let once = Once::new();
    let left = Holder::new(thread_id(), stack_pointer() + 1024);
    once.0.store(left.word(), Release);
    assert!(!once.run_calling_others(|| true), "who called this may be at work");
    assert!(once.run(|| true));
}

#[test]
fn a_handler_does_not_begin_the_work_anew_that_it_has_interrupted() {
    static ONCE: Once = Once::new();
    static RESULT: AtomicU32 = AtomicU32::new(2);
    extern "C" fn run(_signal: libc::c_int) {
        RESULT.store(ONCE.run(|| true).into(), Relaxed);
    }
    assert!(ONCE.run(|| {
        #[expect(clippy::disallowed_methods, reason = "this thread of the test is meant to be interrupted here")]
        // SAFETY: the handler only begins work.
        unsafe {
            libc::signal(libc::SIGTTIN, run as *const () as libc::sighandler_t);
            libc::raise(libc::SIGTTIN);
        }
        true
    }));
    assert_eq!(RESULT.load(Relaxed), 0);
}

/// A signal handler forks, and both processes return into the work, which is the parent's alone.
#[test]
#[expect(clippy::disallowed_methods, reason = "the process is the test's own")]
fn a_child_that_was_forked_within_the_work_has_not_done_it() {
    let (once, mut child) = (Once::new(), 0);
    let done = once.run(|| {
        // SAFETY: the child makes system calls only.
        child = unsafe { libc::fork() };
        true
    });
    if child == 0 {
        // SAFETY: ends the child.
        unsafe { libc::_exit((done || once.is_done()).into()) };
    }
    let mut status = 0;
    // SAFETY: waits for the child of this test.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert!(done && once.is_done() && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
}
