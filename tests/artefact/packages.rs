//! What checks the packages before they are given to anybody: the scripts in `packaging`.

use std::fs;

use crate::harness::{CommandOutput, TestDirectory, library, repository};

fn run(test: &TestDirectory, script: &str, arguments: &[&str]) -> CommandOutput {
    test.native(repository().join("packaging").join(script)).args(arguments).run()
}

#[test]
fn a_file_that_needs_a_newer_glibc_is_refused() {
    let test = TestDirectory::new("needs-glibc");
    let library = library();
    let library = library.to_str().unwrap();
    let output = run(&test, "needs-glibc", &["2.28", library]);
    assert!(output.success().stdout_text().starts_with(&format!("{library}: glibc 2.")), "{output:?}");
    let output = run(&test, "needs-glibc", &["2.3", library]);
    output.exited(1);
    assert!(output.stderr_text().contains("newer than 2.3, for these symbols:\n"), "{output:?}");
    assert!(output.stderr_text().contains("(GLIBC_2."), "{output:?}");
    run(&test, "needs-glibc", &["2.28", "/dev/null"]).exited(1);
}

#[test]
fn packages_are_compared_file_by_file() {
    let test = TestDirectory::new("compare");
    let archive = |name: &str, content: &str, time: &str| {
        let directory = test.directory().join(name);
        fs::create_dir_all(directory.join("pack/bin")).unwrap();
        fs::write(directory.join("pack/bin/program"), content).unwrap();
        fs::write(directory.join("pack/text"), "text").unwrap();
        let archive = test.directory().join(format!("{name}.tar"));
        let tar = test.native("tar").arg("--create").arg("--directory").arg(directory).arg("--file").arg(&archive);
        tar.args(["--sort=name", "--owner=0", "--group=0", "--mtime", time, "pack"]).run().success();
        archive.into_os_string().into_string().unwrap()
    };
    let one = archive("one", "same", "@1000000000");
    let same = run(&test, "compare", &[&one, &archive("same", "same", "@1000000000")]);
    assert!(same.success().stdout_text().ends_with("  one.tar\n"), "{same:?}");
    let content = run(&test, "compare", &[&one, &archive("content", "sane", "@1000000000")]);
    let message = content.exited(1).stderr_text();
    assert!(message.contains("Files one/pack/bin/program and other/pack/bin/program differ\n"), "{message}");
    assert!(message.contains("char 3, line 1\n") || message.contains("byte 3, line 1\n"), "{message}");
    assert!(!message.contains("text"), "what is the same is not named: {message}");
    let time = run(&test, "compare", &[&one, &archive("time", "same", "@1000000001")]);
    let message = time.exited(1).stderr_text();
    assert!(message.contains("  other: ./pack/text ") && message.contains("1000000001"), "{message}");
}
