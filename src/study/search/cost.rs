//! What values of parameters cost.

use crate::diagnostic::{Diagnostic, Place};
use crate::model::codes;
use crate::model::parameter::{Kind, Path, Subject, Value};

/// What the value of a parameter costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// The parameter.
    pub path: Path,
    prices: Prices,
}

#[derive(Clone, Debug, PartialEq)]
enum Prices {
    /// So much for each of them.
    Each(f64),
    /// So much for that value.
    Of(Vec<(Value, f64)>),
}

impl Cost {
    /// Reads `PATH=COST`, for each unit of the value, or `PATH=VALUE:COST,VALUE:COST`.
    ///
    /// # Errors
    /// When there is no such parameter, or it cannot be read.
    pub fn parse(text: &str, subject: &Subject) -> Result<Self, Diagnostic> {
        let (path, rest) = Path::split(text)?;
        let (path, kind) = subject.parameter(&path)?;
        let own = path.clone();
        let refused = |why: String| {
            Diagnostic::error(codes::SEARCH, Place::Nowhere, format!("`{text}` is no cost: {why}"))
                .with_hint(format!("write `{path}=COST`, what each one costs, or `{path}=VALUE:COST,VALUE:COST`"))
        };
        let rest = rest.strip_prefix('=').ok_or_else(|| refused("it names no amount".to_owned()))?;
        let amount = |text: &str| match text.trim().parse::<f64>() {
            Ok(amount) if amount.is_finite() && amount >= 0.0 => Ok(amount),
            Ok(_) => Err(refused(format!("`{}` is no amount from zero", text.trim()))),
            Err(_) => Err(refused(format!("`{}` is no number", text.trim()))),
        };
        if !rest.contains(':') {
            if kind == Kind::Word {
                return Err(refused("each value of a parameter that takes names has a cost of its own".to_owned()));
            }
            return Ok(Self { path: own, prices: Prices::Each(amount(rest)?) });
        }
        let mut prices = Vec::new();
        for part in rest.split(',') {
            let (value, cost) =
                part.rsplit_once(':').ok_or_else(|| refused(format!("`{}` has no cost", part.trim())))?;
            prices.push((kind.parse(value).map_err(&refused)?, amount(cost)?));
        }
        Ok(Self { path: own, prices: Prices::Of(prices) })
    }

    /// Values that have a cost of their own.
    pub fn named(&self) -> impl Iterator<Item = &Value> {
        let prices = match &self.prices {
            Prices::Each(_) => &[][..],
            Prices::Of(prices) => prices,
        };
        prices.iter().map(|(value, _)| value)
    }

    /// What a value costs; `None` where that is not said.
    pub fn of(&self, value: &Value) -> Option<f64> {
        match &self.prices {
            Prices::Each(price) if *price == 0.0 => Some(0.0),
            Prices::Each(price) => value.number().map(|number| number * price),
            Prices::Of(prices) => prices.iter().find(|(own, _)| own == value).map(|(_, price)| *price),
        }
    }
}
