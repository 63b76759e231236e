//! Writes the manual pages trace-cat(1), trace-cat-run(1), trace-cat-report(1), trace-cat-open(1), trace-cat-set(1), trace-cat-status(1) and libthreadt(7), and completions for bash, fish and zsh, into a directory.
//!
//! The options in them come from the table in `src/options`. All other text of the pages is in `man/*.in`, where a line
//! `@OPTIONS@` stands for the options and `@VERSION@` for the version.
//!
//! ```text
//! cargo run -q -p trace-cat --example documents -- DIRECTORY
//! ```

mod page;
mod roff;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

use clap_complete::{Shell, generate_to};

/// Writes all documents, and returns their paths.
fn write(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(directory)?;
    let mut paths = Vec::new();
    for page in &page::PAGES {
        let path = directory.join(page.file);
        fs::write(&path, page.text())?;
        paths.push(path);
    }
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        paths.push(generate_to(shell, &mut trace_cat::cli::command(), "trace-cat", directory)?);
    }
    Ok(paths)
}

fn main() -> ExitCode {
    let Some(directory) = env::args_os().nth(1) else {
        eprintln!("usage: documents DIRECTORY");
        return ExitCode::from(2);
    };
    match write(directory.as_ref()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("documents: {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
