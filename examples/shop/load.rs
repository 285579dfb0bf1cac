//! A closed load: each user makes a request, waits for the answer, thinks, and makes the next. Its users stand for people, so it has no
//! spans, and the traces begin at the gateway; its calls are probed only where the processor time of the users themselves is asked for.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::http::{HeaderMap, Method};
use dyelog_probe::Carrier;

use crate::client::HttpClient;
use crate::services::PRODUCTS;
use crate::work;

/// How long a user waits for an answer.
const LONGEST: Duration = Duration::from_secs(30);

/// The load to put on the shop.
#[derive(Clone)]
pub struct Plan {
    /// Where to send requests.
    pub gateway: SocketAddr,
    /// How many requests in all.
    pub requests: u64,
    /// How many users; of every three, two browse and one buys.
    pub users: u32,
    /// Mean think time in seconds.
    pub think: f64,
    /// Seed of choices and think times.
    pub seed: u64,
    /// Whether users are a part of what is recorded.
    pub probed: bool,
}

/// What one user, or all users of a scenario, saw.
#[derive(Clone, Copy, Default)]
struct Seen {
    users: u32,
    answers: u64,
    response: Duration,
    think: Duration,
}

/// What was measured, by scenario.
pub struct Results {
    scenarios: [(&'static str, Seen); 2],
    elapsed: Duration,
}

/// Makes the requests.
pub async fn run(plan: &Plan) -> anyhow::Result<Results> {
    let begin = Instant::now();
    let left = Arc::new(AtomicU64::new(plan.requests));
    let users: Vec<_> =
        (0..plan.users).map(|user| tokio::spawn(be_user(plan.clone(), user, Arc::clone(&left)))).collect();
    let mut scenarios = [("GET /product/{id}", Seen::default()), ("POST /checkout/{id}", Seen::default())];
    for (user, task) in users.into_iter().enumerate() {
        let seen = task.await??;
        let total = &mut scenarios[usize::from(buys(user as u32))].1;
        total.users += 1;
        total.answers += seen.answers;
        total.response += seen.response;
        total.think += seen.think;
    }
    Ok(Results { scenarios, elapsed: begin.elapsed() })
}

/// Whether a user buys; else it browses.
fn buys(user: u32) -> bool {
    user % 3 == 1
}

async fn be_user(plan: Plan, user: u32, left: Arc<AtomicU64>) -> anyhow::Result<Seen> {
    let client = HttpClient::new();
    let mut random = Random(plan.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(user)));
    let mut seen = Seen::default();
    loop {
        let think = random.exponential(plan.think);
        tokio::time::sleep(think).await;
        if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err() {
            return Ok(seen);
        }
        let product = random.below(PRODUCTS);
        let begin = Instant::now();
        let (operation, method, path) = if buys(user) {
            (&work::CHECKOUT, Method::POST, format!("/checkout/{product}"))
        } else {
            (&work::PAGE, Method::GET, format!("/product/{product}"))
        };
        let exchange = async |chain: Option<Carrier>| {
            let mut headers = HeaderMap::new();
            if let Some(chain) = chain {
                chain.inject(&mut headers);
            }
            let answer = client.request(method, plan.gateway, &path, headers);
            tokio::time::timeout(LONGEST, answer).await.context("the shop does not answer")?
        };
        if plan.probed { operation.function.call_async(exchange).await } else { exchange(None).await }?;
        seen.answers += 1;
        seen.response += begin.elapsed();
        seen.think += think;
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        writeln!(f, "measured over {seconds:.1} s")?;
        writeln!(
            f,
            "{:<22}{:>7}{:>10}{:>12}{:>14}{:>12}",
            "scenario", "users", "requests", "think ms", "response ms", "per s"
        )?;
        for (name, seen) in &self.scenarios {
            let mean = |total: Duration| total.as_secs_f64() * 1000.0 / seen.answers.max(1) as f64;
            writeln!(
                f,
                "{name:<22}{:>7}{:>10}{:>12.2}{:>14.2}{:>12.1}",
                seen.users,
                seen.answers,
                mean(seen.think),
                mean(seen.response),
                seen.answers as f64 / seconds
            )?;
        }
        Ok(())
    }
}

/// A small random generator (SplitMix64), so that a seed gives the same users everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u32) -> u32 {
        (self.next() % u64::from(bound)) as u32
    }

    fn exponential(&mut self, mean: f64) -> Duration {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        Duration::from_secs_f64(-mean * (1.0 - uniform).ln())
    }
}
