//! Numerical methods that know nothing of queueing networks' structure: fixed points, Markov chains, distributions.

pub(crate) mod anderson;
pub(crate) mod arrivals;
pub(crate) mod birth_death;
pub(crate) mod by_id;
pub(crate) mod caps;
pub(crate) mod erlang;
pub(crate) mod order_statistics;
pub(crate) mod quadrature;
pub(crate) mod sparse_ctmc;
pub(crate) mod two_moment;
