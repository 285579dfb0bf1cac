//! The heuristics of the layered solver: what each says, where it holds, and whence it comes.
//!
//! Exact theory covers product-form networks. Each rule here stands where a layered model leaves that theory. All of them are
//! on by default; [`Heuristics::without`] switches one off. The benchmark `heuristics` prints what each is worth on reference
//! models (`cargo bench -p dyelog-solve --bench heuristics`).

/// A rule that goes beyond product form.
///
/// Symbols: N is a population, X a throughput, V a number of visits in a cycle, S a service time, U the mean number of busy
/// servers, m a number of servers, c² a squared coefficient of variation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Heuristic {
    /// *Equation:* a customer of chain c finds the part 1 − Σ p(c) p(j) / N of the customers of chain j; the sum runs over the
    /// clients that both work for, p is the part of the activity on behalf of each. Branches of one fork find each other more often.
    /// *Range:* layers of at most 200 chains, clients of at most 100 customers. *Source:* Franks 1999, chapter 4; the weights by the
    /// part of blocked time, and branches, are ours. *Guard:* family `interlock` of `solve::reference`.
    Interlock,
    /// *Equation:* a task with 1 < m threads is a birth–death process with the rates X(1), X(2), … of the network below it; its queue,
    /// less that of independent threads, is the thread-queueing delay. *Range:* up to 2000 threads and 200 visits below. *Source:*
    /// Chandy, Herzog and Woo 1975; background load and scarce threads are ours: within 1% of exact
    /// solutions for product form, up to 15% off near saturation. Where several pools share processors, and threads or processors
    /// are nearly always busy, responses are off by 3 to 8% in the median and up to 31% in nine of ten random models (book: *The solver*). *Guard:*
    /// `closed_forms::pools_that_share_a_processor_with_what_they_call_are_followed`, unit tests of `thread_pools`.
    ThreadPools,
    /// *Equation:* a fork whose branches share servers is an absorbing Markov chain of the branches' places; its mean time to absorption
    /// is the fork's time. Where variances of branches are below 0.9 of those of their places, the time falls by the difference between such a chain without sharing and the
    /// order statistic of the branches' means and variances, which is ours. Open arrivals at a shared processor find ρ/(1 − ρ) times the mean number of branches, weighted by the work that an
    /// operation still has (`fork_join::crowding`, ours). Branches that are alike are lumped; those that differ in numbers alone are, where there would be too many states. *Range:* at most 3000 states. *Source:* compare Heidelberger and Trivedi 1983; Kemeny and Snell 1960; Takács 1962. *Guard:* family
    /// `fork-join` of `solve::reference`, `solve::forks`, unit tests of `fork_join`.
    ForkChains,
    /// *Equation:* customers found are those with one customer fewer of each chain. *Range:* networks where one pass takes at most
    /// 2000 steps; Schweitzer's approximation elsewhere. *Source:* Chandy and Neuse 1982. *Guard:* `closed_forms`.
    Linearizer,
    /// *Equation:* stay = approximate stay × (exact stay ÷ approximate stay) of the nearest product-form network, the ratio within
    /// 0.2 and 5. *Range:* whole populations and an exact solution of at most 4·10⁵ multiplications. *Source:* ours. *Guard:*
    /// `closed_forms`, family `plain` of `solve::reference`.
    ProductFormCorrection,
    /// *Equation:* a customer overtakes its own second phase after an exponential time between reply and next
    /// request; it then waits for the rest of the phase and for the overtaken queue. *Range:* closed chains, entries with later
    /// phases. *Source:* compare Franks 1999 on overtaking; its distribution and the weights are ours. *Guard:* family
    /// `second phase` of `solve::reference`.
    Overtaking,
    /// *Equation:* of the visits to a station a part directly follows another one after the mean time of a slice; overtaking mixes
    /// both inter-visit times. *Range:* repeated calls from one phase. *Source:* ours. *Guard:* family `second phase` of
    /// `solve::reference`.
    RepeatVisits,
    /// *Equation:* the residual service is multiplied by the ratio of the waits of two M/G/1//n systems, with the service's own c²
    /// and with that of exponential service. Off: the ratio of M/G/1, (1 + c²)/2. *Range:* one server and whole populations;
    /// more than 60 customers are scaled down. *Source:* Takács 1962. *Guard:* `closed_forms`, unit tests of `erlang`.
    FiniteSourceVariance,
    /// *Equation:* while a customer queues, it waits for another chain no more than U of that chain × its own inter-visit time.
    /// *Range:* single servers, first come first served. *Source:* ours. *Guard:* family `plain` of `solve::reference`.
    DelayBound,
    /// *Equation:* work of a higher class that a customer finds is taken by free / (free + U/N of that class): the one in service
    /// cannot come ahead again. *Range:* closed chains of different priority. *Source:* compare Bryant, Krzesinski, Lakshmi and
    /// Chandy 1984. *Guard:* `bulk-and-urgent` of `solve::reference`.
    PriorityShadow,
    /// *Equation:* the probability that all m servers are busy is that of the machine repairman M/M/m//N with the same load. Off:
    /// that of M/M/m (Erlang's C formula). *Range:* up to 400 customers. *Source:* ours, exact for one chain without delays of
    /// others. *Guard:* unit tests of `erlang`, `closed_forms`.
    FinitePopulationServers,
    /// *Equation:* waits of closed chains are multiplied by √(U/m) from step to step while U > m. *Range:* stations that the
    /// approximation overloads. *Source:* ours. *Guard:* law `no_server_does_more_than_it_can`.
    OverloadCorrection,
    /// *Equation:* a message of first slice b begins at the processor of its sender as the sender goes on for a slice s. With processor sharing a
    /// Markov chain of the messages beside the sender's slices gives how much longer both take, sb / (s + b) for a single message; others
    /// of utilisation U make it 1 / (1 − U/2) of that. First come, first served: the message waits s, and the sender's next slice but one waits b;
    /// both times (1 − U), which is ours, where messages have several threads. What a Poisson stream of messages finds of the same customer is taken off. *Range:* single servers without
    /// priorities, at most 1000 such calls; a message whose task has no thread free does not meet its sender: `mail` of `solve::reference` responds 9% too early by it. *Source:* ours, exact for one
    /// customer that thinks for long. *Guard:* `closed_forms::a_message_meets_its_sender_on_their_processor`, family `messages`
    /// of `solve::reference`.
    SenderMeetsMessage,
    /// *Equation:* of R copies that take requests in turn each has arrivals of c² = 1/R; the residual service is multiplied by the ratio of the waits of GI/M/1 and M/M/1,
    /// times ((1/R + c²) / (1 + c²)) / ((1/R + 1) / 2) for service of c². *Range:* copies by round robin; their threads and their processors. *Source:* Kleinrock 1975, §6.4;
    /// Kingman 1961; that requests come to all copies together as Poisson arrivals is ours. *Guard:* unit tests of `arrivals`,
    /// `closed_forms::copies_that_take_requests_in_turn_queue_less`.
    RegularArrivals,
    /// *Equation:* of R copies with m servers each, of which a request joins the one with the fewest, each queue is C(Rm, ρ) / (R C(m, ρ)) times that of M/M/m, C by Erlang:
    /// that of all servers together; and 1 + (R − 1)(1 − ρ)(0.47 + 0.39(1 − ρ)²) m^−0.17 times as long. Where the fewer of two drawn copies decide, it lies between that of two
    /// copies and that of R, the part (0.75 + 0.4/R)(1 − ρ)^(0.3 + 0.9/R) m^−(0.05 + 0.9(1 − ρ)) of the way. *Range:* copies by the shortest queue or the shortest of two; their threads and
    /// their processors. *Source:* ours, fitted on Markov chains of R = 2 to 6 and m = 1 to 8 with ρ = 0.2 to 0.9 and on the mean field of R → ∞ (Mitzenmacher 2001): responses are within 1.6 %.
    /// *Guard:* unit tests of `arrivals`, `closed_forms::copies_of_the_shortest_queue_share_what_waits`.
    ShortestQueues,
    /// *Equation:* work on a shared processor whose tasks have a cap of q servers, and m at once, is slowed down by D(m) + f (D(q) − D(m)), with the slowdown D(s) on s servers. The odds of f are
    /// 1.1 S/P (R/S)^(0.6 − 0.31 ln S/P) (1 − U/q)^−1.16 q^−0.77 e^(0.7 q/m), less where the mean work that queues for q servers is less than the quota of a period P. R is the residual service. Off: f = 1.
    /// *Range:* one group with all tasks of a processor. *Source:* ours, fitted on 1400 simulations: responses are within 3.3 % in nine of ten. *Guard:* unit tests of `caps`,
    /// `closed_forms::a_cap_over_periods_is_no_processor_of_fewer_servers`.
    CapPeriods,
}

impl Heuristic {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Interlock,
        Self::ThreadPools,
        Self::ForkChains,
        Self::Linearizer,
        Self::ProductFormCorrection,
        Self::Overtaking,
        Self::RepeatVisits,
        Self::FiniteSourceVariance,
        Self::DelayBound,
        Self::PriorityShadow,
        Self::FinitePopulationServers,
        Self::OverloadCorrection,
        Self::SenderMeetsMessage,
        Self::RegularArrivals,
        Self::ShortestQueues,
        Self::CapPeriods,
    ];
}

/// A set of heuristics; all of them by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristics(u16);

impl Default for Heuristics {
    fn default() -> Self {
        Self(u16::MAX)
    }
}

impl Heuristics {
    /// Whether the heuristic is on.
    pub fn has(self, heuristic: Heuristic) -> bool {
        self.0 & (1 << heuristic as u16) != 0
    }

    /// The set without that heuristic.
    #[must_use]
    pub fn without(self, heuristic: Heuristic) -> Self {
        Self(self.0 & !(1 << heuristic as u16))
    }
}
