//! Where a store is: in a file, or behind a server.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use dyelog_observe::json;
use dyelog_server::client::{Asking, Client};
use dyelog_server::config::Config;
use dyelog_server::observed;
use dyelog_server::parts;
use dyelog_server::period::{Added, Period, Twice, imported, intervals_json, is_reports};
use dyelog_server::recorded::Recorded;
use dyelog_server::service::wall_clock;
use dyelog_server::store::{Location, Store, StoreError};
use serde_json::Value;
use ureq::http::Method;

use super::period::UNOBSERVED;

/// The begin and the end of a period, as they were written.
pub type Ends<'e> = [Option<&'e str>; 2];

/// How many bytes an answer of a server may have.
const LARGEST: u64 = 1 << 30;
/// The variable of the environment that has the token.
const TOKEN: &str = "DYELOG_TOKEN";

/// Where a server has what a period recorded.
const RECORDED: &str = "/v1/period/recorded";

/// A store.
#[derive(Debug, Args)]
pub struct Place {
    /// The file that keeps the sub-models, its database (`postgresql://USER@HOST/DATABASE`), or the URL of a server: http://127.0.0.1:4318
    #[arg(long, value_name = "FILE|URL", default_value = "dyelog.db")]
    store: String,
    /// A PEM file of certificates that are trusted in place of the usual authorities, where the store is at an https:// URL: of
    /// authorities, or the server's own, made with `basicConstraints=critical,CA:FALSE`
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
}

/// What a period is written as for a server.
fn query(ends: Ends<'_>) -> Vec<(&'static str, &str)> {
    ["from", "to"].into_iter().zip(ends).filter_map(|(name, end)| Some((name, end?))).collect()
}

fn period(ends: Ends<'_>) -> Result<Period, String> {
    Period::parse(ends[0], ends[1], wall_clock())
}

impl Place {
    fn location(&self) -> Result<Location, String> {
        self.store.parse()
    }

    /// The server, where it is one. The token comes from the environment, where other users of the machine do not see it.
    fn server(&self) -> Result<Option<Client>, String> {
        if !self.store.starts_with("http://") && !self.store.starts_with("https://") {
            return Ok(None);
        }
        let token = env::var(TOKEN).ok();
        let asking = Asking { token: token.as_deref(), trust: self.trust.as_deref(), patience: None, largest: LARGEST };
        Client::new(&self.store, asking).map(Some)
    }

    fn failed(&self) -> impl Fn(StoreError) -> String {
        // The password is not printed.
        let place = self.location().map_or_else(|why| why, |location| location.to_string());
        move |error| format!("{place}: {error}")
    }

    fn open(&self) -> Result<Store, String> {
        Store::read_at(&self.location()?).map_err(self.failed())
    }

    /// Asks a server.
    fn ask(&self, client: &Client, method: &Method, path: &str, ends: Ends<'_>, body: &str) -> Result<String, String> {
        self.told(client.ask(method, path, &query(ends), body))
    }

    fn told<T>(&self, answer: Result<T, String>) -> Result<T, String> {
        answer.map_err(|why| {
            let hint = if why.contains("401") {
                format!("\n  hint: the variable {TOKEN} holds the token")
            } else {
                String::new()
            };
            format!("{}: {why}{hint}", self.store)
        })
    }

    /// The intervals of a period that have anything.
    pub fn intervals(&self, ends: Ends<'_>) -> Result<Value, String> {
        match self.server()? {
            Some(client) => {
                let text = self.ask(&client, &Method::GET, "/v1/intervals", ends, "")?;
                serde_json::from_str(&text).map_err(|error| format!("{}: {error}", self.store))
            }
            None => {
                let period = period(ends)?;
                intervals_json(&self.open()?, period).map_err(self.failed())
            }
        }
    }

    /// The parts of a period, as a server answers.
    pub fn parts(&self, ends: Ends<'_>, config: Option<&Path>) -> Result<Option<Value>, String> {
        match self.server()? {
            Some(client) => {
                let text = self.ask(&client, &Method::GET, "/v1/period/parts", ends, "")?;
                serde_json::from_str(&text).map(Some).map_err(|error| format!("{}: {error}", self.store))
            }
            None => {
                let system = config.map_or_else(|| Ok(Config::default()), Config::read)?.system;
                parts::json(&self.open()?, period(ends)?, &system).map_err(self.failed())
            }
        }
    }

    /// The saved sub-model of a period and what metrics tell of it, for commands; `None` where nothing was recorded.
    pub fn recorded(&self, ends: Ends<'_>) -> Result<Option<Recorded>, String> {
        let Some(client) = self.server()? else { return self.recorded_by(ends, Recorded::packed) };
        let packed = Recorded::packed_type();
        let types = format!("{packed}, application/json;q=0.5");
        let (of_type, answer) = self.told(client.typed(RECORDED, &query(ends), &types))?;
        let found = if of_type == packed {
            Recorded::from_bytes(&answer).ok_or_else(|| "the answer is damaged".to_owned())
        } else {
            serde_json::from_slice(&answer).map_err(|error| error.to_string())
        };
        found.map(Some).map_err(|why| format!("{}: {why}", self.store))
    }

    /// The same, for people and other programs.
    pub fn exported(&self, ends: Ends<'_>) -> Result<Option<Recorded>, String> {
        self.recorded_by(ends, Recorded::of)
    }

    fn recorded_by(
        &self,
        ends: Ends<'_>,
        of: impl FnOnce(&Store, Period) -> Result<Option<Recorded>, StoreError>,
    ) -> Result<Option<Recorded>, String> {
        match self.server()? {
            Some(client) => {
                let text = self.ask(&client, &Method::GET, RECORDED, ends, "")?;
                serde_json::from_str(&text).map(Some).map_err(|error| format!("{}: {error}", self.store))
            }
            None => of(&self.open()?, period(ends)?).map_err(self.failed()),
        }
    }

    /// Traces that bear witness of a period's sub-model, as a request of OTLP; `None` where nothing was recorded.
    pub fn exemplars(&self, ends: Ends<'_>) -> Result<Option<Vec<u8>>, String> {
        match self.server()? {
            Some(client) => self.told(client.bytes("/v1/period/exemplars", &query(ends))).map(Some),
            None => {
                let period = period(ends)?;
                self.open()?.exemplars(period.from, period.to).map_err(self.failed())
            }
        }
    }

    /// The model of what observers reported of a period, or how it holds against what they measured.
    pub fn observed(&self, ends: Ends<'_>, config: Option<&Path>, json: bool) -> Result<String, String> {
        if let Some(client) = self.server()? {
            let path = if json { "/v1/observed/validation" } else { "/v1/observed/model" };
            return self.ask(&client, &Method::GET, path, ends, "");
        }
        let system = config.map_or_else(|| Ok(Config::default()), Config::read)?.system;
        let made = observed::model(&self.open()?, period(ends)?, &system).map_err(self.failed())?;
        let made = made.ok_or(UNOBSERVED)??;
        if json { Ok(format!("{:#}\n", observed::validation(&made)?)) } else { Ok(observed::text(&made)) }
    }

    /// What observers reported of a period; `None` where that is nothing.
    pub fn reports(&self, ends: Ends<'_>) -> Result<Option<String>, String> {
        if let Some(client) = self.server()? {
            return self.ask(&client, &Method::GET, "/v1/observed/reports", ends, "").map(Some);
        }
        let Period { from, to } = period(ends)?;
        self.open()?.reports(from, to).map_err(self.failed())
    }

    /// Deletes the intervals that lie in a period; says how many.
    pub fn delete(&self, ends: Ends<'_>) -> Result<u64, String> {
        match self.server()? {
            Some(client) => {
                let text = self.ask(&client, &Method::DELETE, "/v1/period", ends, "")?;
                let answer: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", self.store))?;
                Ok(answer["deleted"].as_u64().unwrap_or_default())
            }
            None => {
                let period = period(ends)?;
                Ok(self.open()?.delete(period.from, period.to).map_err(self.failed())? as u64)
            }
        }
    }

    /// Adds a saved sub-model to the interval in which it begins, or what observers reported. What is to be warned of comes back.
    pub fn import(&self, file: &Path, twice: Twice) -> Result<Option<String>, String> {
        let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
        let text = fs::read_to_string(file).map_err(|error| failed(&error))?;
        let name = file.display().to_string();
        if let Some(client) = self.server()? {
            let again: &[(&str, &str)] = if twice == Twice::Counted { &[("again", "true")] } else { &[] };
            let answer = client.ask(&Method::POST, "/v1/import", again, &text);
            let text = self.told(answer).map_err(|why| failed(&why))?;
            let answer: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", self.store))?;
            return Ok(answer["warning"].as_str().map(str::to_owned));
        }
        if is_reports(&text) {
            let observations = json::parse(&name, &text).map_err(|found| found.to_string())?;
            let now = wall_clock();
            observed::possible(&observations, now).map_err(|why| failed(&why))?;
            let mut store = Store::open_at(&self.location()?).map_err(self.failed())?;
            let put = store.put_observations(&[observations], now).map_err(self.failed())?;
            let overlap = put.into_iter().find_map(Result::err);
            return overlap.map_or(Ok(None), |overlap| Err(failed(&overlap)));
        }
        let found = imported(&name, &text).map_err(|why| failed(&why))?;
        let mut store = Store::open_at(&self.location()?).map_err(self.failed())?;
        match found.add_to(&mut store, wall_clock(), twice).map_err(self.failed())? {
            Added::Yes(warning) => Ok(warning),
            Added::No(why) => Err(failed(&why)),
        }
    }
}
