//! The order within ranks: barycentres down and up, then exchanges of neighbours, and the best order that was seen stays.

use crate::layout::proper::Proper;

/// How many times down and up.
pub(super) const SWEEPS: usize = 24;
/// Sweeps without a better order before we stop.
const PATIENCE: usize = 5;
/// Exchanges of neighbours look at all pairs of segments of two vertices; they are for graphs where that is little.
const EXCHANGE_LIMIT: usize = 1500;

/// A budget of segments looked at, shared out among attempts from other first orders.
const ATTEMPTS: usize = 4000;

/// Sorts ranks for few crossings. Small graphs are tried from several first orders, the given one first.
pub(super) fn reduce(proper: &mut Proper, sweeps: usize) {
    attempt(proper, sweeps);
    let mut fewest = crossings(proper);
    let mut best = proper.ranks.clone();
    let mut state = 1_u64;
    for _ in 0..(ATTEMPTS / proper.segments.len().max(1)).min(16) {
        if fewest == 0 {
            break;
        }
        for rank in 0..proper.ranks.len() {
            shuffle(&mut proper.ranks[rank], &mut state);
            proper.number(rank);
        }
        attempt(proper, sweeps);
        let found = crossings(proper);
        if found < fewest {
            fewest = found;
            best.clone_from(&proper.ranks);
        }
    }
    proper.ranks = best;
    for rank in 0..proper.ranks.len() {
        proper.number(rank);
    }
}

/// Fisher and Yates's shuffle by a linear congruential generator (Knuth's MMIX): the same on every machine.
fn shuffle(row: &mut [usize], state: &mut u64) {
    for place in (1..row.len()).rev() {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        row.swap(place, (*state >> 33) as usize % (place + 1));
    }
}

fn attempt(proper: &mut Proper, sweeps: usize) {
    let mut best = proper.ranks.clone();
    let mut fewest = crossings(proper);
    let mut patience = PATIENCE;
    for _ in 0..sweeps {
        if fewest == 0 || patience == 0 {
            break;
        }
        for rank in 1..proper.ranks.len() {
            sort_rank(proper, rank, true);
        }
        for rank in (0..proper.ranks.len().saturating_sub(1)).rev() {
            sort_rank(proper, rank, false);
        }
        let found = crossings(proper);
        if found < fewest {
            (fewest, patience) = (found, PATIENCE);
            best.clone_from(&proper.ranks);
        } else {
            patience -= 1;
        }
    }
    proper.ranks = best;
    for rank in 0..proper.ranks.len() {
        proper.number(rank);
    }
    if fewest > 0 && proper.segments.len() <= EXCHANGE_LIMIT {
        exchange(proper);
    }
}

/// Sorts a rank by the mean place of what its vertices are tied to, above or below. A vertex that is tied to nothing keeps its place.
fn sort_rank(proper: &mut Proper, rank: usize, above: bool) {
    let mut keys: Vec<(f64, usize)> = Vec::with_capacity(proper.ranks[rank].len());
    let other = if above { rank - 1 } else { rank + 1 };
    let scale = proper.ranks[rank].len().max(1) as f64 / proper.ranks[other].len().max(1) as f64;
    for &vertex in &proper.ranks[rank] {
        let own = &proper.vertices[vertex];
        let segments = if above { &own.up } else { &own.down };
        let key = if segments.is_empty() {
            own.position as f64 + 0.5
        } else {
            let place = |&number: &usize| {
                let segment = &proper.segments[number];
                let key = if above { proper.upper_key(segment) } else { proper.lower_key(segment) };
                key as f64 / 65536.0
            };
            segments.iter().map(place).sum::<f64>() / segments.len() as f64 * scale
        };
        keys.push((key, vertex));
    }
    keys.sort_by(|one, other| one.0.total_cmp(&other.0));
    proper.ranks[rank].clear();
    proper.ranks[rank].extend(keys.into_iter().map(|(_, vertex)| vertex));
    proper.number(rank);
}

/// How many pairs of segments cross.
pub(super) fn crossings(proper: &Proper) -> u64 {
    let mut gaps: Vec<Vec<(u64, u64)>> = vec![Vec::new(); proper.ranks.len()];
    for segment in &proper.segments {
        let gap = proper.vertices[segment.upper].rank;
        gaps[gap].push((proper.upper_key(segment), proper.lower_key(segment)));
    }
    gaps.iter_mut().map(|segments| inversions(segments)).sum()
}

/// Pairs in the wrong order, counted while merging from small runs to large ones.
fn inversions(segments: &mut [(u64, u64)]) -> u64 {
    segments.sort_unstable();
    let mut keys: Vec<u64> = segments.iter().map(|&(_, lower)| lower).collect();
    let mut merged = Vec::with_capacity(keys.len());
    let (mut run, mut count) = (1, 0);
    while run < keys.len() {
        for pair in keys.chunks_mut(2 * run) {
            if pair.len() <= run {
                continue;
            }
            merged.clear();
            let (left, right) = pair.split_at(run);
            let (mut i, mut j) = (0, 0);
            while i < left.len() || j < right.len() {
                if j == right.len() || (i < left.len() && left[i] <= right[j]) {
                    merged.push(left[i]);
                    i += 1;
                } else {
                    count += (left.len() - i) as u64;
                    merged.push(right[j]);
                    j += 1;
                }
            }
            pair.copy_from_slice(&merged);
        }
        run *= 2;
    }
    count
}

/// Exchanges neighbours as long as that saves crossings.
fn exchange(proper: &mut Proper) {
    for _ in 0..8 {
        let mut better = false;
        for rank in 0..proper.ranks.len() {
            for place in 1..proper.ranks[rank].len() {
                let (left, right) = (proper.ranks[rank][place - 1], proper.ranks[rank][place]);
                let (as_is, exchanged) = crossings_of(proper, left, right);
                if exchanged < as_is {
                    proper.ranks[rank].swap(place - 1, place);
                    proper.vertices[left].position = place;
                    proper.vertices[right].position = place - 1;
                    better = true;
                }
            }
        }
        if !better {
            return;
        }
    }
}

/// How often the segments of two neighbours cross each other, and would if they changed places.
fn crossings_of(proper: &Proper, left: usize, right: usize) -> (u64, u64) {
    let (mut as_is, mut exchanged) = (0, 0);
    let (one, other) = (&proper.vertices[left], &proper.vertices[right]);
    let mut compare = |a: u64, b: u64| {
        as_is += u64::from(a > b);
        exchanged += u64::from(a < b);
    };
    for &a in &one.up {
        for &b in &other.up {
            compare(proper.upper_key(&proper.segments[a]), proper.upper_key(&proper.segments[b]));
        }
    }
    for &a in &one.down {
        for &b in &other.down {
            compare(proper.lower_key(&proper.segments[a]), proper.lower_key(&proper.segments[b]));
        }
    }
    (as_is, exchanged)
}
