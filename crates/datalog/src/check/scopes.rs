//! Checks of what files show each other: exports, uses, names that mean two things.

use std::collections::HashSet;

use crate::ast::{Ident, Span};
use crate::check::{Checker, atoms};
use crate::codes;
use dyelog_diagnostic::{Diagnostic, similar};

/// Names without a meaning for which a near one is sought: more than are shown.
const SOUGHT: usize = 200;

impl<'p> Checker<'p> {
    pub(super) fn scopes(&mut self) {
        let unknown: Vec<&Ident> = self.scopes.unknown_exports().to_vec();
        for name in unknown {
            if self.schema.get(&name.value).is_some() {
                self.error(codes::RELATION, name.span, format!("`{}` is a relation of the facts", name.value), |d| {
                    d.with_note("every file knows it").with_hint("remove it here")
                });
            } else {
                self.unknown(name);
            }
        }
        self.exports_again();
        let asked = self.asked_names();
        for clash in self.scopes.clashes(asked.into_iter()) {
            self.clash(clash.name, clash.relations);
        }
    }

    /// Every name of a relation that is asked for, with its place.
    fn asked_names(&self) -> Vec<&'p Ident> {
        let mut asked: Vec<&'p Ident> = Vec::new();
        for rule in &self.program.rules {
            atoms(&rule.body, &mut |atom, _| asked.push(&atom.relation));
        }
        for template in &self.program.templates {
            atoms(&template.conditions, &mut |atom, _| asked.push(&atom.relation));
        }
        asked.extend(self.program.outputs.iter().map(|output| &output.relation));
        asked.extend(&self.program.exports);
        asked
    }

    fn exports_again(&mut self) {
        let mut seen = HashSet::new();
        for name in &self.program.exports {
            if !seen.insert((name.span.file, &*name.value)) {
                self.warning(codes::OUTPUT, name.span, format!("a second `export {}`", name.value), |d| {
                    d.with_hint("remove one of them")
                });
            }
        }
    }

    fn clash(&mut self, name: &Ident, relations: [(u32, Option<Span>); 2]) {
        let message = format!("`{}` means two relations here", name.value);
        let mut places = Vec::new();
        for (relation, by) in relations {
            let place = self.place(self.scopes.first(relation).relation.span);
            let first = self.scopes.first(relation).relation.span;
            if first != name.span {
                places.push((place, "defined here".to_owned()));
            }
            places.extend(by.map(|by| (self.place(by), "brought by this `use`".to_owned())));
        }
        let own = relations.iter().any(|(_, by)| by.is_none());
        self.error(codes::NAME_AGAIN, name.span, message, |d| {
            let d = places.into_iter().fold(d, |d, (place, words)| d.with_place(place, words));
            d.with_note("relations of two files are never united").with_hint(if own {
                "rename the one of this file, or drop the `export` of the other"
            } else {
                "rename one of them, or drop one `export`"
            })
        });
    }

    /// A name that stands for no relation.
    pub(super) fn unknown(&mut self, relation: &Ident) {
        let name = &*relation.value;
        if self.program.lost.may_define(name) {
            return;
        }
        if let Some(hidden) = self.scopes.hidden(relation) {
            self.private(relation, hidden);
            return;
        }
        self.unknown += 1;
        if self.unknown > SOUGHT {
            self.error(codes::RELATION, relation.span, format!("no relation is called `{name}`"), |d| d);
            return;
        }
        let known = self.scopes.names(relation.span.file);
        let known: Vec<&str> = known.into_iter().chain(self.schema.names()).chain(self.schema.offered()).collect();
        let file = self.schema.file_of(name).or_else(|| self.schema.file_of(similar(name, known.iter().copied())?));
        self.error(codes::RELATION, relation.span, format!("no relation is called `{name}`"), |d| {
            let d = match name {
                "starts" => d.with_hint("`starts` exists in the form `!starts(template, node)` only, under `where`"),
                _ if self.schema.file_of(name).is_some() => d,
                _ => d.with_similar(name, known.iter().copied()),
            };
            let d = match self.schema.with_column(name) {
                Some(columns) => d.with_hint(format!("`{name}` is a column of `{columns}`")),
                None => d,
            };
            let d = match file {
                Some(file) => d.with_hint(format!("write `use \"{file}\"` at the top: that file defines it")),
                None if d.hints.is_empty() => d.with_hint(format!("write rules for it: `{name}(…) :- ….`")),
                None => d,
            };
            d.with_note("a relation is defined by rules of this file, exported by a used one, or one of the facts")
        });
    }

    /// A relation of a used file that this one does not see.
    fn private(&mut self, relation: &Ident, hidden: u32) {
        let name = &*relation.value;
        let place = self.place(self.scopes.first(hidden).relation.span);
        let (home, exported) = self.scopes.home(hidden);
        let file = self.program.files.get(home as usize).map_or("rules", |file| &*file.name);
        let (message, hint) = if exported {
            (format!("`{name}` of {file} is not known here"), format!("write `use \"{file}\"` here"))
        } else {
            (format!("`{name}` is private to {file}"), format!("write `export {name}.` there"))
        };
        self.error(codes::PRIVATE, relation.span, message, |d| {
            d.with_place(place, "defined here")
                .with_note("a file sees what the files that it uses export, and not what those use in turn")
                .with_hint(hint)
        });
    }

    /// A `use` that brings nothing: no template, and no relation that anything asks for. Only in the author's own files.
    pub(super) fn unused_uses(&mut self) {
        let (program, asked) = (self.program, self.asked_names());
        // Where a name stands for nothing, a `use` may have been meant to bring it.
        let nameless = |(span, finding): &(Span, Diagnostic)| {
            [codes::RELATION, codes::PRIVATE].contains(&finding.code).then_some(span.file)
        };
        let nameless: HashSet<u32> = self.found.iter().filter_map(nameless).collect();
        if program.lost.anything() || program.templates.iter().any(|template| template.damage.any()) {
            return;
        }
        let named: HashSet<(u32, &str)> = asked.iter().map(|name| (name.span.file, &*name.value)).collect();
        let templates: HashSet<u32> = program.templates.iter().map(|template| template.span.file).collect();
        let found: Vec<Span> = self
            .scopes
            .uses()
            .into_iter()
            .filter(|(file, _)| self.own.contains(file) && !nameless.contains(file))
            .flat_map(|(file, used)| used.iter().map(move |(used, span)| (file, *used, *span)))
            .filter(|(file, used, _)| {
                let asks = named.iter().any(|(of, name)| of == file && self.scopes.brings(*used, name));
                !asks && !self.reaches(*used, &templates)
            })
            .map(|(.., span)| span)
            .collect();
        for span in found {
            self.warning(codes::UNUSED_USE, span, "this `use` brings nothing that is used".to_owned(), |d| {
                d.with_note("the file has no template, and none of the relations that it exports is asked for here")
                    .with_hint("remove it")
            });
        }
    }

    /// Whether a file, or one that it uses, is among those.
    fn reaches(&self, file: u32, wanted: &HashSet<u32>) -> bool {
        let mut seen = HashSet::from([file]);
        let mut open = vec![file];
        while let Some(file) = open.pop() {
            if wanted.contains(&file) {
                return true;
            }
            for (used, _) in self.scopes.used_by(file) {
                if seen.insert(*used) {
                    open.push(*used);
                }
            }
        }
        false
    }
}
