//! The namespaces and classes that functions are in, from DWARF: functions that only their source file knows, as those of a
//! local class or with one as an argument of a template, have no linkage name there that would say it.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use gimli::{
    AttributeValue, DebugInfoOffset, Dwarf, DwoId, Reader as _, Unit, UnitHeader, UnitOffset, UnitRef,
    UnitSectionOffset, constants as dw,
};

use super::dwarf_sections::DwarfReader;
use crate::support::visible_text::visible;

/// The most references that are followed from a function to its declaration; damage can make a circle.
const REFERENCES_MAX: usize = 8;
/// The longest name of scopes, bytes.
const SCOPE_MAX: usize = 1024;

/// The scopes of functions, by units that were asked for.
#[derive(Default)]
pub struct FunctionScopes {
    units: RefCell<HashMap<UnitKey, Rc<UnitScopes>>>,
    /// Where the units of the file are; read when a function refers to one.
    headers: OnceCell<Vec<UnitHeader<DwarfReader>>>,
    /// Those that functions refer to, by where they begin.
    referred: RefCell<HashMap<UnitSectionOffset, Rc<Unit<DwarfReader>>>>,
}

/// Where a unit begins, and the ID of its split file.
type UnitKey = (UnitSectionOffset, Option<DwoId>);
/// What is before the name of a function: `library::Guard::`.
type UnitScopes = HashMap<UnitOffset, Rc<str>>;

impl FunctionScopes {
    /// What is before the name of a function; nothing outside of scopes, or if it is not known.
    pub fn scope(&self, unit: UnitRef<DwarfReader>, function: UnitOffset) -> Rc<str> {
        self.known_scope(unit, function).unwrap_or_default()
    }

    fn known_scope(&self, unit: UnitRef<DwarfReader>, mut function: UnitOffset) -> Option<Rc<str>> {
        // The unit that was referred to: what is compiled when the program is linked is in others than its declarations.
        let mut other: Option<Rc<Unit<DwarfReader>>> = None;
        for _ in 0..REFERENCES_MAX {
            let unit = other.as_ref().map_or(unit, |other| other.unit_ref(unit.dwarf));
            let entry = unit.entry(function).ok()?;
            let reference = |name| entry.attr_value(name).ok().flatten();
            match reference(dw::DW_AT_abstract_origin).or_else(|| reference(dw::DW_AT_specification)) {
                Some(AttributeValue::UnitRef(declared)) => function = declared,
                Some(AttributeValue::DebugInfoRef(declared)) if unit.dwo_id.is_none() => {
                    let unit = self.unit_with(unit.dwarf, declared)?;
                    function = declared.to_unit_offset(&unit.header)?;
                    other = Some(unit);
                }
                Some(_) => return None,
                None => break,
            }
        }
        let unit = other.as_ref().map_or(unit, |other| other.unit_ref(unit.dwarf));
        let key = (unit.header.offset(), unit.dwo_id);
        let known = self.units.borrow().get(&key).cloned();
        let scopes = known.unwrap_or_else(|| {
            let mut scopes = UnitScopes::new();
            if !is_c(unit) {
                // What was read until there was damage counts.
                let _ = read_unit(unit, &mut scopes);
            }
            self.units.borrow_mut().entry(key).or_insert(Rc::new(scopes)).clone()
        });
        scopes.get(&function).cloned()
    }

    /// The unit that has an entry.
    fn unit_with(&self, dwarf: &Dwarf<DwarfReader>, entry: DebugInfoOffset) -> Option<Rc<Unit<DwarfReader>>> {
        let headers = self.headers.get_or_init(|| {
            let mut units = dwarf.units();
            // Up to damage.
            std::iter::from_fn(|| units.next().ok().flatten()).collect()
        });
        let begins_after = |header: &UnitHeader<DwarfReader>| {
            header.offset().as_debug_info_offset().is_none_or(|begin| begin.0 > entry.0)
        };
        let place = headers.partition_point(|header| !begins_after(header)).checked_sub(1)?;
        let header = headers.get(place)?;
        if let Some(unit) = self.referred.borrow().get(&header.offset()) {
            return Some(unit.clone());
        }
        let unit = Rc::new(dwarf.unit(header.clone()).ok()?);
        self.referred.borrow_mut().insert(header.offset(), unit.clone());
        Some(unit)
    }
}

/// Functions of C are in no scopes.
fn is_c(unit: UnitRef<DwarfReader>) -> bool {
    let mut entries = unit.entries();
    let mut language = || entries.next_dfs().ok()??.1.attr_value(dw::DW_AT_language).ok()?;
    matches!(
        language(),
        Some(AttributeValue::Language(
            dw::DW_LANG_C89 | dw::DW_LANG_C | dw::DW_LANG_C99 | dw::DW_LANG_C11 | dw::DW_LANG_C17
        ))
    )
}

fn read_unit(unit: UnitRef<DwarfReader>, scopes: &mut UnitScopes) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(None)?;
    // The scopes that an entry is in, with their depths.
    let mut outer: Vec<(isize, Rc<str>)> = Vec::new();
    while !entries.is_empty() {
        let (depth, offset) = (entries.next_depth(), entries.next_offset());
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        while outer.last().is_some_and(|(of_scope, _)| *of_scope >= depth) {
            outer.pop();
        }
        let suffix = match abbreviation.tag() {
            dw::DW_TAG_namespace | dw::DW_TAG_class_type | dw::DW_TAG_structure_type | dw::DW_TAG_union_type => "::",
            dw::DW_TAG_subprogram => "()::",
            _ => {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
        };
        let mut name = None;
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification)?;
            if attribute.name() == dw::DW_AT_name {
                name = Some(unit.attr_string(attribute.value())?);
            }
        }
        let scope = outer.last().map(|(_, scope)| scope.clone());
        if let Some(scope) = scope.as_ref().filter(|_| abbreviation.tag() == dw::DW_TAG_subprogram) {
            scopes.insert(offset, scope.clone());
        }
        let name = match name {
            Some(name) => visible(&name.to_string_lossy()?).into_owned(),
            None => match abbreviation.tag() {
                dw::DW_TAG_namespace => "(anonymous namespace)".to_owned(),
                // The entry of a declaration elsewhere, or a type without a name.
                _ => continue,
            },
        };
        let scope = format!("{}{name}{suffix}", scope.as_deref().unwrap_or_default());
        if abbreviation.has_children() && scope.len() <= SCOPE_MAX {
            outer.push((depth, scope.into()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::process::Command;

    use super::super::code_maps::CodeMaps;
    use super::super::symbolizer::Symbolizer;

    const SOURCE: &str = "
        namespace library {
        template <class F> __attribute__((noinline)) void called(F f) { f(); asm volatile(\"\"); }
        template <class F> inline __attribute__((always_inline)) void inlined(F f) { asm volatile(\"nop\"); f(); }
        struct Guard { template <class F> __attribute__((noinline)) void run(F f) { f(); asm volatile(\"\"); } };
        }
        namespace { __attribute__((noinline)) void hidden() { asm volatile(\"nop\"); } }
        namespace outer { namespace inner { __attribute__((noinline)) static void only_here() { asm volatile(\"nop\"); } } }
        __attribute__((noinline)) void program() {
            struct Local { void operator()() { asm volatile(\"nop\"); } };
            library::called(Local{}); library::inlined(Local{}); library::Guard().run(Local{}); hidden();
            outer::inner::only_here(); asm volatile(\"\");
        }
        int main() { program(); return 0; }";

    #[test]
    fn functions_with_local_types_have_their_namespaces() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("program");
        let source = directory.path().join("source.cc");
        fs::write(&source, SOURCE).unwrap();
        for flags in [&["-gdwarf-4"][..], &["-gdwarf-5"], &["-gsplit-dwarf"], &["-flto"], &["-flto", "-gdwarf-4"]] {
            let mut compiler = Command::new("g++");
            compiler.current_dir(directory.path()).args(["-g", "-O1"]).args(flags).arg(&source).arg("-o").arg(&path);
            assert!(compiler.status().unwrap().success());
            let mut maps = CodeMaps::default();
            maps.add_line(b"map", format!("0x1000 0x100000 0x1000 - {}", path.display()).as_bytes(), 0);
            let names = |skip: &[String]| {
                let symbols = Symbolizer::new(Vec::new(), skip);
                let names = (0x1000..0x2000).map(|address| symbols.call_name(maps.find(address, 1)));
                names.filter(|name| name.contains("source.cc")).collect::<BTreeSet<String>>()
            };
            let found = names(&[]);
            for name in [
                "library::called<",
                "library::inlined<",
                "library::Guard::run<",
                "(anonymous namespace)::hidden ",
                "outer::inner::only_here ",
                "program ",
            ] {
                assert!(found.iter().any(|found| found.starts_with(name)), "{flags:?}: {name}: {found:?}");
            }
            // An inlined function gives its caller the name.
            let skipped = names(&["library::inlined<*".to_owned(), "program()::*".to_owned()]);
            assert!(!skipped.iter().any(|name| name.starts_with("library::inlined")), "{flags:?}: {skipped:?}");
        }
    }
}
