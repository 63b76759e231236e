//! What command lines mean, and the messages about wrong ones.

use spec::size::SizeLimit;

use super::event_list::recorded_event_set;
use super::*;

fn parse(words: &[&str]) -> Result<Options, clap::Error> {
    let words = ["trace-cat"].iter().chain(words).map(OsString::from);
    match Task::parse(words, Some("/trace".into()), false)? {
        Task::Read(options) => Ok(options),
        Task::Run(options) => panic!("{options:?}"),
        Task::Report(options) => panic!("{options:?}"),
        Task::Open(options) => panic!("{options:?}"),
        other @ (Task::Set(_) | Task::Status(_)) => panic!("{other:?}"),
    }
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
        let Ok(Task::Read(options)) = Task::parse(["trace-cat".into()], directory, false) else { panic!() };
        assert_eq!(options.paths, [PathBuf::from(".")]);
    }
}

#[test]
fn all_options() {
    let options =
        parse(&["-F", "text", "-e", "-thr_self", "-e-cond", "-p7", "-p", "0000008", "-l", "9", "-o", "out", "d"]);
    let Options { selection, printing, .. } = options.unwrap();
    assert_eq!((printing.format, selection.pids, selection.lwps), (OutputFormat::Text, vec![7, 8], vec![9]));
    assert_eq!(printing.output, Some("out".into()));
    let events = selection.events.unwrap();
    assert!(!events.contains(spec::id::THR_SELF) && !events.contains(spec::id::COND_WAIT));
    assert!(events.contains(spec::id::MUTEX_LOCK));
}

#[test]
fn filters_of_calls() {
    let words = "--tid 0x7fc5de3f86c0 --tid 0x5 --object 0xff --blocked --longer 2.5us d";
    let selection = parse(&words.split(' ').collect::<Vec<_>>()).unwrap().selection;
    assert_eq!((selection.tids, selection.objects), (vec![0x7fc5_de3f_86c0, 5], vec![255]));
    assert_eq!((selection.blocked, selection.longer), (true, Some(2500)));
}

#[test]
fn arrangements() {
    let Options { arrangement, printing, .. } = parse(&["--sort", "event", "--split", "object", "-o", "d"]).unwrap();
    assert_eq!((arrangement.sort, arrangement.split), (SortOrder::Event, Some(SplitBy::Object)));
    assert_eq!(printing.output, Some("d".into()));
    assert_eq!(parse(&[]).unwrap().arrangement.sort, SortOrder::Time);
}

#[test]
fn on_a_terminal_text_is_the_default() {
    for (words, expected) in [
        (&["d"][..], OutputFormat::Text),
        (&["-F", "raw", "d"], OutputFormat::Raw),
        (&["-o", "out", "d"], OutputFormat::Raw),
        (&["--split", "lwp", "-o", "out", "d"], OutputFormat::Raw),
        (&["--follow", "-o", "journal", "d"], OutputFormat::Text),
        (&["--time", "abs", "d"], OutputFormat::Text),
    ] {
        let words = ["trace-cat"].iter().chain(words).map(OsString::from);
        let Ok(Task::Read(options)) = Task::parse(words, None, true) else { panic!() };
        assert_eq!(options.printing.format, expected);
    }
    assert_eq!(parse(&["d"]).unwrap().printing.format, OutputFormat::Raw);
}

#[test]
fn recovery_takes_paths_only() {
    let options = parse(&["--recover", "a"]).unwrap();
    assert_eq!((options.recover, options.paths), (true, vec![PathBuf::from("a")]));
    assert!(!parse(&["a"]).unwrap().recover);
}

#[test]
fn wrong_usage_is_reported_with_the_right_word() {
    for (words, expected) in [
        (&["-e", "mutx"][..], "'mutex'"),
        (&["-e", "mutex:-cond_wiat"], "'cond_wait'"),
        (&["--formt", "text"], "'--format'"),
        (&["-F", "txt"], "'text'"),
        (&["-p", "x"], "'x'"),
        (&["-l", "-5"], "-5"),
        (&["--tid", "19955"], "'--lwp'"),
        (&["--tid", "0xyz"], "0x7fc5de3f86c0"),
        (&["--object", "main_lock"], "0x559469ed90a0"),
        (&["--longer", "5"], "2.5us"),
        (&["--longer", "-1ms"], "2.5us"),
        (&["--follow", "--window", "-1s"], "2.5us"),
        (&["--since", "5s"], "'+5s'"),
        (&["--until", "1.4"], "'+1.4'"),
        (&["--until", "-1s"], "+1.5s"),
        (&["--since", "-5"], "+1.5s"),
        (&["--since", "2026-02-31"], "2026-11-21"),
        (&["--bloked"], "'--blocked'"),
        (&["--sort", "tim"], "'time'"),
        (&["--split", "lwpp", "-o", "d"], "'lwp'"),
        (&["--split", "lwp"], "--output"),
        (&["--split", "lwp", "-o", "d", "-F", "text"], "--format"),
        (&["--recover", "-F", "raw"], "--recover"),
        (&["-o", "out", "--recover"], "--recover"),
    ] {
        let error = parse(words).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn help_is_short_or_long() {
    let [short, long] = ["-h", "--help"].map(|word| parse(&[word]).unwrap_err());
    assert_eq!((short.exit_code(), long.exit_code()), (0, 0));
    assert!(!short.to_string().contains("Exit status") && long.to_string().contains("Exit status"));
}

fn parse_run(words: &[&str]) -> Result<RunOptions, clap::Error> {
    let words = ["trace-cat", "run"].iter().chain(words).map(OsString::from);
    match Task::parse(words, Some("/trace".into()), false)? {
        Task::Run(options) => Ok(options),
        Task::Read(options) => panic!("{options:?}"),
        Task::Report(options) => panic!("{options:?}"),
        Task::Open(options) => panic!("{options:?}"),
        other @ (Task::Set(_) | Task::Status(_)) => panic!("{other:?}"),
    }
}

#[test]
fn what_follows_the_program_is_its_own() {
    for words in [&["-d", "t", "sort", "-d", "--only", "--"][..], &["-d", "t", "--", "sort", "-d", "--only", "--"]] {
        let options = parse_run(words).unwrap();
        assert_eq!(options.command, ["sort", "-d", "--only", "--"]);
        assert_eq!((options.directory, options.recording.only.len()), (Some("t".into()), 0));
    }
    assert_eq!(parse_run(&["--", "-x"]).unwrap().command, ["-x"]);
}

#[test]
fn all_options_of_run() {
    let words = "-e mutex -e -mutex_init --only a --only b --level blocked --ring 1M --max 2G --detail --force \
                 --library l.so -o out -F text p";
    let RunOptions { recording, format, output, library, force, .. } =
        parse_run(&words.split_whitespace().collect::<Vec<_>>()).unwrap();
    assert_eq!(recording.events, ["mutex", "-mutex_init"]);
    assert_eq!((recording.only, recording.level), (vec!["a".into(), "b".into()], Some(RecordingLevel::Blocked)));
    let max = SizeLimit { bytes: 2 << 30, of_directory: false };
    assert_eq!((recording.ring, recording.max), (Some(1 << 20), Some(max)));
    assert!(recording.detail && !recording.unbuffered && force);
    let last = |words: &[&str]| parse_run(words).map(|run| (run.recording.detail, run.recording.no_detail)).unwrap();
    assert_eq!(last(&["--detail", "--no-detail", "p"]), (false, true));
    assert_eq!(last(&["--for", "contention", "--no-detail", "p"]), (false, true));
    assert_eq!((format, output), (OutputFormat::Text, Some("out".into())));
    assert_eq!(library, Some("l.so".into()));
    assert!(parse_run(&["--unbuffered", "p"]).unwrap().recording.unbuffered);
}

#[test]
fn a_purpose_sets_what_is_not_given() {
    let recording = |words: &[&str]| parse_run(&[words, &["p"]].concat()).unwrap().recording;
    let contention = recording(&["--for", "contention"]);
    assert_eq!((contention.level, contention.detail), (Some(RecordingLevel::Blocked), true));
    assert_eq!((contention.stack, recording(&["--for", "contention", "--stack=5"]).stack), (Some(32), Some(5)));
    assert_eq!((recording(&["--stack"]).stack, recording(&[]).stack), (Some(32), None));
    assert_eq!(recording(&["--for", "contention", "--level", "all"]).level, Some(RecordingLevel::All));
    let set = |words: &[&str]| recorded_event_set(&recording(words).event_list().unwrap()).unwrap();
    let timeline = set(&["--for", "timeline"]);
    assert!(timeline.contains(spec::id::MUTEX_LOCK) && timeline.contains(spec::id::THR_SETNAME));
    assert!(!timeline.contains(spec::id::THR_SELF) && !timeline.contains(spec::id::THR_GETSPECIFIC));
    let timeline = set(&["--for", "timeline", "-e", "thread"]);
    assert!(timeline.contains(spec::id::THR_CREATE) && !timeline.contains(spec::id::THR_SELF));
    assert!(!timeline.contains(spec::id::MUTEX_LOCK));
    let everything = set(&["--for", "everything"]);
    let mut events = spec::tables::EVENTS.iter().filter(|event| (1..=12).contains(&event.category));
    assert!(events.all(|event| everything.contains_numbers(event.category, event.number)));
    assert_eq!(recording(&["--for", "everything"]).level, Some(RecordingLevel::All));
    assert_eq!(recording(&["--for", "flight"]).ring, Some(1 << 20));
    assert_eq!(recording(&["--for", "flight", "--ring", "64K"]).ring, Some(64 << 10));
}

#[test]
fn wrong_usage_of_run_is_reported_with_the_right_word() {
    for (words, expected) in [
        (&[][..], "<PROGRAM>"),
        (&["--onyl", "x", "p"], "'--only'"),
        (&["-e", "mutexx:cond", "p"], "'mutex'"),
        (&["--level", "blokced", "p"], "'blocked'"),
        (&["--ring", "1K", "p"], "between 64K and 1G"),
        (&["--max", "many", "p"], "500M, or 2G/dir"),
        (&["--ring", "1M", "--unbuffered", "p"], "cannot be used with"),
        (&["-F", "text", "p"], "--output"),
        (&["--for", "contentoin", "p"], "'contention'"),
        (&["--stack=0", "p"], "0 is not in 1..=64"),
        (&["--stack=65", "p"], "65 is not in 1..=64"),
        (&["--for", "flight", "--unbuffered", "p"], "--for flight cannot be used with"),
    ] {
        let error = parse_run(words).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let text = error.to_string();
        assert!(text.contains(expected), "{words:?}: {text}");
        // The usage, where there is one, is that of run.
        assert_eq!(text.contains("Usage:"), text.contains("Usage: trace-cat run"), "{words:?}: {text}");
    }
}

#[test]
fn run_is_a_command_only_in_the_first_place() {
    assert_eq!(parse(&["./run"]).unwrap().paths, [PathBuf::from("./run")]);
    assert_eq!(parse(&["a", "run"]).unwrap().paths, ["a", "run"].map(PathBuf::from));
    assert_eq!(parse(&["-F", "text", "run"]).unwrap().paths, [PathBuf::from("run")]);
    assert_eq!(parse(&["./help"]).unwrap().paths, [PathBuf::from("./help")]);
}

#[test]
fn record_is_another_word_for_run() {
    let Ok(Task::Run(options)) =
        Task::parse(["trace-cat", "record", "-d", "t", "sort"].map(OsString::from), None, false)
    else {
        panic!()
    };
    assert_eq!((options.command, options.directory), (vec!["sort".into()], Some("t".into())));
}

#[test]
fn help_is_a_command() {
    for (words, expected) in [
        (&["help"][..], "Usage: trace-cat "),
        (&["help", "run"], "Usage: trace-cat run "),
        (&["help", "record"], "Usage: trace-cat run "),
        (&["help", "report"], "Usage: trace-cat report "),
    ] {
        let error = parse(words).unwrap_err();
        assert!(error.exit_code() == 0 && error.to_string().contains(expected), "{words:?}: {error}");
    }
    let error = parse(&["help", "reprot"]).unwrap_err();
    assert!(error.exit_code() == 2 && error.to_string().contains("'reprot'"), "{error}");
}

#[test]
fn timelines_refuse_terminals_and_what_they_have_no_use_for() {
    let refused = |words: &[&str], is_terminal| {
        let words = ["trace-cat"].iter().chain(words).map(OsString::from);
        Task::parse(words, None, is_terminal).err().map(|error| error.to_string())
    };
    for format in ["perfetto", "chrome"] {
        let of = |more: &[&str], is_terminal| refused(&[&["-F", format], more].concat(), is_terminal);
        assert_eq!(of(&[], false), None);
        assert_eq!(of(&["-o", "file"], true), None);
        // With --follow, FILE of -o is a journal.
        assert_eq!(of(&["--follow", "-o", "file"], false), None);
        for (more, way) in
            [(&[][..], "-o trace."), (&["--follow"], ">trace."), (&["--follow", "-o", "file"], ">trace.")]
        {
            let message = of(more, true).unwrap();
            assert!(message.contains(&format!("not for terminals: write it to a file with {way}")), "{message}");
        }
        for more in [&["--head", "3"][..], &["--tail", "3"], &["--sort", "tid"], &["--stat"], &["--time", "abs"]] {
            assert!(of(more, false).is_some(), "{more:?}");
        }
    }
    assert!(refused(&["-F", "paje", "--follow"], false).is_some());
    assert_eq!(refused(&["-F", "help"], true), None);
}

#[test]
fn open_names_its_file_after_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let parse = |words: &[&str]| {
        let words = ["trace-cat", "open"].iter().chain(words).map(OsString::from);
        match Task::parse(words, Some(directory.path().into()), true) {
            Ok(Task::Open(options)) => options.printing.output.unwrap(),
            other => panic!("{other:?}"),
        }
    };
    let name = directory.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(parse(&[]), PathBuf::from(format!("{name}.pftrace")));
    assert_eq!(parse(&["-o", "file", "--since", "+1s"]), PathBuf::from("file"));
}
