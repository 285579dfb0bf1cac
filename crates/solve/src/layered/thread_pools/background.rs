//! The background load of the stations below a pool.

use crate::layered::chains::{ClientId, ClientKind, Decomposition, StationId};
use crate::numeric::by_id::ById;

use super::Inputs;

/// By station: the customers there.
pub(super) type BackgroundLoads = ById<StationId, BackgroundLoad>;

/// The customers at a station.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BackgroundLoad {
    /// Servers that streams keep busy.
    open: f64,
    /// Others: how many there are, visits per second, servers that they keep busy, and how many are there.
    customers: f64,
    rate: f64,
    busy: f64,
    there: f64,
}

impl BackgroundLoad {
    /// All customers at each station.
    pub fn all(decomposition: &Decomposition, inputs: &Inputs) -> BackgroundLoads {
        let mut all = decomposition.by_station(Self::default());
        for (task, client) in decomposition.threads_of.pairs() {
            if let &Some(client) = client {
                all[decomposition.task_station(task)].open += inputs.rates[client].1 * inputs.busy[client];
            }
        }
        for client in decomposition.clients.ids() {
            Self::add(&mut all, decomposition, inputs, client, 1.0);
        }
        all
    }

    /// Adds so much of what a client does everywhere.
    pub fn add(all: &mut BackgroundLoads, decomposition: &Decomposition, inputs: &Inputs, client: ClientId, part: f64) {
        let population = inputs.before[client].map_or(decomposition.clients[client].population, |pool| pool.population);
        let mut last = None;
        for demand in &inputs.demands[client] {
            let load = &mut all[demand.station];
            let rate = part * inputs.throughputs[client];
            if let ClientKind::Open { .. } = decomposition.clients[client].kind {
                load.open += rate * demand.time;
                continue;
            }
            if last.replace(demand.station) != Some(demand.station) {
                load.customers += part * population;
            }
            load.rate += rate * demand.visits;
            load.busy += rate * demand.time;
            load.there += rate * (demand.stay + demand.time - demand.service);
        }
    }

    /// Without what rounding leaves.
    pub fn cut(self, load: f64) -> Self {
        if self.busy > 1e-9 * load { self } else { Self { open: self.open.max(0.0), ..Self::default() } }
    }

    pub fn load(&self) -> f64 {
        self.open + self.busy
    }

    /// How much longer than its service a request is there, if it were `alone` times as long without these. They come the less often
    /// the longer they take.
    pub fn slowdown(&self, servers: f64, alone: f64) -> f64 {
        let free = (1.0 - self.open / servers).max(1e-3);
        let alone = alone / free;
        if self.rate <= 0.0 || self.busy <= 0.0 || self.customers <= 0.0 {
            return alone;
        }
        let service = self.busy / self.rate;
        let away = ((self.customers - self.there) / self.rate).max(0.0);
        let seen = (1.0 - 1.0 / self.customers).max(0.0);
        // Each is away, and then as long here as the others that are here make it.
        let most = self.customers * service / (servers * free);
        let sum = away + service * alone + seen * most;
        let load = 2.0 * most / (sum + (sum * sum - 4.0 * seen * away * most).max(0.0).sqrt());
        alone * (1.0 + (1.0 - seen) * load) / (1.0 - seen * load).max(1e-3)
    }
}

#[cfg(test)]
mod tests {
    use super::BackgroundLoad;

    #[test]
    fn others_take_what_streams_leave_and_come_the_less_often_the_longer_they_take() {
        let stream = BackgroundLoad { open: 0.5, ..BackgroundLoad::default() };
        assert!((stream.slowdown(1.0, 3.0) - 6.0).abs() < 1e-9);
        // One of 2 s that is away for 2 s and finds two requests there each time: at work a quarter of the time.
        let one = BackgroundLoad { customers: 1.0, rate: 0.25, busy: 0.5, there: 0.5, ..BackgroundLoad::default() };
        assert!((one.slowdown(1.0, 3.0) - 3.0 * 1.25).abs() < 1e-9);
        // So many that they take no notice are a stream.
        let many = BackgroundLoad { customers: 1e9, rate: 0.25, busy: 0.5, there: 1.0, ..BackgroundLoad::default() };
        assert!((many.slowdown(1.0, 3.0) - 6.0).abs() < 1e-6);
    }
}
