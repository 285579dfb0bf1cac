//! A station below a pool, with one customer more at a time.

use super::background::BackgroundLoad;

/// Of more servers it is not followed how many are idle.
const MOST_SERVERS: f64 = 64.0;
/// Nor is it of those that are less often all idle.
const LEAST_IDLE: f64 = 1e-6;

/// A station below a pool.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub servers: f64,
    pub others: BackgroundLoad,
    /// The pool's customers there; of very many servers those in the queue for what is scarce, where the rest is a delay
    /// (Seidmann et al. 1987).
    there: f64,
    /// The mean number of servers that these keep busy.
    busy: f64,
    /// Of a processor with several servers, and not very many: the probabilities that 0, 1, … are busy, until it is hardly ever idle.
    idle: Vec<f64>,
    /// Whether servers are threads, which are the slower the more of them are busy.
    threads: bool,
    /// Customers that there are in the network.
    customers: f64,
}

impl Queue {
    pub fn new(servers: f64, threads: bool, others: BackgroundLoad) -> Self {
        let count = if !threads && servers > 1.0 && servers <= MOST_SERVERS { servers as usize } else { 0 };
        let idle = (0..count).map(|busy| f64::from(u8::from(busy == 0))).collect();
        Self { servers, others, there: 0.0, busy: 0.0, idle, threads, customers: 0.0 }
    }

    /// How many more would have to be there for all servers to be busy: Sakasegawa's (1977) chance that they are.
    fn all_busy(&self, busy: f64) -> f64 {
        (busy / self.servers).clamp(0.0, 1.0).powf((2.0 * (self.servers + 1.0)).sqrt() - 1.0)
    }

    /// How much longer than its service a request is there from whose sight so many of those there are taken.
    pub fn slowdown(&self, excluded: f64) -> f64 {
        let there = (self.there - excluded).max(0.0);
        let waits = if self.threads {
            let all = if self.customers >= self.servers { self.all_busy(self.busy) } else { 0.0 };
            let seen = if self.there > 0.0 { (1.0 - excluded / self.there).max(0.0) } else { 1.0 };
            seen * (self.there - self.busy).max(0.0) + all
        } else if self.servers <= 1.0 || self.servers > MOST_SERVERS {
            there
        } else {
            let all = if !self.idle.is_empty() {
                1.0 - self.idle.iter().sum::<f64>()
            } else if self.customers >= self.servers {
                self.all_busy(self.busy)
            } else {
                0.0
            };
            (there - self.busy + all.max(0.0)).max(0.0)
        };
        let waits = waits / self.servers;
        if self.others.load() <= 0.0 {
            return 1.0 + waits;
        }
        let longer = self.others.slowdown(self.servers, 1.0 + waits) / (1.0 + waits);
        if self.servers <= 1.0 {
            return (1.0 + waits) * longer;
        }
        let more = self.all_busy(self.busy + self.others.load()) - self.all_busy(self.busy);
        1.0 + (waits + more / self.servers) * longer
    }

    /// With so many seconds of service begun per second, and so many customers there.
    pub fn turn(&mut self, busy: f64, there: f64) {
        self.customers += 1.0;
        self.busy = if self.threads { busy.min(self.servers) } else { busy };
        if !self.threads && self.servers > MOST_SERVERS {
            self.there = busy / self.servers * (1.0 + self.there);
            return;
        }
        self.there = there;
        let servers = self.idle.len();
        let mut others = busy;
        for at_work in (1..servers).rev() {
            self.idle[at_work] = busy / at_work as f64 * self.idle[at_work - 1];
            others += (servers - at_work) as f64 * self.idle[at_work];
        }
        if let Some(none) = self.idle.first_mut() {
            *none = 1.0 - others / self.servers;
            // What is left of a difference of like numbers would grow without bound from here.
            if *none < LEAST_IDLE {
                self.idle.clear();
            }
        }
    }
}
