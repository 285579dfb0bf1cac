//! How many customers make the queue that was seen.

/// The number of customers, of those up to `most`, with whom as many are at a station as were seen on average, where so many of its servers
/// are busy (machine repairman, M/M/k//N).
pub fn fitting(servers: u32, busy: f64, seen: f64, most: u32) -> u32 {
    let least = (seen.floor() as u32).max(busy.floor() as u32) + 1;
    if least >= most {
        return most;
    }
    let misses = |customers: u32| (there(servers, busy, customers) - seen).abs();
    let mut best = (f64::INFINITY, least);
    for customers in least..=most {
        let miss = misses(customers);
        // More customers queue more, so that misses fall and then rise.
        if miss > best.0 {
            break;
        }
        best = (miss, customers);
    }
    best.1
}

/// How many of the customers are at the station on average.
fn there(servers: u32, busy: f64, customers: u32) -> f64 {
    let (mut low, mut high) = (1e-12_f64, 1e12_f64);
    for _ in 0..100 {
        let middle = (low * high).sqrt();
        if station(servers, customers, middle).0 > busy { high = middle } else { low = middle }
    }
    station(servers, customers, low).1
}

/// Busy servers and customers at the station, where a customer comes so often in the time of a service.
fn station(servers: u32, customers: u32, often: f64) -> (f64, f64) {
    let (mut weight, mut weights, mut busy, mut there) = (1.0, 1.0, 0.0, 0.0);
    for number in 1..=customers {
        let at_work = f64::from(number.min(servers));
        weight *= f64::from(customers + 1 - number) * often / at_work;
        weights += weight;
        busy += weight * at_work;
        there += weight * f64::from(number);
        if weights > 1e200 {
            (weight, weights, busy, there) = (weight * 1e-200, weights * 1e-200, busy * 1e-200, there * 1e-200);
        }
    }
    (busy / weights, there / weights)
}

#[cfg(test)]
mod tests {
    use super::{fitting, station};

    #[test]
    fn customers_are_found_again() {
        for (servers, customers, often) in [(1, 5, 0.2), (1, 12, 0.1), (4, 9, 0.9)] {
            let (busy, there) = station(servers, customers, often);
            assert_eq!(fitting(servers, busy, there, 50), customers);
        }
    }

    #[test]
    fn a_full_queue_has_an_end() {
        assert!(fitting(1, 1.0, 3.0, 50) >= 4);
        assert_eq!(fitting(1, 0.0, 0.0, 50), 1);
    }
}
