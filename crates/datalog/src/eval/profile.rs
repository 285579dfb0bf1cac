//! What an evaluation costs: rows in and out, rounds and time of each rule and literal.

/// What is asked of the world while an evaluation runs. The library itself reads no clock.
pub struct Watch<'w> {
    /// Nanoseconds since some moment.
    pub clock: &'w dyn Fn() -> u64,
    /// Whether to stop. What was measured until then is kept.
    pub interrupted: &'w dyn Fn() -> bool,
}

/// What an evaluation cost, rule by rule in the order of the program, those without work too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The rules.
    pub rules: Vec<RuleProfile>,
    /// Whether it ended before all rows were found.
    pub interrupted: bool,
}

/// What a rule cost. A part of an aggregate is a rule of its own, at the place of the rule it stands in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleProfile {
    /// The rule's place in [`crate::ast::Program::rules`].
    pub rule: usize,
    /// Whether this is the inside of one of its aggregates.
    pub aggregate: bool,
    /// How often it was worked off: once, or once a round of a recursion.
    pub rounds: u64,
    /// Nanoseconds.
    pub time: u64,
    /// Rows that it found, known ones included.
    pub rows: u64,
    /// How often arithmetic on numbers had no value: it divided by 0, or left their range. Nothing followed from these rows.
    pub without_value: u64,
    /// The orders in which its literals were joined: one, or one for each recursive literal to begin with.
    pub orders: Vec<Vec<LiteralProfile>>,
}

/// What a literal cost within one order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiteralProfile {
    /// Its place in the body; none where evaluation split it off an argument.
    pub literal: Option<usize>,
    /// Its place within the braces of that literal, where this is a recursive `min` or `max`, of which the rule has the inside.
    pub within: Option<usize>,
    /// Rows that came to it.
    pub taken: u64,
    /// Rows that went on from it.
    pub given: u64,
    /// Whether it shares no column with what stands before it: each row meets each other one.
    pub product: bool,
}

impl Profile {
    /// Takes in what another evaluation of the same program cost, over other facts.
    pub fn merge(&mut self, other: &Self) {
        self.interrupted |= other.interrupted;
        for rule in &other.rules {
            let key = (rule.rule, rule.aggregate);
            match self.rules.binary_search_by_key(&key, |own| (own.rule, own.aggregate)) {
                Ok(place) => self.rules[place].merge(rule),
                Err(place) => self.rules.insert(place, rule.clone()),
            }
        }
    }
}

impl RuleProfile {
    /// Takes in the same rule's cost over other facts. These may have led to other orders of its literals.
    fn merge(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.time += other.time;
        self.rows += other.rows;
        self.without_value += other.without_value;
        for order in &other.orders {
            let same = |own: &&mut Vec<LiteralProfile>| {
                own.len() == order.len()
                    && own
                        .iter()
                        .zip(order)
                        .all(|(a, b)| (a.literal, a.within, a.product) == (b.literal, b.within, b.product))
            };
            let Some(own) = self.orders.iter_mut().find(same) else {
                self.orders.push(order.clone());
                continue;
            };
            for (literal, more) in own.iter_mut().zip(order) {
                literal.taken += more.taken;
                literal.given += more.given;
            }
        }
    }
}
