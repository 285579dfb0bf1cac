//! The shop in four processes: each service but the mailer in one of its own, started by this one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context as _, ensure};
use clap::ValueEnum as _;

use crate::services::{Addresses, Role};

/// The processes of the shop.
pub struct Processes {
    addresses: Addresses,
    children: Vec<(Child, BufReader<ChildStdout>)>,
}

/// What a process of the shop reads, and answers, when it is to begin to record.
const RECORD: &str = "record";

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
        let mut out = BufReader::new(child.stdout.take().context("its output is piped")?);
        let mut line = String::new();
        let read = out.read_line(&mut line);
        self.children.push((child, out));
        read?;
        let address = line.trim().parse().with_context(|| format!("{role:?} did not say where it listens"))?;
        self.addresses.set(role, address);
        Ok(())
    }

    /// Where users send their requests.
    pub fn gateway(&self) -> anyhow::Result<SocketAddr> {
        self.addresses.of(Role::Gateway)
    }

    /// Has all of them record from now on.
    pub fn record(&mut self) -> anyhow::Result<()> {
        for (child, out) in &mut self.children {
            writeln!(child.stdin.as_ref().context("its input is piped")?, "{RECORD}")?;
            let mut line = String::new();
            out.read_line(&mut line)?;
            ensure!(line.trim() == RECORD, "a process of the shop does not record");
        }
        Ok(())
    }

    /// Lets them finish, callers first.
    pub fn finish(mut self) -> anyhow::Result<()> {
        while let Some((mut child, _)) = self.children.pop() {
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
        for (child, _) in &mut self.children {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Says where a service listens, and serves until the standard input ends. When the input asks for it, `record` is called.
pub async fn serve_until_told(
    address: SocketAddr,
    mut record: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    println!("{address}");
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            // Nobody waits any more where the service has failed.
            let _ = tell.send(line);
        }
    });
    while let Some(line) = told.recv().await {
        if line == RECORD {
            record()?;
            println!("{RECORD}");
        }
    }
    Ok(())
}
