//! The cheapest of several.

use crate::study::search::Verdict;
use crate::study::sweep::in_parallel;

/// One of several that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<T> {
    /// Which of them.
    pub number: usize,
    /// Whether it meets the goal.
    pub verdict: Verdict,
    /// What was found out about it.
    pub told: T,
}

/// Tries several in the order of their costs, so many at a time whatever the number of threads, until none can be cheaper than one
/// that meets the goal. Gives those tried, in the order of costs, those of one cost as they are given: all that are as cheap as the
/// answer, and those tried together with it.
pub fn cheapest<T: Send>(
    costs: &[f64],
    at_a_time: usize,
    threads: usize,
    attempt: &(dyn Fn(usize) -> (Verdict, T) + Sync),
) -> Vec<Choice<T>> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by(|left, right| costs[*left].total_cmp(&costs[*right]));
    let mut tried: Vec<Choice<T>> = Vec::new();
    let mut least: Option<f64> = None;
    for some in order.chunks(at_a_time.max(1)) {
        if least.is_some_and(|least| some.first().is_none_or(|number| costs[*number] > least)) {
            break;
        }
        let found = in_parallel(some, threads, &|number: &usize| {
            let (verdict, told) = attempt(*number);
            Choice { number: *number, verdict, told }
        });
        let met = found.iter().filter(|choice| choice.verdict == Verdict::Met).map(|choice| costs[choice.number]);
        least = met.chain(least).reduce(f64::min);
        tried.extend(found);
    }
    tried
}

#[cfg(test)]
mod tests {
    use super::{Verdict, cheapest};

    #[test]
    fn no_cheaper_one_is_left_out() {
        let costs: Vec<f64> = (0..100).map(|number| f64::from(number * 37 % 50)).collect();
        let met = |number: usize| costs[number] >= 20.0 && number.is_multiple_of(3);
        for (at_a_time, threads) in [(16, 1), (16, 4), (1, 1)] {
            let verdict = |number: usize| if met(number) { Verdict::Met } else { Verdict::Missed };
            let tried = cheapest(&costs, at_a_time, threads, &|number| (verdict(number), ()));
            let found = tried.iter().filter(|choice| choice.verdict == Verdict::Met).map(|choice| costs[choice.number]);
            let exact = (0..100).filter(|number| met(*number)).map(|number| costs[number]).reduce(f64::min);
            assert_eq!(found.reduce(f64::min), exact);
            let least = exact.expect("some meet it");
            let count = costs.iter().filter(|cost| **cost <= least).count();
            assert_eq!(tried.iter().filter(|choice| costs[choice.number] <= least).count(), count);
            assert!(tried.len() < count + at_a_time);
        }
        assert_eq!(cheapest(&costs, 16, 2, &|_| (Verdict::Missed, ())).len(), 100);
    }
}
