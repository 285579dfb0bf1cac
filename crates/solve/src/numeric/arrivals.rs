//! Queues of which arrivals are more regular than by chance.

/// Steps of the iteration for what an arrival finds; it gains more than a digit every few.
const STEPS: u32 = 64;

/// How much shorter a queue is than with Poisson arrivals, where times between arrivals have that squared coefficient of variation, at most 1, and times of service that
/// one; each server is busy for that part of the time.
///
/// For exponential service it is exact with Gamma times between arrivals: GI/M/1, of which an arrival finds the server busy with the probability σ = A*(μ(1 − σ)) (Kleinrock,
/// Queueing Systems I, 1975, §6.4). Other service changes it as waits in heavy traffic, (c²(A) + c²(S)) / 2 (Kingman 1961).
pub(crate) fn regular(arrivals: f64, service: f64, load: f64) -> f64 {
    if arrivals >= 1.0 || load <= 0.0 {
        return 1.0;
    }
    let heavy = (arrivals + service) / (1.0 + service);
    if load >= 1.0 {
        return heavy;
    }
    let (busy, exponential) = (found_busy(arrivals, load), f64::midpoint(arrivals, 1.0));
    busy * (1.0 - load) / (load * (1.0 - busy)) * heavy / exponential
}

/// The probability with which an arrival finds the server busy.
fn found_busy(arrivals: f64, load: f64) -> f64 {
    // Newton's method from below the smaller root of a convex function: it does not step over it.
    let mut busy = 0.0;
    for _ in 0..STEPS {
        let base = 1.0 + arrivals * (1.0 - busy) / load;
        let transform = if arrivals < 1e-9 { (-(1.0 - busy) / load).exp() } else { base.powf(-1.0 / arrivals) };
        let slope = transform / base / load;
        let step = (transform - busy) / (1.0 - slope);
        busy += step;
        if step.abs() <= 1e-12 {
            break;
        }
    }
    busy.clamp(0.0, load)
}

#[cfg(test)]
mod tests {
    use super::regular;

    #[test]
    fn queues_are_those_of_closed_forms() {
        // D/M/1 and E2/M/1 at half load: σ = exp(−2(1 − σ)) = 0.2032, σ = 1 / (2 − σ)² = 0.3820 (Kleinrock 1975, §6.4).
        for (arrivals, busy) in [(0.0, 0.203_188), (0.5, 0.381_966)] {
            let found = regular(arrivals, 1.0, 0.5);
            assert!((found - busy / (1.0 - busy)).abs() < 1e-5, "{found}");
        }
        assert_eq!(regular(1.0, 1.0, 0.5), 1.0);
        // Near saturation waits are those of heavy traffic.
        assert!((regular(1.0 / 3.0, 1.0, 0.999) - 2.0 / 3.0).abs() < 1e-3);
        assert!((regular(0.5, 0.0, 0.999) - 0.5).abs() < 1e-3);
    }

    #[test]
    fn queues_grow_with_how_arrivals_vary() {
        for load in [0.01, 0.3, 0.7, 0.95, 0.9999] {
            let all: Vec<f64> = (0..=20).map(|number| regular(f64::from(number) / 20.0, 1.0, load)).collect();
            assert!(all.windows(2).all(|two| two[0] <= two[1] + 1e-9), "{load}: {all:?}");
            assert!(all.iter().all(|ratio| (0.0..=1.0).contains(ratio)), "{load}: {all:?}");
        }
    }
}
