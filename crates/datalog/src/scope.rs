//! Which relation a name means where.
//!
//! A relation belongs to the file whose rules define it. Other files see it where that file exports it and they use that
//! file. What a file sees by `use` it shows on only where it exports that in turn. So two files may have relations of one
//! name, and neither changes what the other's rules mean.

use std::collections::VecDeque;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::ast::{Atom, Ident, Program, Span};

/// A name in a file.
type Key<'p> = (u32, &'p str);

/// The relations that rules of a program define, and the names by which its files know them.
pub struct Scopes<'p> {
    program: &'p Program,
    /// The relations with the head that defined each first: the index is the relation's number.
    defined: IndexMap<Key<'p>, &'p Atom, FxBuildHasher>,
    /// How many relations have a name.
    namesakes: FxHashMap<&'p str, u32>,
    /// The files that a file uses, each once, with the first place where it does.
    uses: FxHashMap<u32, Vec<(u32, Span)>>,
    /// What a file shows to those that use it, with the place where it says so.
    exported: FxHashMap<Key<'p>, (u32, Span)>,
    /// Exports of what the file does not know.
    unknown: Vec<&'p Ident>,
}

/// Two relations of one name in a file.
pub(crate) struct Clash<'p> {
    /// The name, where it cannot be told what it means.
    pub(crate) name: &'p Ident,
    /// The relations, with the `use` that brings each; none for the file's own.
    pub(crate) relations: [(u32, Option<Span>); 2],
}

impl<'p> Scopes<'p> {
    /// Those of a program.
    pub fn of(program: &'p Program) -> Self {
        let mut defined = IndexMap::default();
        let mut namesakes = FxHashMap::default();
        for rule in &program.rules {
            let name = &*rule.head.relation.value;
            if let indexmap::map::Entry::Vacant(entry) = defined.entry((rule.head.relation.span.file, name)) {
                entry.insert(&rule.head);
                *namesakes.entry(name).or_insert(0) += 1;
            }
        }
        let mut uses: FxHashMap<u32, Vec<(u32, Span)>> = FxHashMap::default();
        let mut seen = FxHashSet::default();
        for used in &program.uses {
            let file = used.span.file;
            if file != used.file && seen.insert((file, used.file)) {
                uses.entry(file).or_default().push((used.file, used.span));
            }
        }
        let mut scopes =
            Self { program, defined, namesakes, uses, exported: FxHashMap::default(), unknown: Vec::new() };
        scopes.export();
        scopes
    }

    /// Files export what they define, and what they see of other files' exports.
    fn export(&mut self) {
        let mut waiting: FxHashMap<Key<'p>, &'p Ident> = FxHashMap::default();
        let mut known: VecDeque<Key<'p>> = VecDeque::new();
        for name in &self.program.exports {
            let key = (name.span.file, &*name.value);
            match self.defined.get_index_of(&key) {
                Some(number) if !self.exported.contains_key(&key) => {
                    self.exported.insert(key, (number as u32, name.span));
                    known.push_back(key);
                }
                Some(_) => {}
                None => drop(waiting.entry(key).or_insert(name)),
            }
        }
        let mut users: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (user, used) in &self.uses {
            for (file, _) in used {
                users.entry(*file).or_default().push(*user);
            }
        }
        // Each wave of known names is looked for in the files that use its files; in the order of the files.
        for users in users.values_mut() {
            users.sort_unstable();
        }
        while let Some((file, name)) = known.pop_front() {
            let (number, _) = self.exported[&(file, name)];
            for user in users.get(&file).into_iter().flatten() {
                if let Some(place) = waiting.remove(&(*user, name)) {
                    self.exported.insert((*user, name), (number, place.span));
                    known.push_back((*user, name));
                }
            }
        }
        self.unknown = waiting.into_values().collect();
        self.unknown.sort_by_key(|name| name.span);
    }

    /// How many relations there are.
    pub fn len(&self) -> usize {
        self.defined.len()
    }

    /// Whether rules define no relation.
    pub fn is_empty(&self) -> bool {
        self.defined.is_empty()
    }

    /// The number of the relation that a name means where it stands: the file's own, or one that a used file exports.
    pub fn relation(&self, name: &Ident) -> Option<u32> {
        self.relation_in(name.span.file, &name.value)
    }

    /// The number of the relation that a name means in a file.
    pub fn relation_in(&self, file: u32, name: &str) -> Option<u32> {
        let own = self.defined.get_index_of(&(file, name)).map(|number| number as u32);
        own.or_else(|| self.brought(file, name).next().map(|(number, _)| number))
    }

    /// The relations of a name that used files export, with the places of those `use`s.
    fn brought(&self, file: u32, name: &str) -> impl Iterator<Item = (u32, Span)> {
        let used = self.uses.get(&file).into_iter().flatten();
        used.filter_map(move |(used, span)| Some((self.exported.get(&(*used, name))?.0, *span)))
    }

    /// The head that defined a relation first.
    pub fn first(&self, relation: u32) -> &'p Atom {
        self.defined[relation as usize]
    }

    /// A relation's name, with its file where another one has the same name.
    ///
    /// # Panics
    /// When the number is of other scopes.
    pub fn shown(&self, relation: u32) -> String {
        let ((file, name), _) = self.defined.get_index(relation as usize).expect("numbers come from here");
        match self.program.files.get(*file as usize) {
            Some(source) if self.namesakes[name] > 1 => format!("{name} of {}", source.name),
            _ => (*name).to_owned(),
        }
    }

    /// The numbers of the relations of one name, whatever file they belong to, in the order of the text.
    pub fn all_of(&self, name: &str) -> Vec<u32> {
        if !self.namesakes.contains_key(name) {
            return Vec::new();
        }
        let all = self.defined.keys().enumerate();
        all.filter(|(_, (_, other))| *other == name).map(|(number, _)| number as u32).collect()
    }

    /// The names that a file knows, its own first.
    pub fn names(&self, file: u32) -> Vec<&'p str> {
        let own = self.defined.keys().filter(|(of, _)| *of == file).map(|(_, name)| *name);
        let used = self.uses.get(&file).map(Vec::as_slice).unwrap_or_default();
        let brought = self.program.exports.iter().filter(|export| {
            used.iter().any(|(file, _)| *file == export.span.file)
                && self.exported.contains_key(&(export.span.file, &*export.value))
        });
        own.chain(brought.map(|export| &*export.value)).collect()
    }

    /// A relation of that name in a file that this one uses, itself or by way of others, but does not see.
    pub(crate) fn hidden(&self, name: &Ident) -> Option<u32> {
        let mut seen = FxHashSet::from_iter([name.span.file]);
        let mut queue = VecDeque::from([name.span.file]);
        while let Some(file) = queue.pop_front() {
            if let Some(number) = self.defined.get_index_of(&(file, &*name.value)) {
                return Some(number as u32);
            }
            for (used, _) in self.uses.get(&file).into_iter().flatten() {
                if seen.insert(*used) {
                    queue.push_back(*used);
                }
            }
        }
        None
    }

    /// The file that a relation belongs to, and whether that file exports it.
    ///
    /// # Panics
    /// When the number is of other scopes.
    pub(crate) fn home(&self, relation: u32) -> (u32, bool) {
        let (key, _) = self.defined.get_index(relation as usize).expect("numbers come from here");
        (key.0, self.exported.contains_key(key))
    }

    /// Exports of names that the file does not know.
    pub(crate) fn unknown_exports(&self) -> &[&'p Ident] {
        &self.unknown
    }

    /// The relation that stands for a name asked of the whole program: what the first file means by it, or else the only
    /// one of that name.
    pub fn only(&self, name: &str) -> Option<u32> {
        let meant = self.relation_in(0, name);
        meant.or_else(|| (self.namesakes.get(name) == Some(&1)).then(|| self.all_of(name)[0]))
    }

    /// Names that mean two things in their file: defined there and brought by a `use`, or brought by two and asked for.
    pub(crate) fn clashes(&self, asked: impl Iterator<Item = &'p Ident>) -> Vec<Clash<'p>> {
        let own = self.defined.iter().enumerate().filter_map(|(number, ((file, name), head))| {
            let (other, span) = self.brought(*file, name).find(|(other, _)| *other != number as u32)?;
            Some(Clash { name: &head.relation, relations: [(number as u32, None), (other, Some(span))] })
        });
        let mut seen = FxHashSet::default();
        let asked = asked.filter_map(|name| {
            let key = (name.span.file, &*name.value);
            if self.defined.contains_key(&key) || !seen.insert(key) {
                return None;
            }
            let mut brought = self.brought(key.0, key.1);
            let (first, by) = brought.next()?;
            let (other, span) = brought.find(|(other, _)| *other != first)?;
            Some(Clash { name, relations: [(first, Some(by)), (other, Some(span))] })
        });
        own.chain(asked).collect()
    }

    /// The files that a file uses, with the places where it does.
    pub(crate) fn used_by(&self, file: u32) -> std::slice::Iter<'_, (u32, Span)> {
        self.uses.get(&file).map(Vec::as_slice).unwrap_or_default().iter()
    }

    /// Each file with the files that it uses, in their order, with the places of the `use`s.
    pub(crate) fn uses(&self) -> Vec<(u32, &[(u32, Span)])> {
        let mut all: Vec<(u32, &[(u32, Span)])> = self.uses.iter().map(|(file, used)| (*file, &used[..])).collect();
        all.sort_unstable_by_key(|(file, _)| *file);
        all
    }

    /// Whether a file brings the relation into those that use it.
    pub(crate) fn brings(&self, file: u32, name: &str) -> bool {
        self.exported.contains_key(&(file, name))
    }
}
