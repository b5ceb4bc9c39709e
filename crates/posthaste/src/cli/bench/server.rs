//! The office under test: this very program, as a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::cli::exit::{Exit, Failure};
use crate::keys::AdminKey;

pub(super) struct Server {
    child: Child,
    pub(super) address: String,
    pub(super) token: String,
}

impl Server {
    pub(super) fn start(data: &Path, further: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "json", "--log-level", "error", "--data"])
            .arg(data)
            .args(further);
        // What is measured is the office and not its patience.
        for rate in ["REQUESTS", "MESSAGES", "BROADCASTS", "HEARTBEATS", "CONSENTS", "REGISTRATIONS"] {
            command.env(format!("POSTHASTE_RATE_{rate}"), "off");
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let Some(address) = line.trim_end().strip_prefix("ready http://").map(str::to_owned) else {
            let _ = child.kill();
            return Err(Failure::new(Exit::Failed, "the office did not open"));
        };
        Ok(Self { child, address, token: AdminKey::read(data)? })
    }

    /// The server's process.
    pub(super) fn process(&self) -> Process {
        Process { id: Some(self.child.id()) }
    }

    /// The time the server has spent computing.
    pub(super) fn cpu(&self) -> Option<Duration> {
        self.process().cpu()
    }

    /// The memory the server has in use.
    pub(super) fn resident_bytes(&self) -> Option<u64> {
        self.process().resident_bytes()
    }

    pub(super) fn stop(mut self) -> Result<(), Failure> {
        // What it holds is thrown away, so it need not be asked politely.
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

/// What the system tells about a process of this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) id: Option<u32>,
}

impl Process {
    /// This program itself.
    pub(super) fn this() -> Self {
        Self { id: Some(std::process::id()) }
    }

    /// The time it has spent computing.
    pub(super) fn cpu(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id?)).ok()?;
        // The name in parentheses may contain anything, so fields are counted from behind it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        Some(Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second().max(1)))
    }

    /// The memory it has in use.
    pub(super) fn resident_bytes(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1_024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
