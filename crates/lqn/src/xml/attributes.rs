//! Attributes of elements as numbers and words.

use crate::codes;
use crate::findings::{Fault, fault};
use crate::scheduling::{WORDS, meaning};
use crate::xml::read::Reader;
use crate::xml::tree::{Element, at};
use crate::{Multiplicity, Scheduling};
use dyelog_diagnostic::Diagnostic;

impl Reader<'_> {
    /// Reports an error at an element.
    #[expect(clippy::boxed_local, reason = "errors travel in boxes, and this is where they arrive")]
    pub(super) fn report(&mut self, element: &Element, mut error: Fault) {
        error.place = at(element, &self.findings);
        self.findings.push(*error);
    }

    /// The value; where it cannot be had, reports why and gives nothing.
    pub(super) fn checked<T>(&mut self, element: &Element, value: Result<T, Fault>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(error) => {
                self.report(element, error);
                None
            }
        }
    }

    /// Warns of attributes that are not among the known ones.
    pub(super) fn know_attributes(&mut self, element: &Element, known: &[&str]) {
        for (name, _) in &element.attributes {
            if !known.contains(&&**name) && !name.starts_with("xmlns") && !name.starts_with("xsi:") {
                let message = format!("the element `{}` has no attribute `{name}`; it is left out", element.name);
                let place = at(element, &self.findings);
                let warning = Diagnostic::warning(codes::UNKNOWN_WORD, place, message);
                self.findings.push(warning.with_similar(name, known.iter().copied()));
            }
        }
    }

    /// Warns of an element that has no place where it stands.
    pub(super) fn unknown_element(&mut self, element: &Element, parent: &Element, known: &[&str]) {
        let message = format!("there is no element `{}` in `{}`; it is left out", element.name, parent.name);
        let place = at(element, &self.findings);
        let warning = Diagnostic::warning(codes::UNKNOWN_WORD, place, message);
        self.findings.push(warning.with_similar(&element.name, known.iter().copied()));
    }

    /// The attribute, which must be there; an empty text stands for it where it is not.
    pub(super) fn required<'e>(&mut self, element: &'e Element, name: &str) -> &'e str {
        element.attribute(name).unwrap_or_else(|| {
            let message = format!("the element `{}` needs the attribute `{name}`", element.name);
            self.report(element, fault(codes::SYNTAX, message));
            ""
        })
    }

    /// The attribute as a number, where it is there and is one.
    pub(super) fn number(&mut self, element: &Element, name: &str) -> Option<f64> {
        let text = element.attribute(name)?.trim();
        let value = match text.strip_prefix('$') {
            Some(variable) => self.variables.get(variable).copied().ok_or_else(|| {
                let known = self.variables.keys().map(String::as_str);
                let error = fault(codes::UNKNOWN_VARIABLE, format!("`${variable}` is not defined"));
                Box::new(error.with_similar(variable, known))
            }),
            None => match text.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(value),
                _ => Err(fault(codes::BAD_NUMBER, format!("`{name}=\"{text}\"` is no number"))),
            },
        };
        self.checked(element, value)
    }

    /// The attribute as a whole number from `least`.
    pub(super) fn count(&mut self, element: &Element, name: &str, least: u32) -> Option<u32> {
        let value = self.number(element, name)?;
        if (f64::from(least)..=f64::from(u32::MAX)).contains(&value) && value.fract() == 0.0 {
            return Some(value as u32);
        }
        let message = format!("`{name}=\"{value}\"` is no whole number from {least}");
        self.report(element, fault(codes::BAD_NUMBER, message));
        None
    }

    /// The attribute as a whole number of either sign.
    pub(super) fn integer(&mut self, element: &Element, name: &str) -> Option<i32> {
        let value = self.number(element, name)?;
        if (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value) && value.fract() == 0.0 {
            return Some(value as i32);
        }
        self.report(element, fault(codes::BAD_NUMBER, format!("`{name}=\"{value}\"` is no whole number")));
        None
    }

    /// The attribute `multiplicity`.
    pub(super) fn multiplicity(&mut self, element: &Element) -> Option<Multiplicity> {
        match element.attribute("multiplicity")? {
            "@infinity" | "infinity" | "infinite" | "inf" => Some(Multiplicity::Infinite),
            _ => self.count(element, "multiplicity", 1).map(Multiplicity::Finite),
        }
    }

    /// The attribute `scheduling`, first come, first served where it is not given.
    pub(super) fn scheduling(&mut self, element: &Element) -> Scheduling {
        let Some(word) = element.attribute("scheduling") else { return Scheduling::Fcfs };
        meaning(&WORDS, word).unwrap_or_else(|| {
            let error = fault(codes::SYNTAX, format!("there is no scheduling `{word}`"));
            let error = Box::new(error.with_similar(word, WORDS.iter().map(|&(known, _)| known)));
            self.report(element, error);
            Scheduling::Fcfs
        })
    }
}
