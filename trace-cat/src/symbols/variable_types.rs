//! Which part of a static variable is at an address, by the types in DWARF: `.locks[3]`.

use std::collections::HashMap;
use std::sync::Arc;

use gimli::{AttributeValue, DebugInfoOffset, Dwarf, Operation, Reader as _, Unit, UnitOffset, constants as dw};

use super::dwarf_sections::DwarfReader;
use super::split_debug::SplitFiles;
use crate::support::visible_text::visible;

/// How many types are followed from a variable to its part; damage can make a circle.
const DEPTH_MAX: usize = 64;

/// The static variables of a module, by address, each with the place of its type.
pub struct VariableTypes {
    variables: HashMap<u64, PlaceInFile>,
    /// The module, and the split files that have variables.
    files: Vec<Arc<Dwarf<DwarfReader>>>,
}

/// A debugging information entry: the unit that has it, and where in the unit.
type Place = (DebugInfoOffset, UnitOffset);
/// The number of the file, too.
type PlaceInFile = (usize, Place);

impl VariableTypes {
    /// Reads all units. What is damaged is left out.
    pub fn read(dwarf: &Arc<Dwarf<DwarfReader>>, split: &SplitFiles) -> VariableTypes {
        let mut types = VariableTypes { variables: HashMap::new(), files: vec![dwarf.clone()] };
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Some(start) = header.offset().as_debug_info_offset() else { continue };
            let Ok(unit) = dwarf.unit(header) else { continue };
            match split.of_unit(dwarf, &unit) {
                Some(file) => types.add_split_file(file, &unit),
                None => types.add_unit(0, dwarf, &unit, start),
            }
        }
        types
    }

    /// Adds the units of a split file that a skeleton unit stands for.
    fn add_split_file(&mut self, file: Arc<Dwarf<DwarfReader>>, skeleton: &Unit<DwarfReader>) {
        let number = self.files.len();
        self.files.push(file.clone());
        let mut headers = file.units();
        while let Ok(Some(header)) = headers.next() {
            let Some(start) = header.offset().as_debug_info_offset() else { continue };
            if let Ok(mut unit) = file.unit(header) {
                unit.copy_relocated_attributes(skeleton);
                self.add_unit(number, &file, &unit, start);
            }
        }
    }

    fn add_unit(&mut self, file: usize, dwarf: &Dwarf<DwarfReader>, unit: &Unit<DwarfReader>, start: DebugInfoOffset) {
        let mut variables = HashMap::new();
        // What was read until there was damage counts.
        let _ = read_unit(dwarf, unit, start, &mut variables);
        self.variables.extend(variables.into_iter().map(|(address, place)| (address, (file, place))));
    }

    /// What leads from the variable at an address to its part that is `offset` bytes behind and not larger than `size`: members
    /// and indexes. `None` if types do not tell.
    pub fn part(&self, address: u64, mut offset: u64, size: u64) -> Option<String> {
        let (file, (mut start, mut entry)) = *self.variables.get(&address)?;
        let dwarf = self.files.get(file)?;
        let mut unit = unit_at(dwarf, start)?;
        let mut part = String::new();
        for _ in 0..DEPTH_MAX {
            if offset == 0 && size_of(&unit, entry, 0).is_some_and(|found| found <= size) {
                return Some(part);
            }
            let die = unit.entry(entry).ok()?;
            let of_type = match die.tag() {
                dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type => {
                    let (name, inside, of_type) = member_at(dwarf, &unit, entry, offset)?;
                    offset = inside;
                    if let Some(name) = name {
                        part += &format!(".{name}");
                    }
                    of_type
                }
                dw::DW_TAG_array_type => {
                    let element = die.attr_value(dw::DW_AT_type).ok()??;
                    let AttributeValue::UnitRef(reference) = element else { return None };
                    let element_size = size_of(&unit, reference, 0).filter(|size| *size > 0)?;
                    let counts = counts(&unit, entry)?;
                    let mut index = offset / element_size;
                    offset %= element_size;
                    let mut indexes = Vec::new();
                    for count in counts.iter().skip(1).rev() {
                        indexes.push(index.checked_rem(*count)?);
                        index /= count;
                    }
                    indexes.push(index);
                    part.extend(indexes.iter().rev().map(|index| format!("[{index}]")));
                    element
                }
                // A declaration outside, or another name for a type.
                dw::DW_TAG_variable
                | dw::DW_TAG_member
                | dw::DW_TAG_typedef
                | dw::DW_TAG_const_type
                | dw::DW_TAG_volatile_type
                | dw::DW_TAG_atomic_type => die.attr_value(dw::DW_AT_type).ok()??,
                _ => return None,
            };
            match of_type {
                AttributeValue::UnitRef(reference) => entry = reference,
                AttributeValue::DebugInfoRef(reference) => {
                    (start, entry) = place_of(dwarf, reference)?;
                    unit = unit_at(dwarf, start)?;
                }
                _ => return None,
            }
        }
        None
    }
}

fn read_unit(
    dwarf: &Dwarf<DwarfReader>,
    unit: &Unit<DwarfReader>,
    start: DebugInfoOffset,
    variables: &mut HashMap<u64, Place>,
) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() {
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        if abbreviation.tag() != dw::DW_TAG_variable {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let (mut address, mut place) = (None, None);
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification)?;
            match (attribute.name(), attribute.value()) {
                (dw::DW_AT_location, AttributeValue::Exprloc(expression)) => {
                    let mut operations = expression.operations(unit.encoding());
                    let first = operations.next()?;
                    address = match first {
                        Some(Operation::Address { address }) => Some(address),
                        Some(Operation::AddressIndex { index }) => dwarf.address(unit, index).ok(),
                        _ => None,
                    };
                    if operations.next()?.is_some() {
                        address = None;
                    }
                }
                (
                    dw::DW_AT_type | dw::DW_AT_specification | dw::DW_AT_abstract_origin,
                    AttributeValue::UnitRef(entry),
                ) => {
                    place = Some((start, entry));
                }
                (
                    dw::DW_AT_type | dw::DW_AT_specification | dw::DW_AT_abstract_origin,
                    AttributeValue::DebugInfoRef(reference),
                ) => {
                    place = place_of(dwarf, reference);
                }
                _ => {}
            }
        }
        variables.extend(address.zip(place));
    }
    Ok(())
}

fn unit_at(dwarf: &Dwarf<DwarfReader>, start: DebugInfoOffset) -> Option<Unit<DwarfReader>> {
    dwarf.unit(dwarf.debug_info.header_from_offset(start).ok()?).ok()
}

/// The unit that has an entry of the whole section.
fn place_of(dwarf: &Dwarf<DwarfReader>, reference: DebugInfoOffset) -> Option<Place> {
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        if let Some(entry) = reference.to_unit_offset(&header) {
            return Some((header.offset().as_debug_info_offset()?, entry));
        }
    }
    None
}

/// The size of a type in bytes.
fn size_of(unit: &Unit<DwarfReader>, entry: UnitOffset, depth: usize) -> Option<u64> {
    let die = unit.entry(entry).ok()?;
    if let Some(size) = die.attr_value(dw::DW_AT_byte_size).ok()? {
        return size.udata_value();
    }
    match (die.tag(), die.attr_value(dw::DW_AT_type).ok()??) {
        (dw::DW_TAG_variable | dw::DW_TAG_member, _) => None,
        (tag, AttributeValue::UnitRef(inner)) if depth < DEPTH_MAX => {
            let size = size_of(unit, inner, depth + 1)?;
            match tag {
                dw::DW_TAG_array_type => counts(unit, entry)?.into_iter().try_fold(size, u64::checked_mul),
                _ => Some(size),
            }
        }
        _ => None,
    }
}

/// How many elements an array has, for each of its dimensions; 0 in the first one if unknown.
fn counts(unit: &Unit<DwarfReader>, array: UnitOffset) -> Option<Vec<u64>> {
    let mut tree = unit.entries_tree(Some(array)).ok()?;
    let mut children = tree.root().ok()?.children();
    let mut counts = Vec::new();
    while let Some(child) = children.next().ok()? {
        let die = child.entry();
        if die.tag() == dw::DW_TAG_subrange_type {
            let number = |name| die.attr_value(name).ok().flatten().and_then(|value| value.udata_value());
            let count = number(dw::DW_AT_count);
            counts.push(count.or_else(|| number(dw::DW_AT_upper_bound)?.checked_add(1)).unwrap_or(0));
        }
    }
    Some(counts)
}

/// The member of a structure at an offset: its name, if it has one, the offset in it, and its type.
fn member_at(
    dwarf: &Dwarf<DwarfReader>,
    unit: &Unit<DwarfReader>,
    structure: UnitOffset,
    offset: u64,
) -> Option<(Option<String>, u64, AttributeValue<DwarfReader>)> {
    let mut tree = unit.entries_tree(Some(structure)).ok()?;
    let mut children = tree.root().ok()?.children();
    let mut found = None;
    while let Some(child) = children.next().ok()? {
        let die = child.entry();
        if !matches!(die.tag(), dw::DW_TAG_member | dw::DW_TAG_inheritance) {
            continue;
        }
        let value = |name| die.attr_value(name).ok().flatten();
        // Static members have none; in a union all are at 0.
        let location = match value(dw::DW_AT_data_member_location) {
            Some(location) => location.udata_value(),
            None if value(dw::DW_AT_external).is_some() => None,
            None => Some(0),
        };
        let (Some(inside), Some(of_type)) = (location.and_then(|at| offset.checked_sub(at)), value(dw::DW_AT_type))
        else {
            continue;
        };
        let size = match of_type {
            AttributeValue::UnitRef(entry) => size_of(unit, entry, 0),
            _ => None,
        };
        if size.is_some_and(|size| inside >= size) {
            continue;
        }
        let is_named = die.tag() == dw::DW_TAG_member;
        let name = value(dw::DW_AT_name).filter(|_| is_named).and_then(|name| dwarf.attr_string(unit, name).ok());
        let name = name.and_then(|name| Some(visible(&name.to_string_lossy().ok()?).into_owned()));
        found = Some((name, inside, of_type));
        // Only members of an unknown size can be followed by a better one.
        if size.is_some() {
            break;
        }
    }
    found
}
