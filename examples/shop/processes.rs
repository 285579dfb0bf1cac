//! The shop in four processes: each service but the mailer in one of its own, started by this one.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};
use clap::ValueEnum as _;

use crate::services::{Addresses, Role};

/// The processes of the shop.
pub struct Processes {
    addresses: Addresses,
    children: Vec<Child>,
}

impl Processes {
    /// Starts them, each with the arguments of this process, and told where those listen that it calls.
    pub fn start() -> anyhow::Result<Self> {
        let mut shop = Self { addresses: Addresses::default(), children: Vec::new() };
        for role in Role::ALL {
            shop.add(role)?;
        }
        Ok(shop)
    }

    fn add(&mut self, role: Role) -> anyhow::Result<()> {
        let name = |role: Role| role.to_possible_value().expect("no role is hidden").get_name().to_owned();
        let mut command = Command::new(std::env::current_exe()?);
        // Of the four processes, each runs one part: the arguments but for `--processes`.
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            if argument == "--processes" {
                arguments.next();
            } else if !argument.starts_with("--processes=") {
                command.arg(argument);
            }
        }
        command.args(["--role", &name(role)]);
        for known in Role::ALL {
            if let Ok(address) = self.addresses.of(known) {
                command.arg("--at").arg(format!("{}={address}", name(known)));
            }
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().context("its output is piped")?;
        self.children.push(child);
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let address = line.trim().parse().with_context(|| format!("{role:?} did not say where it listens"))?;
        self.addresses.set(role, address);
        Ok(())
    }

    /// Where users send their requests.
    pub fn gateway(&self) -> anyhow::Result<SocketAddr> {
        self.addresses.of(Role::Gateway)
    }

    /// Lets them finish, callers first.
    pub fn finish(mut self) -> anyhow::Result<()> {
        while let Some(mut child) = self.children.pop() {
            drop(child.stdin.take());
            let status = child.wait()?;
            ensure!(status.success(), "a process of the shop ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // Those that are left when something went wrong.
        for child in &mut self.children {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Says where a service listens, and serves until the standard input ends.
pub async fn serve_until_told(address: SocketAddr) -> anyhow::Result<()> {
    println!("{address}");
    let (told, wait) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        // Nobody waits any more where the service has failed.
        let _ = told.send(());
    });
    wait.await.context("nobody waits for the end any more")
}
