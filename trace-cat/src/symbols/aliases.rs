//! Names of the user's own, from a file.

use std::collections::{HashMap, HashSet};

use crate::support::visible_text::visible;

/// Names of objects by address, and of sites.
#[derive(Debug, Default)]
pub struct Aliases {
    objects: HashMap<u64, String>,
    sites: HashMap<String, String>,
    names_of_sites: HashSet<String>,
}

impl Aliases {
    /// Parses lines `ADDRESS NAME` and `SITE NAME`; a tab may stand before the name instead of a space, so that the site can have
    /// spaces. Empty lines and those that begin with `#` are left out.
    ///
    /// # Errors
    /// What is wrong, with the number of the line.
    pub fn parse(text: &str) -> Result<Aliases, String> {
        let mut aliases = Aliases::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let separator = if line.contains('\t') { '\t' } else { ' ' };
            let Some((key, name)) = line.split_once(separator).map(|(key, name)| (key.trim(), name.trim())) else {
                return Err(format!("{number}: there is no name behind '{line}'"));
            };
            let name = visible(name).into_owned();
            let is_known = match key.strip_prefix("0x") {
                Some(digits) => {
                    let Ok(address) = u64::from_str_radix(digits, 16) else {
                        return Err(format!("{number}: '{key}' is no address"));
                    };
                    aliases.objects.insert(address, name).is_some()
                }
                None => {
                    aliases.names_of_sites.insert(name.clone());
                    aliases.sites.insert(key.to_owned(), name).is_some()
                }
            };
            if is_known {
                return Err(format!("{number}: '{key}' has a name already"));
            }
        }
        Ok(aliases)
    }

    /// The name of the object at an address.
    pub fn of_object(&self, address: u64) -> Option<&str> {
        self.objects.get(&address).map(String::as_str)
    }

    /// The name of a site in a function, at a line of a file, or at an offset in a module. Files may be shortened to their last
    /// components.
    pub fn of_site(
        &self,
        function: Option<&str>,
        line: Option<(&str, u32)>,
        offset: Option<(&str, u64)>,
    ) -> Option<&str> {
        if self.sites.is_empty() {
            return None;
        }
        let line = line.map(|(file, line)| (file, format!(":{line}")));
        let offset = offset.map(|(module, offset)| (module, format!("+{offset:#x}")));
        let with_path = |(path, place): (&str, String)| {
            let starts = std::iter::once(0).chain(path.match_indices('/').map(|(index, _)| index + 1));
            starts
                .collect::<Vec<_>>()
                .into_iter()
                .find_map(|start| self.sites.get(&format!("{}{place}", &path[start..])))
        };
        let place = line.and_then(with_path).or_else(|| offset.and_then(with_path));
        place.or_else(|| self.sites.get(function?)).map(String::as_str)
    }

    /// Whether a site has this name.
    pub fn has_site(&self, name: &str) -> bool {
        self.names_of_sites.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_found_by_line_offset_and_function() {
        let text = "# names\n\n0x10 the lock\nsrc/queue.c:41 push\nlib.so+0x20\tin lib\napp::f<int, long>\tf of ints\n";
        let aliases = Aliases::parse(text).unwrap();
        assert_eq!((aliases.of_object(0x10), aliases.of_object(0x20)), (Some("the lock"), None));
        let line = |file| aliases.of_site(Some("x"), Some((file, 41)), None);
        assert_eq!(
            ["/a/src/queue.c", "src/queue.c", "/a/xsrc/queue.c", "queue.c"].map(line),
            [Some("push"), Some("push"), None, None]
        );
        assert_eq!(aliases.of_site(None, None, Some(("/usr/lib/lib.so", 0x20))), Some("in lib"));
        assert_eq!(aliases.of_site(Some("app::f<int, long>"), None, None), Some("f of ints"));
        assert!(aliases.has_site("push") && !aliases.has_site("the lock"));
    }

    #[test]
    fn errors_have_the_number_of_the_line() {
        for (text, expected) in [
            ("\nmain\n", "2: there is no name behind 'main'"),
            ("0xg lock", "1: '0xg' is no address"),
            ("f a\nf b", "2: 'f' has a name already"),
        ] {
            assert_eq!(Aliases::parse(text).unwrap_err(), expected);
        }
    }
}
