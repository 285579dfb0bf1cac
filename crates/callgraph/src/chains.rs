//! What is known of each chain between its records: of those that are read, all; of those at rest, where they go on.
//!
//! A chain rests once it has no open call and was not met for a while. Chains lie in pages by number; a page whose chains all rest keeps five bytes of
//! each, and their names shrink likewise.

use crate::chain_names::PAGE;
use crate::machine::{Chain, Role};
use crate::record::{ChainId, Tables};

/// All chains by number.
#[derive(Default)]
pub(crate) struct Chains {
    pages: Vec<Page>,
}

enum Page {
    Live { slots: Vec<Slot>, resting: usize },
    Resting(Box<Resting>),
}

struct Resting {
    next: [u32; PAGE],
    roles: [Role; PAGE],
}

/// A chain and what is known of its records that wait.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) chain: Chain,
    /// Whether a record that was read starts it.
    pub(crate) announced: bool,
    resting: bool,
    /// The turn in which it was last looked at, its bucket in it, and the turn since when it waits for another chain.
    pub(crate) turn: u32,
    pub(crate) bucket: u32,
    pub(crate) waits_since: u32,
}

impl Slot {
    /// A chain of which nothing was met yet counts as one at rest.
    fn new(id: usize) -> Self {
        let chain = Chain::new(ChainId(id as u32));
        Self { chain, announced: false, resting: true, turn: 0, bucket: 0, waits_since: 0 }
    }
}

impl Page {
    fn fill(&mut self, page: usize, places: usize) {
        if let Self::Live { slots, resting } = self {
            *resting += places.saturating_sub(slots.len());
            slots.extend((slots.len()..places).map(|place| Slot::new(page * PAGE + place)));
        }
    }
}

impl Resting {
    fn of(slots: &[Slot]) -> Self {
        let mut all = Self { next: [0; PAGE], roles: [Role::New; PAGE] };
        for (place, Slot { chain, .. }) in slots.iter().enumerate().take(PAGE) {
            (all.next[place], all.roles[place]) = (chain.next as u32, chain.role);
        }
        all
    }

    fn woken(&self, page: usize) -> Page {
        let slot = |place: usize| {
            let mut slot = Slot::new(page * PAGE + place);
            (slot.chain.next, slot.chain.role) = (u64::from(self.next[place]), self.roles[place]);
            slot
        };
        Page::Live { slots: (0..PAGE).map(slot).collect(), resting: PAGE }
    }
}

fn place(id: ChainId) -> (usize, usize) {
    (id.0 as usize / PAGE, id.0 as usize % PAGE)
}

impl Chains {
    /// A chain, to be read on.
    pub(crate) fn at(&mut self, id: ChainId) -> &mut Slot {
        let (page, place) = place(id);
        while self.pages.len() <= page {
            if let Some(last) = self.pages.len().checked_sub(1) {
                self.pages[last].fill(last, PAGE);
            }
            self.pages.push(Page::Live { slots: Vec::with_capacity(PAGE), resting: 0 });
        }
        if let Page::Resting(resting) = &self.pages[page] {
            self.pages[page] = resting.woken(page);
        }
        self.pages[page].fill(page, place + 1);
        let Page::Live { slots, resting } = &mut self.pages[page] else { unreachable!("it was woken") };
        let slot = &mut slots[place];
        if std::mem::take(&mut slot.resting) {
            *resting -= 1;
        }
        slot
    }

    /// A chain that does not rest; none where it does.
    pub(crate) fn live(&self, id: ChainId) -> Option<&Slot> {
        let (page, place) = place(id);
        match self.pages.get(page)? {
            Page::Live { slots, .. } => slots.get(place).filter(|slot| !slot.resting),
            Page::Resting(_) => None,
        }
    }

    /// Lays a chain to rest that hangs in no other one any more. Its name may be given up in the tables, if there are any.
    pub(crate) fn rest(&mut self, id: ChainId, tables: Option<&mut Tables>) {
        let (page, place) = place(id);
        let Some(Page::Live { slots, resting }) = self.pages.get_mut(page) else { return };
        let Some(slot) = slots.get_mut(place).filter(|slot| !slot.resting) else { return };
        slot.resting = true;
        slot.chain.stack = Vec::new();
        *resting += 1;
        if *resting == PAGE {
            let all = Box::new(Resting::of(slots));
            if let Some(tables) = tables {
                tables.give_up_chains(page, |place| matches!(all.roles[place], Role::Root | Role::New));
            }
            self.pages[page] = Page::Resting(all);
        }
    }

    /// All that do not rest, in the order of their numbers.
    pub(crate) fn all_live(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.pages
            .iter_mut()
            .flat_map(|page| match page {
                Page::Live { slots, .. } => &mut slots[..],
                Page::Resting(_) => &mut [],
            })
            .filter(|slot| !slot.resting)
    }
}
