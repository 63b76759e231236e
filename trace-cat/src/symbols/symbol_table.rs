//! The functions and variables of a module, by address.

use std::rc::Rc;

/// How many symbols before an address are tried: aliases, and small ones inside a large one.
const TRIED_MAX: usize = 16;

/// A symbol.
#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    pub address: u64,
    /// 0 if unknown, as functions written in assembly may have it.
    pub size: u64,
    /// Where its name is in the table of strings.
    pub name: u32,
    /// It is a variable, not a function.
    pub is_object: bool,
}

/// Sorted symbols.
#[derive(Debug)]
pub struct SymbolTable {
    symbols: Vec<Symbol>,
    strings: Rc<[u8]>,
}

impl SymbolTable {
    pub fn new(mut symbols: Vec<Symbol>, strings: Rc<[u8]>) -> SymbolTable {
        // Among aliases, what comes last is found first: the one that covers more, then the first of the table.
        symbols.reverse();
        symbols.sort_by_key(|symbol| (symbol.address, symbol.size));
        SymbolTable { symbols, strings }
    }

    /// The function or the variable at an address, and its name.
    pub fn find(&self, address: u64, is_object: bool) -> Option<(String, Symbol)> {
        let end = self.symbols.partition_point(|symbol| symbol.address <= address);
        let covers = |symbol: &&Symbol| {
            let inside = address - symbol.address;
            symbol.is_object == is_object && (inside < symbol.size || symbol.size == 0 && !is_object)
        };
        let symbol = self.symbols[..end].iter().rev().take(TRIED_MAX).find(covers)?;
        let name = self.strings.get(symbol.name as usize..)?.split(|byte| *byte == 0).next()?;
        Some((String::from_utf8_lossy(name).into_owned(), *symbol))
    }
}
