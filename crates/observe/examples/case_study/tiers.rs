//! The processes: clients, and servers that work on the processor and on a disk.

use std::fs::{self, File, OpenOptions};
use std::net::UdpSocket;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use dyelog_probe::observer::{Input, JsonLines, Observer, Output, Request, Service, count_disk};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

static CYCLE: Input = Input::cycle("cycle");
static SEARCH: Input = Input::new("Server1", "search", Service::Synchronous);
static UPDATE: Input = Input::new("Server1", "update", Service::Synchronous);
static FETCH: Input = Input::new("Server2", "fetch", Service::Synchronous);
static STORE: Input = Input::new("Server2", "store", Service::Synchronous);
static TO_SEARCH: Output = Output::new("Server1", "search", Request::Synchronous);
static TO_UPDATE: Output = Output::new("Server1", "update", Request::Synchronous);
static TO_FETCH: Output = Output::new("Server2", "fetch", Request::Synchronous);
static TO_STORE: Output = Output::new("Server2", "store", Request::Synchronous);

/// Mean think time, seconds.
const THINK: f64 = 0.16;
/// Mean service time of the disk, seconds.
pub const DISK: f64 = 0.00040;
const INTERVAL: Duration = Duration::from_secs(1);

/// Random numbers for think times and demands: splitmix64.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }
}

fn thread_time() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + 1e-9 * now.tv_nsec as f64
}

/// Lets sleeps of this thread end when they should: systems put off wakes by 50 µs, which is much of a disk operation.
fn wake_in_time() -> anyhow::Result<()> {
    Ok(set_current_timer_slack(NonZeroU64::new(1))?)
}

/// Uses the processor for an exponential time of that mean, seconds.
fn compute(random: &mut Random, mean: f64) {
    let end = thread_time() + random.exponential(mean);
    while thread_time() < end {
        std::hint::spin_loop();
    }
}

/// The disk of the host, first come first served: a file tells until when it is taken. It works on where a process that waits for it gets no processor.
struct Disk(File);

impl Disk {
    fn open(path: &Path) -> anyhow::Result<Self> {
        Ok(Self(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn visit(&self, random: &mut Random, times: u32) -> anyhow::Result<()> {
        for _ in 0..times {
            let service = (1e9 * random.exponential(DISK)) as i64;
            self.0.lock()?;
            let mut free = [0; 8];
            self.0.read_at(&mut free, 0)?;
            let now = clock_gettime(ClockId::Monotonic);
            let now = now.tv_sec * 1_000_000_000 + now.tv_nsec;
            let done = i64::from_le_bytes(free).max(now) + service;
            self.0.write_at(&done.to_le_bytes(), 0)?;
            self.0.unlock()?;
            std::thread::sleep(Duration::from_nanos(done.abs_diff(now)));
            count_disk(1, 0);
        }
        Ok(())
    }
}

/// A caller of a server, by datagrams: threads of the server take requests from one queue, first come first served.
struct Connection(UdpSocket);

impl Connection {
    fn to(name: &str, folder: &Path) -> anyhow::Result<(Self, String)> {
        let begin = Instant::now();
        let address = loop {
            match fs::read_to_string(folder.join(format!("{name}.address"))) {
                Ok(address) => break address,
                Err(_) if begin.elapsed() < Duration::from_secs(10) => std::thread::sleep(Duration::from_millis(20)),
                Err(_) => anyhow::bail!("`{name}` does not start"),
            }
        };
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(&address)?;
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok((Self(socket), format!("udp:{address}")))
    }

    fn call(&mut self, operation: &str) -> anyhow::Result<()> {
        self.0.send(operation.as_bytes())?;
        let mut answer = [0; 1];
        self.0.recv(&mut answer).with_context(|| format!("no answer to `{operation}`"))?;
        Ok(())
    }
}

/// Runs clients for so long.
pub fn visit(clients: u32, time: Duration, folder: &Path) -> anyhow::Result<()> {
    let setup = Observer::of("case study", "client").host("host1").interval(INTERVAL).threads(clients);
    let observer = setup.start(JsonLines::append(folder.join("client.jsonl"))?)?;
    let end = Instant::now() + time;
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..clients).map(|number| scope.spawn(move || client(number, end, folder))).collect();
        all.into_iter().try_for_each(|one| one.join().expect("clients do not panic"))
    })?;
    let summary = observer.finish();
    anyhow::ensure!(summary.is_clean(), "{summary:?}");
    Ok(())
}

fn client(number: u32, end: Instant, folder: &Path) -> anyhow::Result<()> {
    wake_in_time()?;
    let (mut first, first_at) = Connection::to("server1", folder)?;
    let (mut second, second_at) = Connection::to("server2", folder)?;
    let mut random = Random(u64::from(number) + 1 + u64::from(std::process::id()) * 1000);
    let [search, update] = [&TO_SEARCH, &TO_UPDATE].map(|output| output.at(first_at.as_str()));
    let fetch = TO_FETCH.at(second_at.as_str());
    while Instant::now() < end {
        std::thread::sleep(Duration::from_secs_f64(random.exponential(THINK)));
        let _cycle = CYCLE.start();
        compute(&mut random, 0.0004);
        if random.uniform() < 0.7 {
            let _call = search.start();
            first.call("search")?;
        } else {
            let _call = update.start();
            first.call("update")?;
        }
        compute(&mut random, 0.0004);
        let _call = fetch.start();
        second.call("fetch")?;
    }
    Ok(())
}

/// Serves until its standard input ends: a server that looked now and then whether to stop would use the processor for it.
pub fn serve(name: &str, host: &str, threads: u32, folder: &Path) -> anyhow::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let address = socket.local_addr()?.to_string();
    let interface = if name == "server1" { "Server1" } else { "Server2" };
    let setup = Observer::of("case study", name).host(host).interval(INTERVAL).threads(threads);
    let setup = setup.exports(interface, format!("udp:{address}"));
    let observer = setup.start(JsonLines::append(folder.join(format!("{name}.jsonl")))?)?;
    for number in 0..threads {
        let (socket, folder, name) = (socket.try_clone()?, folder.to_owned(), name.to_owned());
        std::thread::spawn(move || {
            if let Err(error) = worker(&name, u64::from(number), &socket, &folder) {
                eprintln!("{name}: {error}");
            }
        });
    }
    fs::write(folder.join(format!("{name}.new")), &address)?;
    fs::rename(folder.join(format!("{name}.new")), folder.join(format!("{name}.address")))?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    let summary = observer.finish();
    anyhow::ensure!(summary.is_clean(), "{summary:?}");
    Ok(())
}

fn worker(name: &str, number: u64, requests: &UdpSocket, folder: &Path) -> anyhow::Result<()> {
    wake_in_time()?;
    let mut random = Random(1_000_003 * (number + 1) + u64::from(std::process::id()));
    let disk = Disk::open(&folder.join("disk"))?;
    let mut second = if name == "server1" { Some(Connection::to("server2", folder)?) } else { None };
    let at = second.as_ref().map_or("", |second| second.1.as_str());
    let [fetch, store] = [&TO_FETCH, &TO_STORE].map(|output| output.at(at));
    let mut request = [0; 16];
    loop {
        let (length, caller) = requests.recv_from(&mut request)?;
        let operation = std::str::from_utf8(&request[..length])?;
        let input = match operation {
            "search" => &SEARCH,
            "update" => &UPDATE,
            "fetch" => &FETCH,
            _ => &STORE,
        };
        let serving = input.start();
        match (operation, &mut second) {
            ("search", Some((second, _))) => {
                compute(&mut random, 0.0020);
                disk.visit(&mut random, 1)?;
                let _call = fetch.start();
                second.call("fetch")?;
            }
            ("update", Some((second, _))) => {
                compute(&mut random, 0.0010);
                let _call = store.start();
                second.call("store")?;
            }
            ("fetch", _) => {
                compute(&mut random, 0.0020);
                disk.visit(&mut random, 1)?;
            }
            _ => {
                compute(&mut random, 0.0040);
                disk.visit(&mut random, 2)?;
            }
        }
        drop(serving);
        requests.send_to(b"!", caller).context("the client is gone")?;
    }
}
