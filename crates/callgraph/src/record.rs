//! Records: what one activation of a probe left behind, and the tables of names that records point into.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::chain_names::ChainNames;

/// Which probe was active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Probe {
    /// 1: the caller enters the stub. With [`Record::COLLOCATED`] the fused start of a call within one thread.
    StubStart,
    /// 2: the request reaches the skeleton.
    SkelStart,
    /// 3: the function has run.
    SkelEnd,
    /// 4: the response is back in the stub. With [`Record::COLLOCATED`] the fused end.
    StubEnd,
    /// A thread, or a branch of a task, begins; it has a chain of its own.
    ThreadStart,
    /// A thread, or a branch of a task, ends.
    ThreadEnd,
}

impl Probe {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::StubStart, Self::SkelStart, Self::SkelEnd, Self::StubEnd, Self::ThreadStart, Self::ThreadEnd];

    /// The name in records, such as `stub_start`.
    pub fn name(self) -> &'static str {
        match self {
            Self::StubStart => "stub_start",
            Self::SkelStart => "skel_start",
            Self::SkelEnd => "skel_end",
            Self::StubEnd => "stub_end",
            Self::ThreadStart => "thread_start",
            Self::ThreadEnd => "thread_end",
        }
    }

    /// The probe of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|probe| probe.name() == name)
    }
}

/// A clock read at the beginning and at the end of a probe, in nanoseconds; the two are equal where it was read once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reading {
    /// When the probe began.
    pub begin: i64,
    /// When the probe ended.
    pub end: i64,
}

impl Reading {
    /// Not recorded.
    pub const NONE: Self = Self { begin: i64::MIN, end: i64::MIN };

    /// Whether it was recorded.
    pub fn is_some(self) -> bool {
        self.begin != i64::MIN
    }

    /// How long the probe took; 0 where it was not recorded.
    pub fn duration(self) -> i64 {
        if self.is_some() { self.end.saturating_sub(self.begin).max(0) } else { 0 }
    }
}

/// A string of [`Tables`]; 0 is the empty one, which stands for "not given".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u32);

/// A causal chain of [`Tables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainId(pub u32);

impl ChainId {
    /// No chain.
    pub const NONE: Self = Self(u32::MAX);
}

/// A site of [`Tables`]: where a probe sits and on whose behalf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub u32);

/// One activation of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The causal chain it belongs to.
    pub chain: ChainId,
    /// Its number in the chain, from 1.
    pub event: u32,
    /// What was probed, and where.
    pub site: SiteId,
    /// The chain that begins here: at the stub start of a one-way call, and at the start of a thread.
    pub child: ChainId,
    /// The clock on the wall.
    pub wall: Reading,
    /// The processor time of the thread, or of the branch.
    pub cpu: Reading,
    /// The line of the file, or the number of the record in a binary file, from 1.
    pub line: u32,
    /// The number of the file, in the order in which files were given.
    pub file: u16,
    /// The probe.
    pub probe: Probe,
    /// [`Self::ONEWAY`] and its like.
    pub flags: u8,
}

impl Record {
    /// The caller does not wait for an answer.
    pub const ONEWAY: u8 = dyelog_wire::ONEWAY;
    /// Caller and function share a thread; starts and ends are fused.
    pub const COLLOCATED: u8 = dyelog_wire::COLLOCATED;
    /// A branch, or a call, that was given up.
    pub const CANCELLED: u8 = dyelog_wire::CANCELLED;

    /// Whether a flag is set.
    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Where a probe sits: names of one stub, skeleton or thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Site {
    /// The interface, with its modules: `Mod::Printer`. Empty at threads.
    pub interface: Name,
    /// The function. Empty at threads.
    pub function: Name,
    /// The object. At the start of a thread, the thread that starts it.
    pub object: Name,
    /// The thread.
    pub thread: Name,
    /// The process.
    pub process: Name,
    /// The processor.
    pub processor: Name,
}

/// What a line of records says of the whole run. Each value is kept as the JSON it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// What time 0 of the clock means.
    pub epoch: Option<String>,
    /// The clocks that were read.
    pub clock: Option<String>,
    /// What a probe costs, as measured, in nanoseconds.
    pub probe_cost: Option<String>,
}

/// The processor time that a process used in all, so that what no function accounts for can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessTime {
    /// The process.
    pub process: Name,
    /// The processor it ran on.
    pub processor: Name,
    /// Nanoseconds since it began.
    pub cpu: i64,
}

/// Strings that are kept once, one after another in one text.
#[derive(Clone, Debug, Default)]
struct Strings {
    text: String,
    ends: Vec<usize>,
    /// Numbers by hash, open addressing; `u32::MAX` is free.
    slots: Vec<u32>,
}

impl Strings {
    fn get(&self, number: usize) -> &str {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.text[start..self.ends[number]]
    }

    fn slot(&self, text: &str) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash(text.as_bytes()) as usize & mask;
        while self.slots[slot] != u32::MAX && self.get(self.slots[slot] as usize) != text {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn intern(&mut self, text: &str) -> u32 {
        if (self.ends.len() + 1) * 4 > self.slots.len() * 3 {
            self.slots = vec![u32::MAX; (self.slots.len() * 2).max(64)];
            for number in 0..self.ends.len() {
                let slot = self.slot(self.get(number));
                self.slots[slot] = number as u32;
            }
        }
        let slot = self.slot(text);
        if self.slots[slot] == u32::MAX {
            self.slots[slot] = u32::try_from(self.ends.len())
                .ok()
                .filter(|n| *n < u32::MAX)
                .expect("fewer than 2^32 strings fit in memory");
            self.text.push_str(text);
            self.ends.push(self.text.len());
        }
        self.slots[slot]
    }
}

fn hash(bytes: &[u8]) -> u64 {
    use std::hash::Hasher;
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// The names, chains and sites that records point to; one set for all files of a run.
#[derive(Clone, Debug)]
pub struct Tables {
    names: Strings,
    chains: ChainNames,
    sites: Vec<Site>,
    numbers: FxHashMap<Site, u32>,
    /// Whether each chain that is announced gets a number of its own.
    apart: bool,
    /// Nanoseconds of the processor that a probe takes, by file, as headers tell.
    probe_costs: Vec<i64>,
}

impl Default for Tables {
    fn default() -> Self {
        let mut names = Strings::default();
        names.intern("");
        Self {
            names,
            chains: ChainNames::default(),
            sites: Vec::new(),
            numbers: FxHashMap::default(),
            apart: false,
            probe_costs: Vec::new(),
        }
    }
}

impl Tables {
    /// Tables with nothing but the empty name.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of a name.
    pub fn name(&mut self, text: &str) -> Name {
        Name(self.names.intern(text))
    }

    /// The text of a name.
    pub fn text(&self, name: Name) -> &str {
        self.names.get(name.0 as usize)
    }

    /// The number of a chain.
    pub fn chain(&mut self, text: &str) -> ChainId {
        ChainId(if self.apart { self.chains.append(text) } else { self.chains.intern(text) })
    }

    /// The number of a chain, if there is one of that name.
    pub fn find_chain(&self, text: &str) -> Option<ChainId> {
        self.chains.find(text).map(ChainId)
    }

    /// The name of a chain; empty for no chain. An analysis that keeps no single calls ([`Options::keep_calls`](crate::Options::keep_calls)) gives up names
    /// of chains that have ended, and they are empty as well.
    pub fn chain_text(&self, chain: ChainId) -> &str {
        if chain == ChainId::NONE { "" } else { self.chains.text(chain.0 as usize) }
    }

    /// The name of a chain that may go on, also where it rests.
    pub(crate) fn chain_name(&self, chain: ChainId) -> Option<Cow<'_, str>> {
        self.chains.name(chain.0 as usize)
    }

    /// Takes what the header of a file says that a probe costs.
    pub(crate) fn header(&mut self, file: u16, header: &Header) {
        #[derive(serde::Deserialize)]
        struct Cost {
            cpu: u32,
        }
        let cost = header.probe_cost.as_deref().and_then(|text| serde_json::from_str::<Cost>(text).ok());
        let place = usize::from(file);
        if let Some(Cost { cpu }) = cost {
            self.probe_costs.resize(self.probe_costs.len().max(place + 1), 0);
            self.probe_costs[place] = i64::from(cpu);
        }
    }

    /// Nanoseconds of the processor that a probe of a file takes; 0 where that is not known.
    #[inline]
    pub(crate) fn probe_cost(&self, file: u16) -> i64 {
        self.probe_costs.get(usize::from(file)).copied().unwrap_or(0)
    }

    /// Forgets all chains.
    pub(crate) fn forget_chains(&mut self) {
        (self.chains, self.apart) = (ChainNames::default(), false);
    }

    /// From now on each chain that is announced gets a number of its own, and none can be found.
    pub(crate) fn keep_chains_apart(&mut self) {
        self.chains.pack();
        self.apart = true;
    }

    pub(crate) fn are_chains_apart(&self) -> bool {
        self.apart
    }

    /// How many chains there are.
    pub(crate) fn chains(&self) -> usize {
        self.chains.len()
    }

    /// The name of a chain, as long as it is not given up; empty for no chain.
    pub(crate) fn chain_to_write(&self, chain: ChainId) -> Cow<'_, str> {
        if chain == ChainId::NONE { Cow::Borrowed("") } else { self.chain_name(chain).unwrap_or_default() }
    }

    /// Gives up the names of a page of chains, but for those that `keep` asks for, by their places.
    pub(crate) fn give_up_chains(&mut self, page: usize, keep: impl Fn(usize) -> bool) {
        self.chains.give_up(page, keep);
    }

    /// The number of a site.
    pub fn site(&mut self, site: Site) -> SiteId {
        let next = self.sites.len() as u32;
        let number = *self.numbers.entry(site).or_insert(next);
        if number == next {
            self.sites.push(site);
        }
        SiteId(number)
    }

    /// The names of a site.
    pub fn of(&self, site: SiteId) -> Site {
        self.sites[site.0 as usize]
    }

    /// All sites so far, by number.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }
}
