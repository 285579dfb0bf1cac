//! The configuration file: what no sender can tell.

use std::collections::BTreeMap;

use dyelog::diagnostic::{Diagnostic, Place};
use dyelog_observe::system::{Node, System, SystemProgram};
use serde::Deserialize;

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Processors, disks and threads.
    pub system: System,
    /// From where metrics are fetched.
    pub scrapes: Vec<Scrape>,
}

/// A program that tells its metrics as Prometheus text where it is asked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scrape {
    /// Where: `http://host:port/metrics`.
    pub url: String,
    /// How often, seconds.
    #[serde(default = "usual")]
    pub every: f64,
    /// Labels that all its metrics get, such as `service.name`.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
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
    /// Reads a file, which is called so in what is said of it.
    ///
    /// # Errors
    /// What is wrong with it, all at once.
    pub fn parse(file: &str, text: &str) -> Result<Self, String> {
        let Shape { scrape, nodes, programs } = toml::from_str(text).map_err(|error| format!("{file}: {error}"))?;
        let system = System { nodes, programs };
        let told = |finding: &Diagnostic| match &finding.place {
            Place::Item { item, .. } => format!("{file}: {item}: {}", finding.message),
            _ => format!("{file}: {}", finding.message),
        };
        let mut wrong: Vec<String> = system.check(file).0.iter().map(told).collect();
        for (number, own) in (1..).zip(&scrape) {
            if let Err(why) = own.place() {
                wrong.push(format!("{file}: scrape {number}: {why}"));
            }
            if !(1.0..=3600.0).contains(&own.every) {
                wrong.push(format!("{file}: scrape {number}: `every` is {}; it is 1 to 3600 seconds", own.every));
            }
        }
        if wrong.is_empty() { Ok(Self { system, scrapes: scrape }) } else { Err(wrong.join("\n  ")) }
    }
}

impl Scrape {
    /// The host with its port, and the path.
    ///
    /// # Errors
    /// Why the URL cannot be used.
    pub fn place(&self) -> Result<(String, &str), String> {
        let rest =
            self.url.strip_prefix("http://").ok_or_else(|| format!("`{}` does not begin with http://", self.url))?;
        let (host, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || host.contains('@') || !is_plain(rest) {
            return Err(format!("`{}` names no host", self.url));
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        Ok((if has_port { host.to_owned() } else { format!("{host}:80") }, path))
    }
}

#[cfg(test)]
mod tests {
    use super::Config;

    #[test]
    fn a_file_says_what_nobody_sends() {
        let text = "[[scrape]]\nurl = \"http://localhost:9100/metrics\"\nlabels = { \"service.name\" = \"shop\" }\n\n[nodes.web]\ncores = 4\n";
        let config = Config::parse("server.toml", text).unwrap();
        assert_eq!(config.scrapes[0].place(), Ok(("localhost:9100".to_owned(), "/metrics")));
        assert_eq!((config.scrapes[0].every, config.system.cores("web")), (15.0, Some(4)));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let wrong = |text: &str| Config::parse("server.toml", text).unwrap_err();
        let found = wrong("[[scrape]]\nurl = \"http://x\"\nevry = 3\n");
        assert!(found.contains("line 3") && found.contains("unknown field `evry`, expected one of"), "{found}");
        let found = wrong("[[scrape]]\nurl = \"https://x\"\nevery = 0\n\n[nodes.web]\ncores = 0\n");
        assert_eq!(found.lines().count(), 3, "{found}");
        assert!(found.contains("does not begin with http://") && found.contains("1 to 3600 seconds"), "{found}");
    }
}
