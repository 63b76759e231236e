//! The options, from the environment: BENCH_ROUNDS, BENCH_AGAINST, BENCH_ONLY.

use std::env;
use std::path::PathBuf;

use crate::ways::Way;
use crate::workloads::{WORKLOADS, Workload};

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory of libthreadt.so; the TSV file is written there.
    pub build: PathBuf,
    /// That of another version.
    pub against: Option<PathBuf>,
    /// How often each workload is run in each way.
    pub rounds: usize,
    /// In the table's order.
    pub ways: Vec<Way>,
    /// In the table's order.
    pub workloads: Vec<Workload>,
}

impl Options {
    /// From the command line's one argument and the environment.
    ///
    /// # Errors
    /// What was wrong, in one line.
    pub fn read() -> Result<Options, String> {
        let mut arguments = env::args_os().skip(1);
        let (Some(build), None) = (arguments.next(), arguments.next()) else {
            return Err("usage: bench BUILD-DIRECTORY".to_owned());
        };
        let directory = |path: PathBuf| {
            let library = path.join("libthreadt.so");
            match library.canonicalize() {
                Ok(library) => Ok(library.parent().map_or(path, PathBuf::from)),
                Err(error) => Err(format!("{}: {error}", library.display())),
            }
        };
        let variable = |name| env::var(name).ok().filter(|value| !value.trim().is_empty());
        let rounds = variable("BENCH_ROUNDS").unwrap_or_else(|| "7".to_owned());
        let against = variable("BENCH_AGAINST").map(|path| directory(path.into())).transpose()?;
        let (ways, workloads) = select(&variable("BENCH_ONLY").unwrap_or_default(), against.is_some())?;
        Ok(Options {
            build: directory(build.into())?,
            against,
            rounds: match rounds.trim().parse() {
                Ok(rounds) if rounds > 0 => rounds,
                _ => return Err(format!("BENCH_ROUNDS is '{rounds}', which is no number from 1 up")),
            },
            ways,
            workloads,
        })
    }
}

/// The ways and workloads that a list of names leaves: of each sort those that are named, or all if none is. Native is
/// always there, as the figures of the others are multiples of its figure.
fn select(only: &str, against: bool) -> Result<(Vec<Way>, Vec<Workload>), String> {
    let words: Vec<&str> = only.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let is_way = |word: &&str| Way::ALL.iter().any(|way| way.name() == *word);
    let is_workload = |word: &&str| WORKLOADS.iter().any(|workload| workload.answers_to(word));
    if let Some(unknown) = words.iter().find(|word| !is_way(word) && !is_workload(word)) {
        let ways: Vec<&str> = Way::ALL.iter().map(|way| way.name()).collect();
        let workloads: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
        return Err(format!(
            "BENCH_ONLY: '{unknown}' is none of the ways ({}), the workloads ({}) and their groups (calls, memory, programs)",
            ways.join(", "),
            workloads.join(", ")
        ));
    }
    let wanted = |way: &Way| *way == Way::Native || !words.iter().any(is_way) || words.contains(&way.name());
    let ways = Way::ALL.into_iter().filter(|&way| way != Way::Before || against).filter(wanted).collect();
    let asked =
        |workload: &Workload| !words.iter().any(is_workload) || words.iter().any(|word| workload.answers_to(word));
    Ok((ways, WORKLOADS.into_iter().filter(asked).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(only: &str) -> (Vec<&'static str>, Vec<&'static str>) {
        let (ways, workloads) = select(only, false).unwrap();
        (ways.iter().map(|way| way.name()).collect(), workloads.iter().map(|workload| workload.name).collect())
    }

    #[test]
    fn everything_unless_named() {
        let (ways, workloads) = names("");
        assert_eq!(ways.len(), Way::ALL.len() - 1, "all but before");
        assert_eq!(workloads.len(), WORKLOADS.len());
        assert!(select("", true).unwrap().0.contains(&Way::Before));
    }

    #[test]
    fn ways_and_workloads_are_chosen_apart() {
        let (ways, workloads) = names("lttng default");
        assert_eq!(ways, ["native", "default", "lttng"]);
        assert_eq!(workloads.len(), WORKLOADS.len());
        let (ways, workloads) = names("mutex-1,programs ring");
        assert_eq!(ways, ["native", "ring"]);
        assert_eq!(workloads, ["mutex-1", "sort", "xz", "node", "node-tls", "java", "git"]);
    }

    #[test]
    fn a_name_that_is_none() {
        assert!(select("mutex-1 mutexes", false).unwrap_err().contains("'mutexes' is none of"));
    }
}
