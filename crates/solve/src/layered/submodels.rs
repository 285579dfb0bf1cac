//! The decomposition into layers, and the queueing network of each.
//!
//! A chain and the stations that it visits belong together, so a layer is a connected component of chains and stations. A
//! task that queues is a station of the layer of its callers and a client class in the layer of its servers; what
//! passes between layers is its service time, upwards, and its throughput, downwards.

use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashMap;

use dyelog_lqn::model::{EntryId, Scheduling};

use crate::layered::chains::{ChainId, ClientId, ClientKind, Decomposition, Item, NONE, StationId};
use crate::layered::phase_times::{Waits, slice};
use crate::mva::{self, Discipline, Load, Network, Station, Stay, Visit};
use crate::numeric::arrivals::Arrivals;
use crate::numeric::by_id::{ById, Id};
use crate::prepare::plan::{ModelPlan, PlannedWork};

/// Chains and stations that are solved together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    pub chains: Vec<ChainId>,
    /// Entries that get Poisson requests at a station of the layer.
    pub open: Vec<EntryId>,
    /// Stations, numbered as in [`Decomposition`].
    pub stations: Vec<StationId>,
}

/// All layers, callers first.
pub(crate) fn layers(plan: &ModelPlan, decomposition: &Decomposition, open: &[EntryId]) -> Vec<Layer> {
    let stations = decomposition.processors + plan.model.tasks.len();
    let mut sets = UnionFind::new(stations + decomposition.chains.len());
    for (number, chain) in decomposition.chains.pairs() {
        for &station in &chain.stations {
            sets.union(stations + number.position(), station.position());
        }
    }
    let mut layers: Vec<Layer> = Vec::new();
    let mut of_set: FxHashMap<usize, usize> = FxHashMap::default();
    let mut layer_of = |sets: &UnionFind<usize>, element: usize, layers: &mut Vec<Layer>| {
        let set = sets.find(element);
        *of_set.entry(set).or_insert_with(|| {
            layers.push(Layer::default());
            layers.len() - 1
        })
    };
    for number in decomposition.chains.ids() {
        let layer = layer_of(&sets, stations + number.position(), &mut layers);
        layers[layer].chains.push(number);
    }
    for &entry in open {
        let station = decomposition.task_station(plan.entries[entry.index()].task);
        let layer = layer_of(&sets, station.position(), &mut layers);
        layers[layer].open.push(entry);
    }
    for layer in &mut layers {
        let mut visited: Vec<StationId> =
            layer.chains.iter().flat_map(|chain| decomposition.chains[*chain].stations.clone()).collect();
        visited.extend(layer.open.iter().map(|entry| decomposition.task_station(plan.entries[entry.index()].task)));
        visited.sort_unstable();
        visited.dedup();
        layer.stations = visited;
    }
    layers
}

/// How requests come to a station.
fn arrivals(plan: &ModelPlan, decomposition: &Decomposition, station: StationId) -> Arrivals {
    let own = match decomposition.element(station) {
        Ok(processor) => plan.processor_arrivals.get(processor.index()),
        Err(task) => plan.arrivals.get(task.index()),
    };
    own.copied().unwrap_or_default()
}

/// The station of that number.
pub(crate) fn station(plan: &ModelPlan, decomposition: &Decomposition, station: StationId) -> Station {
    let (scheduling, servers, at_once) = match decomposition.element(station) {
        Ok(id) => {
            let processor = &plan.model.processors[id.index()];
            let (all, copies) = (processor.all_servers(), f64::from(processor.copies()));
            let cap = plan.caps[id.index()];
            (processor.scheduling, cap.map_or(all, |cap| cap * copies), cap.map(|_| all))
        }
        Err(task) => (plan.model.tasks[task.index()].scheduling, plan.threads[task.index()], None),
    };
    let discipline = match scheduling {
        Scheduling::ProcessorSharing | Scheduling::CompletelyFair => Discipline::Sharing,
        Scheduling::HeadOfLine => Discipline::HeadOfLine,
        Scheduling::PreemptivePriority => Discipline::Preemptive,
        _ => Discipline::Fcfs,
    };
    Station { discipline, servers, at_once, thread_queueing: 0.0, arrivals: arrivals(plan, decomposition, station) }
}

/// Sums over the classes of a visit.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sum {
    visits: f64,
    service: f64,
    service2: f64,
    after: f64,
    after2: f64,
    priority: f64,
    repeat: f64,
    inter_visit: f64,
}

impl Sum {
    /// Seconds of service.
    pub fn service(&self) -> f64 {
        self.service
    }

    /// The squares of the mean service, seconds².
    pub fn squares(&self) -> f64 {
        if self.visits > 0.0 { self.service * self.service / self.visits } else { 0.0 }
    }

    fn visit(&self, chain: mva::ChainId, station: mva::StationId) -> Visit {
        let mean = |sum: f64| if self.visits > 0.0 { sum / self.visits } else { 0.0 };
        Visit {
            chain,
            station,
            visits: self.visits,
            service: mean(self.service),
            service2: mean(self.service2),
            after: mean(self.after),
            after2: mean(self.after2),
            priority: mean(self.priority).round() as i32,
            repeat: mean(self.repeat).min(1.0),
            inter_visit: if self.repeat > 0.0 { self.inter_visit / self.repeat } else { 0.0 },
            longer: 0.0,
            guess: Stay::default(),
        }
    }

    fn add_entry(&mut self, plan: &ModelPlan, waits: &Waits, entry: EntryId, visits: f64) {
        let [first, second, third] = waits.service[entry.index()];
        let after = second.mean + third.mean;
        self.visits += visits;
        self.service += visits * first.mean;
        self.service2 += visits * first.square();
        self.after += visits * after;
        self.after2 += visits * (second.variance + third.variance + after * after);
        self.priority += visits * f64::from(plan.model.entries[entry.index()].priority.unwrap_or(0));
    }
}

/// A chain's visits by slot, in one cycle of its client, with how often each entry is executed in it.
pub(crate) fn chain_visits(
    plan: &ModelPlan,
    decomposition: &Decomposition,
    number: ChainId,
    flows: &[f64],
    waits: &Waits,
) -> Vec<Sum> {
    let chain = &decomposition.chains[number];
    let mut sums = vec![Sum::default(); chain.stations.len()];
    let stays = &waits.all(number);
    for (position, reach) in chain.reach.iter().enumerate() {
        let task = plan.entries[reach.entry.index()].task;
        let priority = f64::from(plan.model.tasks[task.index()].priority);
        let mut executions = 0.0;
        let mut current = None;
        for item in &chain.items[reach.items.clone()] {
            match *item {
                Item::Step { work, visits, slot, .. } => {
                    executions = flows[position] * visits;
                    let work = &plan.works[work];
                    let stay = if slot == NONE { Stay::default() } else { stays[slot as usize] };
                    current = Some((work, slice(work, stay).mean));
                    if slot != NONE {
                        let count = executions * work.slices;
                        let sum = &mut sums[slot as usize];
                        sum.visits += count;
                        sum.service += count * work.slice;
                        sum.service2 += count * work.slice * work.slice * (1.0 + work.cv2);
                        sum.priority += count * priority;
                    }
                }
                Item::Call { mean, slot, to, .. } => {
                    let sum = &mut sums[slot as usize];
                    sum.add_entry(plan, waits, to, executions * mean);
                    if let Some((work, slice)) = current {
                        let repeat = executions * mean * repeats(work, mean);
                        sum.repeat += repeat;
                        sum.inter_visit += repeat * slice;
                    }
                }
                Item::Flattened { .. } | Item::Send { .. } | Item::Fork { .. } => {}
            }
        }
    }
    sums
}

/// The part of calls to one entry that directly follow another call to it.
fn repeats(work: &PlannedWork, mean: f64) -> f64 {
    if work.deterministic { if mean > 1.0 { (mean - 1.0) / mean } else { 0.0 } } else { mean / work.slices.max(mean) }
}

/// A layer's network with the place of each visit in it: chain and slot.
pub(crate) struct LayerNetwork {
    pub network: Network,
    /// By visit: chain and slot; none for those of open entries.
    pub places: Vec<Option<(ChainId, usize)>>,
}

/// Builds the network of a layer from the loads of its chains.
pub(crate) fn network(
    plan: &ModelPlan,
    decomposition: &Decomposition,
    layer: &Layer,
    loads: &[Load],
    sums: &[Vec<Sum>],
    open: &[f64],
    waits: &Waits,
) -> LayerNetwork {
    let mut network = Network::default();
    let mut places = Vec::new();
    let local = |station: StationId| {
        let place = layer.stations.binary_search(&station);
        mva::StationId::at(place.expect("a layer has all stations of its decomposition"))
    };
    network.stations = layer
        .stations
        .iter()
        .map(|&number| Station {
            thread_queueing: waits.thread_queueing[number],
            ..station(plan, decomposition, number)
        })
        .collect();
    for ((&number, load), sums) in layer.chains.iter().zip(loads).zip(sums) {
        let chain = network.chains.push(*load);
        for (slot, sum) in sums.iter().enumerate() {
            if sum.visits > 0.0 {
                let visit = sum.visit(chain, local(decomposition.chains[number].stations[slot]));
                network.visits.push(Visit {
                    guess: waits.stays[number][slot],
                    longer: waits.found[number][slot] * waits.longer[number][slot] + waits.met[number][slot],
                    ..visit
                });
                places.push(Some((number, slot)));
            }
        }
    }
    for &entry in &layer.open {
        let mut sum = Sum::default();
        sum.add_entry(plan, waits, entry, 1.0);
        let chain = network.chains.push(Load::Open(open[entry.index()]));
        network.visits.push(sum.visit(chain, local(decomposition.task_station(plan.entries[entry.index()].task))));
        places.push(None);
    }
    LayerNetwork { network, places }
}

/// What one cycle of a client demands of a station, all visits together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub station: StationId,
    pub visits: f64,
    /// Seconds of service.
    pub service: f64,
    /// Seconds for which servers are busy: service, and what goes on after it.
    pub time: f64,
    /// Seconds from arrival to the end of service.
    pub stay: f64,
}

/// By client: its demands, chain by chain.
pub(crate) fn demands(
    plan: &ModelPlan,
    decomposition: &Decomposition,
    flows: &ById<ChainId, Vec<f64>>,
    waits: &Waits,
) -> ById<ClientId, Vec<Demand>> {
    let mut demands = ById::like(&decomposition.clients, Vec::new());
    for (number, chain) in decomposition.chains.pairs() {
        let sums = chain_visits(plan, decomposition, number, &flows[number], waits);
        demands[chain.client].extend(sums.iter().zip(waits.all(number)).zip(&chain.stations).map(
            |((sum, stay), &station)| Demand {
                station,
                visits: sum.visits,
                service: sum.service,
                time: sum.service + sum.after,
                stay: sum.visits * stay.wait + sum.service * (1.0 + stay.slowdown),
            },
        ));
    }
    demands
}

/// The name of a station, for words to users.
pub(crate) fn station_name(plan: &ModelPlan, decomposition: &Decomposition, station: StationId) -> String {
    match decomposition.element(station) {
        Ok(processor) => format!("processor `{}`", plan.model.processors[processor.index()].name),
        Err(task) => format!("task `{}`", plan.model.tasks[task.index()].name),
    }
}

/// Time that the sums spend at their stations with the given stays.
pub(crate) fn residence(sums: &[Sum], stays: &[Stay]) -> f64 {
    sums.iter().zip(stays).map(|(sum, stay)| sum.visits * stay.wait + sum.service * (1.0 + stay.slowdown)).sum()
}

/// Whether a client's customers come and go.
pub(crate) fn is_open(kind: ClientKind) -> bool {
    matches!(kind, ClientKind::Open { .. })
}
