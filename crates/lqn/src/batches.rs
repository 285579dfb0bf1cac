//! How long batches of messages take, as a mergeable summary: what a batch costs, and what each message in it costs more.
//!
//! A consumer that takes all messages that wait has larger batches under more load, and each of them has a smaller part of what the batch costs. So its capacity is not that of
//! the batches that were traced. The costs are a regression of the own time of batches on their numbers of messages.

use crate::submodel::{Moments, Seconds};

/// From fewer batches nothing follows.
const ENOUGH: u64 = 30;
/// A batch costs something by itself where that is so many standard errors above 0,
const ERRORS: f64 = 3.0;
/// and each message of the largest batches takes no more than this part of what one takes on the mean.
const LESS: f64 = 0.95;

/// Batches that an entry worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    /// How long it worked on each.
    pub time: Moments,
    /// Messages of all.
    pub messages: u64,
    /// The sum of the squares of how many each had.
    pub squares: u64,
    /// The sum of the products of how many each had and how long it took.
    pub products: Seconds,
    /// How many the largest had.
    pub most: u64,
}

/// What batches cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchCosts {
    /// A batch, whatever its size, seconds.
    pub batch: f64,
    /// Each message more, seconds.
    pub message: f64,
    /// Messages of a batch on the mean.
    pub mean: f64,
    /// Messages of the largest batch.
    pub most: u64,
}

impl BatchCosts {
    /// What a message takes in batches of so many, seconds.
    #[must_use]
    pub fn of_message(&self, messages: f64) -> f64 {
        self.message + self.batch / messages
    }

    /// The time of a message in batches as large as the largest, as a part of what it is on the mean.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.of_message(self.most as f64) / self.of_message(self.mean)
    }
}

impl Batches {
    /// Takes in a batch of so many messages, which took so many seconds.
    pub fn add(&mut self, messages: u64, seconds: f64) {
        self.time.add(seconds);
        self.messages = self.messages.saturating_add(messages);
        self.squares = self.squares.saturating_add(messages.saturating_mul(messages));
        self.products = self.products.plus(Seconds::from_f64(messages as f64 * seconds));
        self.most = self.most.max(messages);
    }

    /// Takes in all batches of the other.
    pub fn merge(&mut self, other: &Self) {
        self.time.merge(&other.time);
        self.messages = self.messages.saturating_add(other.messages);
        self.squares = self.squares.saturating_add(other.squares);
        self.products = self.products.plus(other.products);
        self.most = self.most.max(other.most);
    }

    /// What batches cost, where a batch costs something by itself, so that larger ones serve more.
    #[must_use]
    pub fn costs(&self) -> Option<BatchCosts> {
        let count = self.time.count as f64;
        let (messages, time) = (self.messages as f64 / count, self.time.mean()?);
        let spread = self.squares as f64 / count - messages * messages;
        if self.time.count < ENOUGH || spread <= 0.0 {
            return None;
        }
        let message = ((self.products.as_f64() / count - messages * time) / spread).max(0.0);
        let batch = time - message * messages;
        let variance = time * time * self.time.cv2().unwrap_or(0.0);
        let left = (variance - message * message * spread).max(0.0) * count / (count - 2.0);
        let error = (left / count * (1.0 + messages * messages / spread)).sqrt();
        let costs = BatchCosts { batch, message, mean: messages, most: self.most };
        (batch > 0.0 && batch >= ERRORS * error && costs.least() < LESS).then_some(costs)
    }
}

#[cfg(test)]
mod tests {
    use super::Batches;

    fn batches(count: u64, time: impl Fn(u64, u64) -> f64) -> Batches {
        let mut batches = Batches::default();
        for at in 0..count {
            let messages = 1 + at * at % 11;
            batches.add(messages, time(at, messages));
        }
        batches
    }

    #[test]
    fn costs_are_told_apart() {
        let uneven = |at: u64| 1.0 + 0.3 * ((at * 7 % 13) as f64 / 6.0 - 1.0);
        let own = batches(200, |at, messages| 0.02 + 0.0025 * messages as f64 * uneven(at));
        let costs = own.costs().expect("a batch costs 20 ms");
        assert!((costs.batch - 0.02).abs() < 0.001 && (costs.message - 0.0025).abs() < 0.0002, "{costs:?}");
        assert_eq!(costs.most, 10);
        assert!((costs.least() - costs.of_message(10.0) / costs.of_message(costs.mean)).abs() < 1e-12);
        let mut halves = batches(100, |at, messages| 0.02 + 0.0025 * messages as f64 * uneven(at));
        let rest = (100..200)
            .map(|at| (1 + at * at % 11, at))
            .map(|(messages, at)| (messages, 0.02 + 0.0025 * messages as f64 * uneven(at)));
        for (messages, time) in rest {
            halves.add(messages, time);
        }
        assert_eq!(halves, own);
    }

    #[test]
    fn batches_that_cost_nothing_by_themselves_serve_no_more() {
        let uneven = |at: u64| 1.0 + 0.3 * ((at * 7 % 13) as f64 / 6.0 - 1.0);
        assert_eq!(batches(200, |at, messages| 0.0025 * messages as f64 * uneven(at)).costs(), None);
        assert_eq!(batches(20, |_, messages| 0.02 + 0.0025 * messages as f64).costs(), None, "too few");
        let mut alike = Batches::default();
        for _ in 0..100 {
            alike.add(4, 0.03);
        }
        assert_eq!(alike.costs(), None, "all of one size");
        assert_eq!(Batches::default().costs(), None);
    }
}
