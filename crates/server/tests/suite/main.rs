//! Tests of the server, one binary, a module a subject.

mod ageing;
#[path = "../../../../tests/suite/browser.rs"]
#[expect(dead_code, reason = "reports are probed by scripts, too")]
mod browser;
mod conservation;
mod cut;
mod elsewhere;
mod environments;
mod faults;
mod home;
mod hostile;
mod idle;
mod imports;
mod killed;
mod late;
mod metrics;
mod observers;
mod page;
mod parts;
mod period;
mod postgres;
mod power;
mod program;
mod receive;
mod remembered;
mod services;
mod store;
mod stretches;
mod support;
