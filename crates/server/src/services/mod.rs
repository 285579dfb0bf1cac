//! The ten services of the performance data server (1996 paper, §4.1): management, storage and reporting, over HTTP and over gRPC.
//!
//! [`openapi`](crate::openapi) describes the first, `proto/performance_data.proto` the second.

mod figures;
mod interfaces;
pub mod messages;

use std::sync::Arc;

use axum::http::StatusCode;
use dyelog_observe::json;
use dyelog_observe::model::choose;
use dyelog_observe::period::Period as Observed;

pub use interfaces::{Desk, management, reporting, storage};
pub(crate) use interfaces::{is_put, text};
use messages::{
    ApplicationNames, Deleted, Done, Figures, Nothing, ProcessName, ProcessNames, Question, Report, Stored,
};

use crate::observed;
use crate::period::Period;
use crate::service::{NotPut, Service, wall_clock};
use crate::store::{Store, Which};
use crate::web::{Failed, ask};

/// A question that was understood.
struct Meant {
    which: Which,
    from: i64,
    to: i64,
}

impl Question {
    fn meant(self) -> Result<Meant, Failed> {
        let period = Period::parse(self.from.as_deref(), self.to.as_deref(), wall_clock())
            .map_err(|why| Failed(StatusCode::BAD_REQUEST, why))?;
        let signed = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
        let which = Which { application: self.application, host: self.host, process: self.process };
        Ok(Meant { which, from: signed(period.from), to: signed(period.to) })
    }

    /// The same of one process.
    fn of_process(self) -> Result<Meant, Failed> {
        if self.host.is_none() || self.process.is_none() {
            return Err(Failed(StatusCode::BAD_REQUEST, "say which process: `host` and `process`".to_owned()));
        }
        self.meant()
    }
}

pub(crate) async fn put(service: Arc<Service>, Report { document }: Report) -> Result<Stored, Failed> {
    if document.trim().is_empty() {
        return Err(Failed(StatusCode::BAD_REQUEST, "there is no report".to_owned()));
    }
    let read = move || json::parse("the report", &document);
    let lost = |_| Failed(StatusCode::INTERNAL_SERVER_ERROR, "the report could not be read".to_owned());
    let read = tokio::task::spawn_blocking(read).await.map_err(lost)?;
    let refused = |why| Failed(StatusCode::BAD_REQUEST, why);
    let observations = read.map_err(|findings| refused(findings.to_string()))?;
    observed::possible(&observations, wall_clock()).map_err(refused)?;
    let count = observations.len() as u64;
    let stored = service.put(observations).await.map_err(|error| match error {
        NotPut::Overlaps(why) => refused(why),
        NotPut::Unwritable(why) => Failed(StatusCode::SERVICE_UNAVAILABLE, why),
    })?;
    Ok(Stored { stored, duplicates: count - stored })
}

async fn applications(service: Arc<Service>, asked: Question) -> Result<ApplicationNames, Failed> {
    if asked.host.is_some() || asked.process.is_some() || asked.application.is_some() {
        return Err(Failed(StatusCode::BAD_REQUEST, "this takes a period alone: `from` and `to`".to_owned()));
    }
    let Meant { from, to, .. } = asked.meant()?;
    let applications = ask(&service, move |store| store.applications(from, to)).await?;
    Ok(ApplicationNames { applications })
}

async fn processes(service: Arc<Service>, asked: Question) -> Result<ProcessNames, Failed> {
    let Meant { which, from, to } = asked.meant()?;
    let found = ask(&service, move |store| store.processes(&which, from, to)).await?;
    Ok(ProcessNames { processes: found.iter().map(ProcessName::from).collect() })
}

async fn first_observation(service: Arc<Service>, asked: Question) -> Result<Report, Failed> {
    let Meant { which, from, to } = asked.of_process()?;
    let found = ask(&service, move |store| store.first_observation(&which, from, to)).await?;
    found.map_or_else(|| Err(nothing()), |found| Ok(Report { document: json::write(&[found]) }))
}

async fn get(service: Arc<Service>, asked: Question) -> Result<Figures, Failed> {
    let Meant { which, from, to } = asked.of_process()?;
    let host = which.host.as_deref();
    let cores = host.and_then(|host| service.system().cores(host)).unwrap_or(1);
    let disk_service = host.and_then(|host| service.system().disk_service(host)).unwrap_or(0.0);
    let node = (f64::from(cores), disk_service);
    let system = service.system().clone();
    let found = ask(&service, move |store| {
        // All that ran on the node says how busy it was.
        let beside = Which { host: which.host.clone(), ..Which::default() };
        let period = Observed::of(&store.observations(&beside, from, to)?, from, to);
        let meant = period.processes.iter().filter(|process| which.is(&process.total.process));
        // As models of the period have it.
        let method = choose(&period, &system);
        Ok(meant.map(|process| figures::figures(&period, process, node, method)).collect::<Vec<_>>())
    });
    let processes = found.await?;
    if processes.is_empty() { Err(nothing()) } else { Ok(Figures { processes }) }
}

async fn init(service: Arc<Service>, _: Nothing) -> Result<Done, Failed> {
    let unwritable = |why| Failed(StatusCode::SERVICE_UNAVAILABLE, why);
    service.initialise().await.map_err(unwritable)?;
    Ok(Done { done: true })
}

async fn delete_period(service: Arc<Service>, asked: Question) -> Result<Deleted, Failed> {
    let meant = asked.of_process()?;
    deleted(&service, meant).await
}

async fn delete_period_of_all(service: Arc<Service>, asked: Question) -> Result<Deleted, Failed> {
    if asked.application.is_some() || asked.host.is_some() || asked.process.is_some() {
        return Err(Failed(StatusCode::BAD_REQUEST, "this deletes of all processes; `del_period` of one".to_owned()));
    }
    let meant = asked.meant()?;
    deleted(&service, meant).await
}

async fn deleted(service: &Service, Meant { which, from, to }: Meant) -> Result<Deleted, Failed> {
    let delete = move |store: &mut Store| store.delete_observations(&which, from, to);
    let deleted = ask(service, delete).await?;
    Ok(Deleted { deleted: deleted as u64 })
}

async fn shutdown(service: Arc<Service>, _: Nothing) -> Result<Done, Failed> {
    service.ask_to_stop(false);
    Ok(Done { done: true })
}

async fn uninstall(service: Arc<Service>, _: Nothing) -> Result<Done, Failed> {
    service.ask_to_stop(true);
    Ok(Done { done: true })
}

fn nothing() -> Failed {
    Failed(StatusCode::NOT_FOUND, "nothing was observed of this process in this period".to_owned())
}
