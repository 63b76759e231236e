//! The program trace-cat.

use std::process::ExitCode;

fn main() -> ExitCode {
    trace_cat::cli::main()
}
