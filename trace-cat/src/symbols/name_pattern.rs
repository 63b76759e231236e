//! Patterns of names: `*` stands for any text, `?` for one letter.

/// A pattern.
#[derive(Clone, Debug)]
pub struct NamePattern(String);

impl NamePattern {
    pub fn new(pattern: &str) -> NamePattern {
        NamePattern(pattern.to_owned())
    }

    /// Whether the whole of a name fits.
    pub fn matches(&self, name: &str) -> bool {
        let (mut pattern, mut rest) = (self.0.chars(), name.chars());
        // Where to go on if a guess of what the last `*` stands for was too short.
        let mut longer: Option<(std::str::Chars, std::str::Chars)> = None;
        loop {
            let unread = rest.clone();
            match (pattern.next(), rest.next()) {
                (None, None) => return true,
                (Some('*'), _) => {
                    rest = unread;
                    longer = Some((pattern.clone(), rest.clone()));
                }
                (Some(wanted), Some(letter)) if wanted == '?' || wanted == letter => {}
                _ => {
                    let Some((after, from)) = &mut longer else { return false };
                    if from.next().is_none() {
                        return false;
                    }
                    (pattern, rest) = (after.clone(), from.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_complete_names() {
        for (pattern, name, expected) in [
            ("std::*", "std::mutex::lock", true),
            ("std::*", "mystd::x", false),
            ("*::lock", "a::lock::lock", true),
            ("*::lock", "a::lock::unlock", false),
            ("a?c*", "abc", true),
            ("a?c", "ac", false),
            ("", "", true),
            ("", "x", false),
            ("*", "", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "abba", false),
        ] {
            assert_eq!(NamePattern::new(pattern).matches(name), expected, "{pattern} {name}");
        }
    }
}
