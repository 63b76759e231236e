//! Names of functions as their source has them.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

use crate::support::visible_text::visible;

/// The longest name, bytes: what a mangled name stands for can be exponentially longer than it is.
const NAME_MAX: usize = 1024;

/// The name of a function without its parameters, from its name in a symbol table.
pub fn demangled(mangled: &str) -> String {
    let mut name = ShortName(String::new());
    let is_rust = rustc_demangle::try_demangle(mangled).is_ok_and(|symbol| write!(name, "{symbol:#}").is_ok());
    if is_rust && !name.0.is_empty() {
        return name.0;
    }
    name.0.clear();
    if mangled.starts_with("_Z")
        && let Ok(symbol) = Symbol::new(mangled)
    {
        let options = DemangleOptions::new().no_params().no_return_type();
        if symbol.structured_demangle(&mut name, &options).is_ok() && !name.0.is_empty() {
            return name.0;
        }
    }
    visible(&mangled.chars().take(NAME_MAX).collect::<String>()).into_owned()
}

/// A text that does not grow beyond [`NAME_MAX`].
struct ShortName(String);

impl Write for ShortName {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > NAME_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        for (mangled, expected) in [
            ("main", "main"),
            ("_ZNSt5mutex4lockEv", "std::mutex::lock"),
            ("_ZN5Queue4pushERKSs", "Queue::push"),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_Z", "_Z"),
            ("a\u{1b}[31m", "a\\u{1b}[31m"),
        ] {
            assert_eq!(demangled(mangled), expected);
        }
        let bomb = format!("_Z1{}", "fIiS_S0_S1_S2_S3_S4_S5_S6_S7_S8_S9_SA_SB_E".repeat(60));
        assert!(demangled(&bomb).len() <= NAME_MAX);
    }
}
