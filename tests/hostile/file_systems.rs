//! Trace directories on overlays and in user space, and programs whose memory is limited by a control group.

use super::super::harness::{TestDirectory, Trace};
use super::{DONE, account, complains_once, merged_by_script, privately};

/// A container's own file system, without room: what does not fit is counted.
#[test]
fn a_full_overlay() {
    let test = TestDirectory::new("overlay");
    let script = "mkdir over; mount -t tmpfs -o size=3m none over; mkdir over/upper over/work over/lower; \
                  mount -t overlay -o lowerdir=over/lower,upperdir=over/upper,workdir=over/work none \"$trace\" || exit 77; \
                  status=0; $traced \"$0\" pairs 100 thread 40000 pairs 100 || status=$?; \
                  \"$cat\" \"$trace\" > \"$test/merged\"; exit $status";
    let Some(run) = privately(&test, script) else { return };
    let output = run.run();
    if !output.is_permitted("to mount an overlay") {
        return;
    }
    complains_once(&output, "recording stops");
    let account = account(&merged_by_script(&test));
    assert!(account.lost > 0, "the file system was not full");
    assert_eq!(account.records as u64 + account.lost, 3 * 40_200);
    assert_eq!(account.causes, [i64::from(libc::ENOSPC)]);
}

/// A file system whose server dies: nothing can be read or written any more, and memory that is mapped from it must not be
/// touched. One server reserves no space, the other one does.
#[test]
fn the_server_of_the_file_system_dies() {
    for (server, command) in [
        ("bindfs", "bindfs -f back \"$trace\""),
        ("fuse-overlayfs", "fuse-overlayfs -f -o lowerdir=low,upperdir=back,workdir=work \"$trace\""),
    ] {
        println!("{server}");
        let test = TestDirectory::new("fuse");
        let script = format!(
            "command -v {server} >&2 || exit 77; mkdir back low work; {command} >/dev/null 2>&1 & server=$!; \
             n=0; until grep -q \" $trace fuse\" /proc/mounts; do \
                 n=$((n + 1)); [ $n -lt 200 ] && kill -0 $server 2>/dev/null || exit 77; sleep 0.05; done; \
             status=0; $traced \"$0\" pairs 100 thread 2000 run \"kill -9 $server\" thread 400 threads 4 300 pairs 3000 \
                 || status=$?; \
             umount -l \"$trace\"; \"$cat\" back > \"$test/merged\" 2> \"$test/messages\"; exit $status"
        );
        let Some(run) = privately(&test, &script) else { return };
        let output = run.run();
        if !output.is_permitted(&format!("to mount by {server}")) {
            continue;
        }
        // ENOTCONN, or ECONNABORTED for a request that was under way.
        complains_once(&output, "cannot write to the trace in");
        let merged = std::fs::read(test.directory().join("merged")).unwrap();
        assert!(Trace::parse("merged", &merged).records.len() >= 3 * 2000, "what was written before is there");
        let messages = std::fs::read_to_string(test.directory().join("messages")).unwrap();
        assert!(messages.contains("had buffers in its own memory"), "{messages}");
    }
}

/// The pages of the trace count as the program's, but they can be written out: the program is not killed for them.
#[test]
fn a_control_group_at_its_memory_limit() {
    let test = TestDirectory::new("cgroup");
    // Another program that fills memory would prove nothing. On a tmpfs the trace cannot be written out.
    let script = "[ \"$(stat -f -c %T \"$trace\")\" != tmpfs ] || exit 77; \
                  v1=/sys/fs/cgroup/memory v2=/sys/fs/cgroup; \
                  if [ -e $v1/memory.limit_in_bytes ]; then root=$v1 limit=memory.limit_in_bytes; \
                  elif grep -q memory $v2/cgroup.subtree_control 2>/dev/null; then root=$v2 limit=memory.max; \
                  else exit 77; fi; \
                  group=$root/threadt-test-$$; mkdir $group || exit 77; \
                  status=0; sh -c 'echo 12M > $1/$2 && echo $$ > $1/cgroup.procs || exit 77; shift 2; exec \"$@\"' sh $group $limit \
                      $traced \"$0\" threads 8 40000 pairs 100 || status=$?; \
                  rmdir $group; exit $status";
    let Some(run) = privately(&test, script) else { return };
    let output = run.run();
    if !output.is_permitted("to make a control group") {
        return;
    }
    output.exited(DONE);
    let account = account(&test.merged());
    assert_eq!(account.records as u64 + account.lost, 3 * (8 * 40_000 + 100));
}
