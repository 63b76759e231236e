//! Files that nobody can trust: names are looked up in a program, and in truncated and corrupted copies of it.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use super::code_maps::CodeMaps;
use super::symbolizer::Symbolizer;
use crate::testing::seeded_random::{SeededRandom, fuzz_time};

/// A small program with functions, an inlined one among them, and variables of several types.
const SOURCE: &str = "struct table { int count; struct { long words[5]; } locks[4]; } table; static long queue_lock;
    static inline __attribute__((always_inline)) void inner(volatile long *word) { ++*word; }
    __attribute__((noinline)) void outer(void) { inner(&queue_lock); inner(&table.locks[1].words[2]); }
    int main(void) { outer(); return 0; }";

fn compile(directory: &Path, flags: &[&str]) -> Vec<u8> {
    let source = directory.join("source.c");
    let program = directory.join("program");
    fs::write(&source, SOURCE).unwrap();
    // A split file is made in the working directory.
    let compiler = &mut Command::new("gcc");
    let compiled = compiler.current_dir(directory).args(["-g", "-O2"]).args(flags).arg(&source).arg("-o").arg(&program);
    assert!(compiled.status().unwrap().success());
    fs::read(program).unwrap()
}

/// The names of calls that return to some addresses of the code of a file, and of variables at some addresses behind it.
fn names(path: &Path, code: Range<u64>, data: Range<u64>) -> [Vec<String>; 2] {
    let symbols = Symbolizer::new(Vec::new(), &[]);
    let mut maps = CodeMaps::default();
    maps.add_line(b"map", format!("0x1000 0x100000 0x1000 - {}", path.display()).as_bytes(), 0);
    let functions = code.step_by(3).map(|address| symbols.call_name(maps.find(address, 1)));
    let variables = data.step_by(4).filter_map(|address| symbols.variable_name(&maps, (address, 1), 8));
    [functions.collect(), variables.collect()]
}

#[test]
fn the_functions_of_a_program_are_found_by_dwarf_or_by_symbols() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    for (flags, expected) in [
        (&["-static"][..], "inner source.c:2"),
        (&["-pie", "-Wl,--compress-debug-sections=zlib"], "inner source.c:2"),
        (&["-no-pie", "-gdwarf-4"], "inner source.c:2"),
        (&["-g0"], "outer program+0x"),
    ] {
        compile(directory.path(), flags);
        let [found, _] = names(&path, 0x1000..0x20_000, 0..0);
        assert!(found.iter().any(|name| name.starts_with(expected)), "{flags:?}");
    }
    for (flags, expected) in [
        (&["-gdwarf-4"][..], ["queue_lock", "table.locks[1].words[2]", "table.count"]),
        (&["-gsplit-dwarf"], ["queue_lock", "table.locks[1].words[2]", "table.count"]),
        (&["-gsplit-dwarf", "-gdwarf-4"], ["queue_lock", "table.locks[1].words[2]", "table.count"]),
        (&["-gdwarf-5", "-flto"], ["queue_lock", "table.locks[3].words[0]", "table.count"]),
        (&["-g0"], ["queue_lock", "table", "table+0x30"]),
    ] {
        compile(directory.path(), flags);
        let [_, found] = names(&path, 0..0, 0x3000..0x5000);
        assert!(expected.iter().all(|name| found.iter().any(|found| found == name)), "{flags:?}: {found:?}");
    }
}

#[test]
fn damaged_programs_do_not_make_the_reader_panic() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = SeededRandom::seeded("symbols", 22);
    let original = compile(directory.path(), &[]);
    let copy = directory.path().join("copy");
    let end = fuzz_time();
    let mut count = 0;
    while end.map_or(count < 300, |end| std::time::Instant::now() < end) {
        count += 1;
        let mut bytes = original.clone();
        for _ in 0..1 + random.below(12) {
            let at = random.below(bytes.len());
            bytes[at] = [random.next() as u8, 0, 0xff, bytes[at] ^ 1][random.below(4)];
        }
        if random.below(8) == 0 {
            bytes.truncate(random.below(bytes.len()));
        }
        fs::write(&copy, &bytes).unwrap();
        names(&copy, 0x1000..0x1200, 0x3e00..0x4200);
    }
}

#[test]
fn split_files_are_found_by_their_ids() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    let part = "table.locks[1].words[2]";
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        compile(directory.path(), &["-gsplit-dwarf", version]);
        let split = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
        let split = split.filter(|path| path.extension().is_some_and(|extension| extension == "dwo"));
        let [split] = &split.collect::<Vec<_>>()[..] else { panic!("one source has one split file") };
        let found = || {
            let [functions, variables] = names(&path, 0x1000..0x2000, 0x3000..0x5000);
            (functions.iter().any(|name| name == "inner source.c:2"), variables.iter().any(|name| name == part))
        };
        assert_eq!(found(), (true, true), "{version}");
        let other = fs::read(split).unwrap();
        // The dwp of binutils knows no later version.
        if version == "-gdwarf-4" {
            let package = path.with_extension("dwp");
            let packed = Command::new("dwp").arg("-o").arg(&package).arg(split).status();
            assert!(packed.unwrap().success(), "dwp is part of binutils");
            fs::remove_file(split).unwrap();
            assert_eq!(found(), (true, true));
            fs::remove_file(&package).unwrap();
        } else {
            fs::remove_file(split).unwrap();
        }
        assert_eq!(found(), (false, false), "{version}");
        // That of another compilation.
        let mut changed = SOURCE.replace("long words[5]", "long word[6]").replace("words[2]", "word[2]");
        changed.insert(0, '\n');
        let source = directory.path().join("source.c");
        fs::write(&source, changed).unwrap();
        let flags = ["-g", "-O2", "-gsplit-dwarf", version, "-c"];
        assert!(Command::new("gcc").current_dir(directory.path()).args(flags).arg(&source).status().unwrap().success());
        fs::rename(directory.path().join("source.dwo"), split).unwrap();
        assert_eq!(found(), (false, false), "{version}");
        fs::write(split, other).unwrap();
        assert_eq!(found(), (true, true), "{version}");
        fs::remove_file(split).unwrap();
    }
}
