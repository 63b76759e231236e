//! `-F help`: what each format is, and what opens it.

use clap::ValueEnum;

use super::output_options::OutputFormat;
use super::report_command::ReportFormat;

/// A line for each format of trace-cat and of its report.
pub fn format_list() -> String {
    let mut list = "trace-cat -F:\n".to_owned();
    append::<OutputFormat>(&mut list);
    list += "\ntrace-cat report -F:\n";
    append::<ReportFormat>(&mut list);
    list
}

fn append<F: ValueEnum>(list: &mut String) {
    for value in F::value_variants().iter().filter_map(F::to_possible_value) {
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        *list += &format!("  {:<9} {help}\n", value.get_name());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_line_that_fits() {
        let list = format_list();
        for name in ["raw", "text", "csv", "json", "perfetto", "chrome", "folded", "pprof", "html"] {
            let line = list.lines().find(|line| line.trim_start().starts_with(name));
            assert!(line.is_some_and(|line| line.len() > 30), "{name}: {line:?}");
        }
        assert!(list.lines().all(|line| line.chars().count() <= 128), "{list}");
    }
}
