//! What the shop does and asks for, by name: names of spans, and functions of call graphs.

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dyelog_probe::Function;

/// A piece of processor work.
pub struct Activity {
    /// Its name.
    pub name: &'static str,
    /// The function that it is in a call graph.
    pub function: Function,
    halved: AtomicBool,
}

impl Activity {
    const fn new(service: &'static str, name: &'static str) -> Self {
        Self { name, function: Function::new(service, name), halved: AtomicBool::new(false) }
    }

    /// Hashing that takes about this many microseconds of processor time, or half of them.
    pub fn work(&self, microseconds: u32) {
        let all = u64::from(microseconds) * 700;
        let rounds = if self.halved.load(Ordering::Relaxed) { all / 2 } else { all };
        let mut hash = u64::from(microseconds);
        for round in 0..rounds {
            hash = (hash ^ round).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31);
        }
        black_box(hash);
    }
}

macro_rules! activities {
    ($($name:ident = $service:literal $activity:literal;)+) => {
        $(pub static $name: Activity = Activity::new($service, $activity);)+
        const ACTIVITIES: &[&Activity] = &[$(&$name),+];
    };
}

activities! {
    PARSE_REQUEST = "gateway" "parse request";
    RENDER_PAGE = "gateway" "render page";
    VALIDATE_CART = "gateway" "validate cart";
    RENDER_RECEIPT = "gateway" "render receipt";
    LOOK_UP = "catalog" "look up product";
    MEASURE = "catalog" "measure parcel";
    COUNT = "inventory" "count stock";
    RESERVE = "inventory" "reserve stock";
    AUTHORISE = "payment" "authorise card";
    AUDIT = "payment" "write audit log";
    COMPOSE = "mailer" "compose e-mail";
}

/// Halves the work of an activity; false if there is none of that name.
pub fn halve(name: &str) -> bool {
    let found = ACTIVITIES.iter().find(|activity| activity.name == name);
    found.inspect(|activity| activity.halved.store(true, Ordering::Relaxed)).is_some()
}

/// What a service is asked for.
pub struct Operation {
    pub method: &'static str,
    pub route: &'static str,
    /// The function that it is in a call graph, for its callers and for itself.
    pub function: Function,
    name: &'static str,
    calls: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Operation {
    /// Takes the time of a call, as one would by hand.
    pub fn time(&self, begin: Instant) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
}

macro_rules! operations {
    ($($name:ident = $service:literal $method:literal $route:literal;)+) => {
        $(pub static $name: Operation = Operation {
            method: $method,
            route: $route,
            function: Function::new($service, concat!($method, " ", $route)),
            name: concat!($service, "::", $method, " ", $route),
            calls: AtomicU64::new(0),
            nanoseconds: AtomicU64::new(0),
        };)+
        const OPERATIONS: &[&Operation] = &[$(&$name),+];
    };
}

operations! {
    PAGE = "gateway" "GET" "/product/{id}";
    CHECKOUT = "gateway" "POST" "/checkout/{id}";
    PRODUCT = "catalog" "GET" "/products/{id}";
    PARCEL = "catalog" "GET" "/parcels/{id}";
    STOCK = "inventory" "GET" "/stock/{id}";
    RESERVATION = "inventory" "POST" "/reservations/{id}";
    CHARGE = "payment" "POST" "/charges/{id}/{cents}";
    CONFIRM = "mailer" "process" "confirmations";
}

/// Forgets the calls that were made so far.
pub fn forget_times() {
    for operation in OPERATIONS {
        operation.calls.store(0, Ordering::Relaxed);
        operation.nanoseconds.store(0, Ordering::Relaxed);
    }
}

/// The calls that this process made, by hand: name, count and mean time.
pub fn timed() -> Vec<(&'static str, u64, Duration)> {
    let timed = OPERATIONS.iter().map(|operation| {
        let calls = operation.calls.load(Ordering::Relaxed);
        let mean = operation.nanoseconds.load(Ordering::Relaxed).checked_div(calls).unwrap_or(0);
        (operation.name, calls, Duration::from_nanos(mean))
    });
    timed.filter(|(_, calls, _)| *calls > 0).collect()
}

/// The same as a table.
pub fn timed_table() -> String {
    let mut out = String::new();
    for (name, calls, mean) in timed() {
        let _ = writeln!(out, "by hand {name} | {calls} calls | {:.4} ms", mean.as_secs_f64() * 1000.0);
    }
    out
}
