//! The server under test: the program `posthaste` as a process of its own.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use posthaste::cli::exit::{Exit, Failure};
use posthaste_host::keys::AdminKey;

pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    pub(crate) token: String,
}

impl Server {
    /// Starts a server on a free port.
    pub(crate) fn start(data: &Path, further: &[&str]) -> Result<Self, Failure> {
        Self::start_at("127.0.0.1:0", data, further, None)
    }

    /// Starts a server at an address. If its log goes into a file, it is also in a process group of its own, so that Ctrl-C does
    /// not reach it.
    pub(crate) fn start_at(
        address: &str,
        data: &Path,
        further: &[&str],
        log: Option<File>,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(crate::program::posthaste());
        command.args(["serve", "--listen", address, "--log", "json", "--log-level"]);
        command.arg(if log.is_some() { "warn" } else { "error" }).arg("--data").arg(data).args(further);
        if let Some(file) = log {
            command.stderr(file);
            #[cfg(unix)]
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
        }
        // Rate limits are off: the server's speed is measured.
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
            return Err(Failure::new(Exit::Failed, "the server did not start"));
        };
        Ok(Self { child, address, token: AdminKey::read(data)? })
    }

    /// The server's process.
    pub(crate) fn process(&self) -> Process {
        Process { id: Some(self.child.id()) }
    }

    /// The processor time that the server has used.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        self.process().cpu()
    }

    /// The memory the server has in use.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        self.process().resident_bytes()
    }

    /// Closes it gracefully and returns its exit status; none if it had to be killed.
    pub(crate) fn close(mut self, patience: Duration) -> Result<Option<ExitStatus>, Failure> {
        let end = Instant::now() + patience;
        #[cfg(unix)]
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        }
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.stop()?;
        Ok(None)
    }

    pub(crate) fn stop(mut self) -> Result<(), Failure> {
        // Its data is thrown away, so it is killed.
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

/// A process of this machine, as /proc shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) id: Option<u32>,
}

impl Process {
    /// This program itself.
    pub(crate) fn this() -> Self {
        Self { id: Some(std::process::id()) }
    }

    /// The processor time that it has used.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id?)).ok()?;
        // The name in parentheses may contain anything, so fields are counted from behind it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        Some(Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second().max(1)))
    }

    /// The memory it has in use.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
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
