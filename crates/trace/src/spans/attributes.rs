//! The attributes that matter, by all their names; the rest is skipped unread, but for those that a sink wants.
//!
//! | what | attributes, the first that is given wins |
//! |---|---|
//! | service | `service.name` of the resource (Jaeger: `serviceName` of the process) |
//! | instance | `service.instance.id`, `k8s.pod.name`, `container.id` |
//! | clock | `host.id`, `host.name`, `hostname`, `ip` |
//! | machine | `k8s.node.uid`, `k8s.node.name`, `host.id`; `host.name` or `hostname` outside of containers |
//! | cores | see `placement.rs` |
//! | environment, namespace | see `deployments.rs` |
//! | failure, retry | see `outcome.rs` |
//! | kind | OTLP `kind`; Jaeger tag `span.kind`; of a span without one, or INTERNAL, that names a database: CLIENT |
//! | peer of a call | `peer.service`; `messaging.destination.name`, `messaging.destination`, `message_bus.destination`; `db.system.name` or `db.system` or `db.type` with `db.namespace` or `db.name` or `db.instance`; `server.address` or `net.peer.name` or `peer.hostname` or `http.host` or `net.sock.peer.addr` or `peer.address` or `peer.ipv4`, with `server.port` or `net.peer.port` or `peer.port`; the host of `url.full` or `http.url`; `rpc.service`; `faas.invoked_name`; the service in a gRPC span name `/package.Service/Method` |
//! | route | `http.route`, `url.template` |
//! | message role | `messaging.operation.type`, `messaging.operation`, `messaging.operation.name` |
//! | sampling | see `sampling.rs` |
//! | CPU time | `thread.cpu_time`, `cpu.time`, `cpu_time`, `process.cpu.time` in seconds, or with the suffix `_ns`, `_us` or `_ms` |

use rustc_hash::FxHashSet;

use crate::retained::{Attribute, Data, Keys, Status};
use crate::spans::json::{Scalar, Shape};
use crate::spans::model::{Messaging, SpanKind};
use crate::spans::outcome::{self, Outcome};
use crate::spans::placement::{self, Placement};
use crate::spans::sampling::{self, Sampling};
use dyelog_diagnostic::names::{Name, Names};

/// What an attribute tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// Nothing that is needed.
    Nothing,
    /// The service.
    Service,
    /// The instance of the service; a smaller rank wins.
    Instance(u8),
    /// The machine; a smaller rank wins.
    Host(u8),
    /// The environment of a deployment; a smaller rank wins.
    Environment(u8),
    /// The namespace of a service; a smaller rank wins.
    Namespace(u8),
    /// The span's kind.
    Kind,
    /// The route of a request, with places for identifiers; a smaller rank wins.
    Route(u8),
    /// The peer; a smaller rank wins.
    Peer(u8),
    /// The peer's address, to be followed by its port; a smaller rank wins.
    Address(u8),
    /// A URL whose host is the peer.
    Url(u8),
    /// The port that belongs to the address.
    Port,
    /// The database system; a smaller rank wins.
    Database(u8),
    /// The database; a smaller rank wins.
    Schema(u8),
    /// What a span does with messages; a smaller rank wins.
    Operation(u8),
    /// CPU time, with the factor to seconds.
    Cpu(f64),
    /// How the operation was sampled.
    Sampling(sampling::Key),
    /// Whether the span failed, or was made once more.
    Outcome(outcome::Key),
    /// Where the service runs.
    Placement(placement::Key),
}

/// The rank of a peer that is a database, between the other ranks.
const DATABASE_RANK: u8 = 10;

/// The last rank of an address that is meant as the name of a host.
const LAST_HOST_NAME: u8 = 22;

/// What the attribute `key` tells.
pub fn meaning(key: &str) -> Meaning {
    match key {
        // `synth.service` is what the trace generator motel writes in place of a resource.
        "service.name" | "synth.service" => Meaning::Service,
        "service.instance.id" => Meaning::Instance(0),
        "k8s.pod.name" => Meaning::Instance(1),
        "container.id" => Meaning::Instance(2),
        "host.id" => Meaning::Host(0),
        "host.name" => Meaning::Host(1),
        "hostname" => Meaning::Host(2),
        "ip" => Meaning::Host(3),
        "deployment.environment.name" => Meaning::Environment(0),
        "deployment.environment" => Meaning::Environment(1),
        "service.environment" => Meaning::Environment(2),
        "service.namespace" => Meaning::Namespace(0),
        "k8s.namespace.name" => Meaning::Namespace(1),
        "span.kind" => Meaning::Kind,
        "http.route" => Meaning::Route(0),
        "url.template" => Meaning::Route(1),
        "peer.service" => Meaning::Peer(0),
        "messaging.destination.name" => Meaning::Peer(1),
        "messaging.destination" => Meaning::Peer(2),
        "message_bus.destination" => Meaning::Peer(3),
        "server.address" => Meaning::Address(20),
        "net.peer.name" => Meaning::Address(21),
        "peer.hostname" => Meaning::Address(22),
        "http.host" => Meaning::Peer(23),
        "net.sock.peer.addr" => Meaning::Address(24),
        "peer.address" => Meaning::Peer(25),
        "peer.ipv4" => Meaning::Address(26),
        "url.full" => Meaning::Url(27),
        "http.url" => Meaning::Url(28),
        "rpc.service" => Meaning::Peer(30),
        "faas.invoked_name" => Meaning::Peer(31),
        "server.port" | "net.peer.port" | "peer.port" => Meaning::Port,
        "db.system.name" => Meaning::Database(0),
        "db.system" => Meaning::Database(1),
        "db.type" => Meaning::Database(2),
        "db.namespace" => Meaning::Schema(0),
        "db.name" => Meaning::Schema(1),
        "db.instance" => Meaning::Schema(2),
        "messaging.operation.type" => Meaning::Operation(0),
        "messaging.operation" => Meaning::Operation(1),
        "messaging.operation.name" => Meaning::Operation(2),
        "sampler.type" => Meaning::Sampling(sampling::Key::Sampler),
        "sampler.param" => Meaning::Sampling(sampling::Key::Parameter),
        "X-SampleRatio" => Meaning::Sampling(sampling::Key::Ratio),
        "sampleRate" | "SampleRate" => Meaning::Sampling(sampling::Key::Rate),
        "tailsampling.policy" | "tailsampling.composite_policy" | "sampling.policy" | "sampling.rule" => {
            Meaning::Sampling(sampling::Key::Policy)
        }
        _ => cpu(key)
            .or_else(|| placement::key(key).map(Meaning::Placement))
            .or_else(|| outcome::key(key).map(Meaning::Outcome))
            .unwrap_or(Meaning::Nothing),
    }
}

fn cpu(key: &str) -> Option<Meaning> {
    if !key.contains("cpu") {
        return None;
    }
    let (stem, factor) = match key.rsplit_once('_') {
        Some((stem, "ns")) => (stem, 1e-9),
        Some((stem, "us")) => (stem, 1e-6),
        Some((stem, "ms")) => (stem, 1e-3),
        _ => (key, 1.0),
    };
    match stem {
        "thread.cpu_time" | "thread.cpu.time" | "cpu.time" | "cpu_time" | "process.cpu.time" => {
            Some(Meaning::Cpu(factor))
        }
        _ => None,
    }
}

/// A text of which the one with the smallest rank is kept.
#[derive(Clone, Debug, Default)]
struct Ranked {
    text: String,
    rank: Option<u8>,
}

impl Ranked {
    fn offer(&mut self, rank: u8, text: &str) {
        if !text.is_empty() && self.rank.is_none_or(|old| rank < old) {
            self.rank = Some(rank);
            self.text.clear();
            self.text.push_str(text);
        }
    }

    fn clear(&mut self) {
        self.rank = None;
        self.text.clear();
    }
}

/// What the attributes of one span or resource tell. Its buffers are used again for the next.
#[derive(Clone, Debug)]
pub struct Attributes {
    service: Ranked,
    instance: Ranked,
    host: Ranked,
    environment: Ranked,
    namespace: Ranked,
    peer: Ranked,
    address: Ranked,
    port: Ranked,
    database: Ranked,
    schema: Ranked,
    operation: Ranked,
    route: Ranked,
    /// The span's kind, where an attribute tells it.
    pub kind: SpanKind,
    /// CPU time in seconds; NaN where not given.
    pub cpu: f64,
    /// CPU time that was left out because it is negative, in seconds.
    pub bad_cpu: Option<f64>,
    /// How the operation was sampled.
    pub sampling: Sampling,
    /// Whether the span failed, or was made once more.
    pub outcome: Outcome,
    /// Where the service runs, but for what names its machine and instance.
    pub placement: Placement,
    /// What is kept of all attributes, where anything is.
    pub keeping: Option<Keeping>,
}

/// Attributes that are kept as they are.
#[derive(Clone, Debug, Default)]
pub struct Keeping {
    wanted: Keys,
    /// Those that are wanted.
    pub attributes: Vec<Attribute>,
    /// The keys of all, of whatever span or resource.
    pub seen: FxHashSet<Name>,
    /// How the span ended, as far as attributes say it.
    pub status: Status,
    /// The name of an event, where an attribute tells it.
    pub event: Name,
    /// How many of them were left out, as they are lists or maps.
    pub composite: u64,
}

impl Keeping {
    /// Nothing so far, of what is wanted.
    pub fn new(wanted: &Keys) -> Self {
        Self { wanted: wanted.clone(), ..Self::default() }
    }

    fn take(&mut self, key: Key, value: &mut Scalar, names: &mut Names) {
        let data = match value.shape {
            Shape::Whole => value.whole().map(Data::Whole),
            Shape::Float => value.float().map(Data::Float),
            Shape::Bool => Some(Data::Bool(value.truth())),
            Shape::Text => value.text().map(|text| match canonical(text) {
                Some(number) => Data::Whole(number),
                None => Data::Text(names.intern(text)),
            }),
            Shape::Array | Shape::Object => {
                self.composite += u64::from(key.wanted);
                None
            }
            Shape::Null => None,
        };
        let Some(value) = data else { return };
        let text = match value {
            Data::Text(text) => names.text(text),
            Data::Bool(true) => "true",
            _ => "",
        };
        match names.text(key.name) {
            "event" => self.event = if let Data::Text(text) = value { text } else { Name::NONE },
            "otel.status_code" => self.status = Status::parse(text),
            "error" if self.status == Status::Unset && text.eq_ignore_ascii_case("true") => self.status = Status::Error,
            _ => {}
        }
        if key.wanted {
            self.attributes.push(Attribute { key: key.name, value });
        }
    }
}

/// The key of an attribute that is kept, or looked at for the status.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    name: Name,
    wanted: bool,
}

/// The whole number that a text is, written as numbers are. Some tracers write all values as texts.
fn canonical(text: &str) -> Option<i64> {
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

impl Default for Attributes {
    fn default() -> Self {
        let none = Ranked::default;
        Self {
            service: none(),
            instance: none(),
            host: none(),
            environment: none(),
            namespace: none(),
            peer: none(),
            address: none(),
            port: none(),
            database: none(),
            schema: none(),
            operation: none(),
            route: none(),
            kind: SpanKind::Unspecified,
            cpu: f64::NAN,
            bad_cpu: None,
            sampling: Sampling::default(),
            outcome: Outcome::default(),
            placement: Placement::default(),
            keeping: None,
        }
    }
}

impl Attributes {
    /// Nothing so far; keeps what is wanted.
    pub fn keeping(keeping: Option<Keeping>) -> Self {
        Self { keeping, ..Self::default() }
    }

    /// Whether they name a database.
    pub fn names_database(&self) -> bool {
        self.database.rank.is_some()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        for ranked in [
            &mut self.service,
            &mut self.instance,
            &mut self.host,
            &mut self.environment,
            &mut self.namespace,
            &mut self.peer,
            &mut self.address,
            &mut self.port,
            &mut self.database,
            &mut self.schema,
            &mut self.operation,
            &mut self.route,
        ] {
            ranked.clear();
        }
        self.kind = SpanKind::Unspecified;
        self.cpu = f64::NAN;
        self.bad_cpu = None;
        self.sampling = Sampling::default();
        self.outcome = Outcome::default();
        self.placement = Placement::default();
        if let Some(keeping) = &mut self.keeping {
            keeping.attributes.clear();
            (keeping.status, keeping.event) = (Status::Unset, Name::NONE);
        }
    }

    /// The name of an event, where an attribute tells it.
    pub fn event_name(&self) -> Name {
        self.keeping.as_ref().map_or(Name::NONE, |keeping| keeping.event)
    }

    /// Whether the attribute of that key is to be kept.
    pub fn keeps(&mut self, key: &str, names: &mut Names) -> Option<Key> {
        let keeping = self.keeping.as_mut()?;
        let name = names.intern(key);
        keeping.seen.insert(name);
        let wanted = keeping.wanted.has(key);
        (wanted || matches!(key, "error" | "otel.status_code" | "event")).then_some(Key { name, wanted })
    }

    /// Keeps an attribute.
    pub fn keep(&mut self, key: Key, value: &mut Scalar, names: &mut Names) {
        if let Some(keeping) = &mut self.keeping {
            keeping.take(key, value, names);
        }
    }

    /// Takes in one attribute, and keeps it where it is wanted.
    pub fn offer(&mut self, key: &str, value: &mut Scalar, names: &mut Names) {
        if let Some(kept) = self.keeps(key, names) {
            self.keep(kept, value, names);
        }
        self.take(meaning(key), value);
    }

    /// Takes in one attribute.
    pub fn take(&mut self, meaning: Meaning, value: &mut Scalar) {
        if let Meaning::Cpu(factor) = meaning {
            match value.float() {
                Some(time) if time >= 0.0 => self.cpu = time * factor,
                Some(time) => self.bad_cpu = Some(time * factor),
                None => {}
            }
            return;
        }
        if let Meaning::Sampling(key) = meaning {
            let number = value.float();
            self.sampling.take(key, value.text(), number);
            return;
        }
        if let Meaning::Placement(key) = meaning {
            let number = value.float();
            self.placement.take(key, value.text(), number);
            return;
        }
        if let Meaning::Outcome(key) = meaning {
            if value.shape == Shape::Bool {
                self.outcome.take(key, if value.truth() { "true" } else { "" });
            } else if let Some(text) = value.text() {
                self.outcome.take(key, text);
            }
            return;
        }
        let Some(text) = value.text() else { return };
        let text = text.trim();
        match meaning {
            Meaning::Host(rank) => self.placement.host(rank, text),
            // A pod or a container.
            Meaning::Instance(1 | 2) => self.placement.take(placement::Key::Container, Some(text), None),
            _ => {}
        }
        match meaning {
            Meaning::Nothing | Meaning::Cpu(_) | Meaning::Sampling(_) | Meaning::Outcome(_) | Meaning::Placement(_) => {
            }
            Meaning::Service => self.service.offer(0, text),
            Meaning::Instance(rank) => self.instance.offer(rank, text),
            Meaning::Host(rank) => self.host.offer(rank, text),
            Meaning::Environment(rank) => self.environment.offer(rank, text),
            Meaning::Namespace(rank) => self.namespace.offer(rank, text),
            Meaning::Kind => self.kind = SpanKind::parse(text),
            Meaning::Peer(rank) => self.peer.offer(rank, text),
            Meaning::Address(rank) => self.address.offer(rank, text),
            Meaning::Url(rank) => self.peer.offer(rank, host_of(text)),
            Meaning::Port => self.port.offer(0, text),
            Meaning::Database(rank) => self.database.offer(rank, text),
            Meaning::Schema(rank) => self.schema.offer(rank, text),
            Meaning::Route(rank) => self.route.offer(rank, text),
            Meaning::Operation(rank) => self.operation.offer(rank, text),
        }
    }

    /// The service; empty where not given.
    pub fn service(&self) -> &str {
        &self.service.text
    }

    /// The instance of the service; empty where not given.
    pub fn instance(&self) -> &str {
        &self.instance.text
    }

    /// The machine; empty where not given.
    pub fn host(&self) -> &str {
        &self.host.text
    }

    /// The environment of the deployment; empty where not given.
    pub fn environment(&self) -> &str {
        &self.environment.text
    }

    /// The namespace of the service; empty where not given.
    pub fn namespace(&self) -> &str {
        &self.namespace.text
    }

    /// The machine that it runs on, where that is recorded; empty otherwise.
    pub fn machine(&self) -> &str {
        self.placement.machine()
    }

    /// The route of the request; empty where not given.
    pub fn route(&self) -> &str {
        &self.route.text
    }

    /// What the span does with messages.
    pub fn messaging(&self) -> Messaging {
        match self.operation.text.as_str() {
            "send" | "publish" | "create" => Messaging::Send,
            "receive" | "poll" => Messaging::Receive,
            "process" | "deliver" => Messaging::Process,
            _ => Messaging::None,
        }
    }

    /// The peer, put together from what was given; empty where nothing was. `name` is the span's.
    pub fn peer(&mut self, name: &str) -> &str {
        if self.database.rank.is_some() {
            if self.schema.rank.is_some() {
                self.database.text.push('/');
                self.database.text.push_str(&self.schema.text);
            }
            if self.address.rank.is_some_and(|rank| rank <= LAST_HOST_NAME) && names_a_machine(&self.address.text) {
                self.database.text.push('@');
                self.database.text.push_str(&self.address.text);
            }
            self.peer.offer(DATABASE_RANK, &self.database.text);
        }
        if let Some(rank) = self.address.rank {
            if self.port.rank.is_some() {
                self.address.text.push(':');
                self.address.text.push_str(&self.port.text);
            }
            self.peer.offer(rank, &self.address.text);
        }
        if let Some((service, _)) = name.strip_prefix('/').and_then(|path| path.split_once('/'))
            && service.contains('.')
        {
            self.peer.offer(u8::MAX, service);
        }
        &self.peer.text
    }
}

/// Whether an address tells one store from others of its system. Addresses of IP are those of copies, proxies and tunnels, too, and change.
fn names_a_machine(address: &str) -> bool {
    let is_local = address.eq_ignore_ascii_case("localhost") || address.starts_with('/');
    !address.is_empty() && !is_local && address.trim_matches(['[', ']']).parse::<core::net::IpAddr>().is_err()
}

/// The host, with its port, of a URL; empty where there is none.
fn host_of(url: &str) -> &str {
    let Some((_, rest)) = url.split_once("://") else { return "" };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    host.rsplit_once('@').map_or(host, |(_, host)| host)
}
