//! What command lines mean, and what is said of wrong ones.

use super::*;

fn parse(words: &[&str]) -> Result<Options, clap::Error> {
    let words = ["trace-cat"].iter().chain(words).map(OsString::from);
    Options::parse(words, Some("/trace".into()))
}

#[test]
fn the_table_of_options_is_consistent() {
    command().debug_assert();
}

#[test]
fn paths_default_to_the_environment_and_then_here() {
    assert_eq!(parse(&[]).unwrap().paths, [PathBuf::from("/trace")]);
    assert_eq!(parse(&["a", "b"]).unwrap().paths, [PathBuf::from("a"), PathBuf::from("b")]);
    for directory in [None, Some(OsString::new())] {
        let options = Options::parse(["trace-cat".into()], directory).unwrap();
        assert_eq!(options.paths, [PathBuf::from(".")]);
    }
}

#[test]
fn all_options() {
    let options =
        parse(&["-F", "text", "-e", "-thr_self", "-e-cond", "-p7", "-p", "0000008", "-l", "9", "-o", "out", "d"]);
    let Options { selection, printing, .. } = options.unwrap();
    assert_eq!((printing.format, selection.pids, selection.lwps), (Format::Text, vec![7, 8], vec![9]));
    assert_eq!(printing.output, Some("out".into()));
    let events = selection.events.unwrap();
    assert!(!events.contains(spec::id::THR_SELF) && !events.contains(spec::id::COND_WAIT));
    assert!(events.contains(spec::id::MUTEX_LOCK));
}

#[test]
fn recovery_takes_paths_only() {
    let options = parse(&["--recover", "a"]).unwrap();
    assert_eq!((options.recover, options.paths), (true, vec![PathBuf::from("a")]));
    assert!(!parse(&["a"]).unwrap().recover);
}

#[test]
fn wrong_usage_is_told_with_the_right_word() {
    for (words, part) in [
        (&["-e", "mutx"][..], "'mutex'"),
        (&["-e", "mutex:-cond_wiat"], "'cond_wait'"),
        (&["--formt", "text"], "'--format'"),
        (&["-F", "txt"], "'text'"),
        (&["-p", "x"], "'x'"),
        (&["-l", "-5"], "-5"),
        (&["--recover", "-F", "raw"], "--recover"),
        (&["-o", "out", "--recover"], "--recover"),
    ] {
        let error = parse(words).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn help_is_short_or_long() {
    let [short, long] = ["-h", "--help"].map(|word| parse(&[word]).unwrap_err());
    assert_eq!((short.exit_code(), long.exit_code()), (0, 0));
    assert!(!short.to_string().contains("Exit status") && long.to_string().contains("Exit status"));
}
