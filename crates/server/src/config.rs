//! The configuration file: what no sender can tell.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dyelog::diagnostic::{Diagnostic, Place};
use dyelog::trace::spans::Deployment;
use dyelog_observe::system::{Node, System, SystemProgram};
use serde::Deserialize;

use crate::client::{Asking, Client};

/// How long an answer with metrics may take, and how many bytes it may have.
const PATIENCE: Duration = Duration::from_secs(10);
const LARGEST: u64 = 8 << 20;

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Processors, disks and threads.
    pub system: System,
    /// From where metrics are fetched.
    pub scrapes: Vec<Scrape>,
    /// The environment and the namespace that are taken, where the command line names none.
    pub deployment: Deployment,
}

/// A program that tells its metrics as Prometheus text where it is asked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scrape {
    /// Where: `http://host:port/metrics`, or the same with `https://`.
    pub url: String,
    /// How often, seconds.
    #[serde(default = "usual")]
    pub every: f64,
    /// Labels that all its metrics get, such as `service.name`.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// A PEM file of certificates that are trusted in place of the usual authorities.
    #[serde(default)]
    pub trust: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    #[serde(default)]
    environment: Option<String>,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    scrape: Vec<Scrape>,
    #[serde(default)]
    nodes: BTreeMap<String, Node>,
    #[serde(default)]
    programs: BTreeMap<String, SystemProgram>,
}

fn usual() -> f64 {
    15.0
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// That it cannot be read, or what is wrong with it, all at once.
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        Self::parse(&name, &text)
    }

    /// Reads a file, which is called so in what is said of it.
    ///
    /// # Errors
    /// What is wrong with it, all at once.
    pub fn parse(file: &str, text: &str) -> Result<Self, String> {
        let Shape { environment, namespace, scrape, nodes, programs } =
            toml::from_str(text).map_err(|error| format!("{file}: {error}"))?;
        let system = System { nodes, programs };
        let told = |finding: &Diagnostic| match &finding.place {
            Place::Item { item, .. } => format!("{file}: {item}: {}", finding.message),
            _ => format!("{file}: {}", finding.message),
        };
        let mut wrong: Vec<String> = system.check(file).0.iter().map(told).collect();
        for (number, own) in (1..).zip(&scrape) {
            if let Err(why) = own.client() {
                wrong.push(format!("{file}: scrape {number}: {why}"));
            }
            if !(1.0..=3600.0).contains(&own.every) {
                wrong.push(format!("{file}: scrape {number}: `every` is {}; it is 1 to 3600 seconds", own.every));
            }
        }
        let deployment = Deployment { environment: environment.map(Arc::from), namespace: namespace.map(Arc::from) };
        if wrong.is_empty() { Ok(Self { system, scrapes: scrape, deployment }) } else { Err(wrong.join("\n  ")) }
    }
}

impl Scrape {
    /// What asks for the text.
    ///
    /// # Errors
    /// Why the URL cannot be used, or the certificates that are trusted.
    pub fn client(&self) -> Result<Client, String> {
        let trust = self.trust.as_deref();
        Client::new(&self.url, Asking { token: None, trust, patience: Some(PATIENCE), largest: LARGEST })
    }
}

#[cfg(test)]
mod tests {
    use super::Config;

    #[test]
    fn a_file_says_what_nobody_sends() {
        let text = "environment = \"production\"\nnamespace = \"shop\"\n\n[[scrape]]\nurl = \"http://localhost:9100/metrics\"\nlabels = { \"service.name\" = \"shop\" }\n\n[nodes.web]\ncores = 4\n";
        let config = Config::parse("server.toml", text).expect("it is a configuration");
        assert_eq!((config.scrapes[0].every, config.system.cores("web")), (15.0, Some(4)));
        assert_eq!(config.deployment.environment.as_deref(), Some("production"));
        assert_eq!(config.deployment.namespace.as_deref(), Some("shop"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let wrong = |text: &str| Config::parse("server.toml", text).unwrap_err();
        let found = wrong("[[scrape]]\nurl = \"http://x\"\nevry = 3\n");
        assert!(found.contains("line 3") && found.contains("unknown field `evry`, expected one of"), "{found}");
        let found = wrong("[[scrape]]\nurl = \"ftp://x\"\nevery = 0\n\n[nodes.web]\ncores = 0\n");
        assert_eq!(found.lines().count(), 3, "{found}");
        assert!(found.contains("does not begin with http://") && found.contains("1 to 3600 seconds"), "{found}");
    }
}
