//! Reads a module's tokens: items, imports, paths, and calls that print.
//!
//! The scanner reads tokens and no syntax tree, so that it sees paths within macro calls as well.

use std::str::FromStr as _;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use super::source_tree::{ImportedName, InlinePath, SourceModule};

const PRINTING_MACROS: [&str; 5] = ["print", "println", "eprint", "eprintln", "dbg"];

/// What is known of the place where tokens stand.
#[derive(Clone, Copy)]
pub struct Scope {
    pub in_test: bool,
    /// Within a function, a type or an implementation: names that are defined here are no items of the module.
    pub in_body: bool,
}

/// `mod name;` or `mod name { … }`.
pub struct ChildModule {
    pub name: String,
    pub line: usize,
    pub in_test: bool,
    /// `#[path = "…"]`.
    pub file: Option<String>,
    pub body: Option<Vec<TokenTree>>,
}

/// A `struct`, `enum`, `union`, `trait` or `type` that a file defines.
pub struct TypeDefinition {
    pub name: String,
    pub line: usize,
}

/// The tokens of a file.
///
/// # Panics
/// If the text is no Rust.
pub fn tokens(file: &str, text: &str) -> Vec<TokenTree> {
    let stream = TokenStream::from_str(text).unwrap_or_else(|error| panic!("{file}: {error}"));
    stream.into_iter().collect()
}

/// True if the file begins with `#![cfg(test)]`.
pub fn is_test_file(tokens: &[TokenTree]) -> bool {
    let mut at = 0;
    while is_punct(tokens.get(at + 1), '!')
        && let Some((attribute, end)) = attribute(tokens, at)
    {
        if requires_test(&attribute) {
            return true;
        }
        at = end;
    }
    false
}

/// Adds what the tokens define and name to their module, and returns the modules that they declare.
pub fn scan(tokens: &[TokenTree], scope: Scope, module: &mut SourceModule) -> Vec<ChildModule> {
    let mut scan = ModuleScan { module, children: Vec::new() };
    scan.tokens(tokens, scope);
    scan.children
}

/// All types that a file defines, in test code and in functions too; without the associated types of traits and the aliases
/// within functions.
pub fn type_definitions(tokens: &[TokenTree]) -> Vec<TypeDefinition> {
    definitions_within(tokens, Within::Module)
}

/// What a group of tokens is the content of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Module,
    /// A trait or an implementation.
    Members,
    Function,
}

fn definitions_within(tokens: &[TokenTree], within: Within) -> Vec<TypeDefinition> {
    // What the next braces will contain.
    let mut next_braces = within;
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(word) => {
                let word = word.to_string();
                match word.as_str() {
                    "impl" | "trait" if is_item_start(tokens, at) => next_braces = Within::Members,
                    "fn" if next_braces != Within::Members => next_braces = Within::Function,
                    _ => {}
                }
                let is_type = match word.as_str() {
                    "struct" | "enum" | "union" | "trait" => true,
                    "type" => within == Within::Module,
                    _ => false,
                };
                if is_type
                    && !is_punct(at.checked_sub(1).and_then(|before| tokens.get(before)), '$')
                    && let Some(TokenTree::Ident(name)) = tokens.get(at + 1)
                {
                    found.push(TypeDefinition { name: name.to_string(), line: line(token) });
                }
            }
            TokenTree::Group(group) => {
                let content: Vec<TokenTree> = group.stream().into_iter().collect();
                let is_braces = group.delimiter() == Delimiter::Brace;
                found.extend(definitions_within(&content, if is_braces { next_braces } else { within }));
                if is_braces {
                    next_braces = within;
                }
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => next_braces = within,
            _ => {}
        }
    }
    found
}

struct ModuleScan<'a> {
    module: &'a mut SourceModule,
    children: Vec<ChildModule>,
}

impl ModuleScan<'_> {
    fn tokens(&mut self, tokens: &[TokenTree], scope: Scope) {
        let mut at = 0;
        while at < tokens.len() {
            let (attributes, start) = attributes(tokens, at);
            if start > at {
                if attributes.iter().any(|attribute| requires_test(attribute)) && !scope.in_test {
                    let end = item_end(tokens, start);
                    self.item(&tokens[..end], start, &attributes, Scope { in_test: true, ..scope });
                    at = end;
                } else {
                    at = self.token(tokens, start, &attributes, scope);
                }
                continue;
            }
            at = self.token(tokens, at, &[], scope);
        }
    }

    /// Reads one item, whose attributes make test code of it.
    fn item(&mut self, tokens: &[TokenTree], start: usize, attributes: &[Vec<TokenTree>], scope: Scope) {
        let mut at = self.token(tokens, start, attributes, scope);
        while at < tokens.len() {
            at = self.token(tokens, at, attributes, scope);
        }
    }

    /// Reads what begins at a token, and returns where it ends.
    fn token(&mut self, tokens: &[TokenTree], at: usize, attributes: &[Vec<TokenTree>], scope: Scope) -> usize {
        let Some(token) = tokens.get(at) else { return at + 1 };
        match token {
            TokenTree::Ident(word) => self.word(&word.to_string(), tokens, at, attributes, scope),
            TokenTree::Group(group) => {
                let content: Vec<TokenTree> = group.stream().into_iter().collect();
                // `pub(in crate::path)` names a module and imports nothing.
                if !is_word(content.first(), "in") {
                    self.tokens(&content, Scope { in_body: scope.in_body || is_body(tokens, at), ..scope });
                }
                at + 1
            }
            _ => at + 1,
        }
    }

    fn word(
        &mut self,
        word: &str,
        tokens: &[TokenTree],
        at: usize,
        attributes: &[Vec<TokenTree>],
        scope: Scope,
    ) -> usize {
        let next = tokens.get(at + 1);
        match word {
            // Not `impl Trait + use<'a>`.
            "use" if !is_punct(next, '<') => {
                let end = (at..tokens.len()).find(|end| is_punct(tokens.get(*end), ';')).unwrap_or(tokens.len());
                if !is_path_separator(tokens, at + 1) {
                    self.imports(&tokens[at + 1..end], &[], line(&tokens[at]), scope);
                }
                return end + 1;
            }
            "mod" if matches!(next, Some(TokenTree::Ident(_))) => {
                let file = attributes.iter().find_map(|attribute| attribute_text(attribute, "path"));
                let body = match tokens.get(at + 2) {
                    Some(TokenTree::Group(group)) => Some(group.stream().into_iter().collect()),
                    _ => None,
                };
                let name = next.map(ToString::to_string).unwrap_or_default();
                let in_test = scope.in_test;
                self.children.push(ChildModule { name, line: line(&tokens[at]), in_test, file, body });
                return at + 3;
            }
            "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" => {
                let is_pointer = is_punct(at.checked_sub(1).and_then(|before| tokens.get(before)), '*');
                let name = if is_word(next, "mut") { tokens.get(at + 2) } else { next };
                if let Some(TokenTree::Ident(name)) = name
                    && !scope.in_body
                    && !is_pointer
                {
                    self.module.items.insert(name.to_string());
                }
            }
            "macro_rules" => {
                if let Some(TokenTree::Ident(name)) = tokens.get(at + 2) {
                    self.module.items.insert(name.to_string());
                }
            }
            _ => {}
        }
        if PRINTING_MACROS.contains(&word) && is_punct(next, '!') && !scope.in_test {
            self.module.prints.push((format!("{word}!"), line(&tokens[at])));
        }
        let continues = at >= 2 && is_path_separator(tokens, at - 2);
        if continues || !is_path_separator(tokens, at + 1) {
            return at + 1;
        }
        let (mut segments, mut end) = (vec![word.to_owned()], at + 1);
        while is_path_separator(tokens, end)
            && let Some(TokenTree::Ident(segment)) = tokens.get(end + 2)
        {
            segments.push(segment.to_string());
            end += 3;
        }
        if segments.len() > 1 {
            self.note_exit(&segments, line(&tokens[at]), scope);
            let is_macro = is_punct(tokens.get(end), '!');
            let in_test = scope.in_test;
            self.module.inline_paths.push(InlinePath { segments, line: line(&tokens[at]), is_macro, in_test });
        }
        end
    }

    /// Reads one tree of a `use`, or several with commas between them.
    fn imports(&mut self, tree: &[TokenTree], prefix: &[String], line: usize, scope: Scope) {
        for branch in tree.split(|token| is_punct(Some(token), ',')) {
            let mut path = prefix.to_vec();
            let (mut name, mut is_glob, mut line) = (None, false, line);
            let mut words = branch.iter();
            while let Some(token) = words.next() {
                match token {
                    TokenTree::Ident(word) if *word == "as" => name = words.next().map(ToString::to_string),
                    TokenTree::Ident(word) if *word == "self" && !path.is_empty() => {}
                    TokenTree::Ident(word) => path.push(word.to_string()),
                    TokenTree::Punct(punct) if punct.as_char() == '*' => is_glob = true,
                    TokenTree::Group(group) => {
                        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                        self.imports(&inner, &path, self::line(token), scope);
                        path.clear();
                        break;
                    }
                    _ => {}
                }
                line = self::line(token);
            }
            if path.is_empty() {
                continue;
            }
            self.note_exit(&path, line, scope);
            let name = if is_glob { None } else { name.or_else(|| path.last().cloned()) };
            let Scope { in_test, in_body } = scope;
            self.module.imports.push(ImportedName { name, path, line, in_body, in_test });
        }
    }

    fn note_exit(&mut self, path: &[String], line: usize, scope: Scope) {
        if path.ends_with(&["process".to_owned(), "exit".to_owned()]) && !scope.in_test {
            self.module.prints.push(("process::exit".to_owned(), line));
        }
    }
}

fn line(token: &TokenTree) -> usize {
    token.span().start().line
}

fn is_punct(token: Option<&TokenTree>, expected: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == expected)
}

fn is_word(token: Option<&TokenTree>, expected: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(word)) if *word == expected)
}

/// True if `::` begins at a token.
fn is_path_separator(tokens: &[TokenTree], at: usize) -> bool {
    let joint = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':' && punct.spacing() == Spacing::Joint);
    tokens.get(at).is_some_and(joint) && is_punct(tokens.get(at + 1), ':')
}

/// True if `impl` or `trait` at a token begins an item and does not stand in a type.
fn is_item_start(tokens: &[TokenTree], at: usize) -> bool {
    match at.checked_sub(1).and_then(|before| tokens.get(before)) {
        None | Some(TokenTree::Group(_)) => true,
        Some(TokenTree::Punct(punct)) => punct.as_char() == ';',
        Some(TokenTree::Ident(word)) => *word == "pub" || *word == "unsafe",
        Some(TokenTree::Literal(_)) => false,
    }
}

/// True unless names that are defined in a group are items of the module: in `extern "C" { … }` and in a macro's call.
fn is_body(tokens: &[TokenTree], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).and_then(|index| tokens.get(index));
    let is_foreign = matches!(before(1), Some(TokenTree::Literal(_))) && is_word(before(2), "extern");
    let is_macro_call = is_punct(before(1), '!') && matches!(before(2), Some(TokenTree::Ident(_)));
    !is_foreign && !is_macro_call
}

/// The content of the attribute that begins at a token, and where it ends.
fn attribute(tokens: &[TokenTree], at: usize) -> Option<(Vec<TokenTree>, usize)> {
    let group = at + 1 + usize::from(is_punct(tokens.get(at + 1), '!'));
    match tokens.get(group) {
        Some(TokenTree::Group(content))
            if is_punct(tokens.get(at), '#') && content.delimiter() == Delimiter::Bracket =>
        {
            Some((content.stream().into_iter().collect(), group + 1))
        }
        _ => None,
    }
}

/// All attributes from a token on, and where they end.
fn attributes(tokens: &[TokenTree], mut at: usize) -> (Vec<Vec<TokenTree>>, usize) {
    let mut found = Vec::new();
    while let Some((attribute, end)) = attribute(tokens, at) {
        found.push(attribute);
        at = end;
    }
    (found, at)
}

/// True for `#[test]`, and for a `#[cfg(…)]` that holds in tests only.
fn requires_test(attribute: &[TokenTree]) -> bool {
    match attribute {
        [TokenTree::Ident(word)] => *word == "test",
        [TokenTree::Ident(word), TokenTree::Group(condition)] if *word == "cfg" => {
            condition_requires_test(&condition.stream().into_iter().collect::<Vec<_>>())
        }
        _ => false,
    }
}

fn condition_requires_test(condition: &[TokenTree]) -> bool {
    match condition {
        [TokenTree::Ident(word)] => *word == "test",
        [TokenTree::Ident(word), TokenTree::Group(inner)] => {
            let inner: Vec<TokenTree> = inner.stream().into_iter().collect();
            let mut conditions =
                inner.split(|token| is_punct(Some(token), ',')).filter(|condition| !condition.is_empty());
            (*word == "all" && conditions.any(condition_requires_test))
                || (*word == "any" && conditions.all(condition_requires_test))
        }
        _ => false,
    }
}

/// The text of `#[name = "text"]`.
fn attribute_text(attribute: &[TokenTree], name: &str) -> Option<String> {
    match attribute {
        [TokenTree::Ident(word), TokenTree::Punct(_), TokenTree::Literal(text)] if *word == name => {
            Some(text.to_string().trim_matches('"').to_owned())
        }
        _ => None,
    }
}

/// Where the item, the statement or the field ends that begins at a token.
fn item_end(tokens: &[TokenTree], start: usize) -> usize {
    const END_AT_BRACES: [&str; 12] =
        ["fn", "struct", "enum", "union", "trait", "impl", "mod", "extern", "unsafe", "macro_rules", "async", "const"];
    const END_AT_SEMICOLON: [&str; 4] = ["use", "let", "type", "static"];
    let mut word = start;
    if is_word(tokens.get(word), "pub") {
        word += 1 + usize::from(matches!(tokens.get(word + 1), Some(TokenTree::Group(_))));
    }
    let word = tokens.get(word).map(ToString::to_string).unwrap_or_default();
    let ends_at_semicolon = END_AT_SEMICOLON.contains(&word.as_str());
    let is_item = ends_at_semicolon || END_AT_BRACES.contains(&word.as_str());
    let is_end = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => punct.as_char() == ';' || (punct.as_char() == ',' && !is_item),
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !ends_at_semicolon,
        _ => false,
    };
    tokens[start..].iter().position(is_end).map_or(tokens.len(), |end| start + end + 1)
}
