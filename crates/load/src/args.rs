//! The command line of `posthaste-load`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, ValueHint};
use posthaste::cli::output::ColorWhen;

/// Load generators for posthaste.
#[derive(Debug, Parser)]
#[command(name = "posthaste-load", version, propagate_version = true)]
pub(crate) struct Args {
    /// The posthaste program to start [default: the one beside this program]
    #[arg(long, global = true, env = "POSTHASTE_BIN", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) bin: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = ColorWhen::Auto, value_name = "WHEN")]
    pub(crate) color: ColorWhen,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure what this machine can do, or a MAP server
    #[command(long_about = BENCH, after_long_help = BENCH_AFTER)]
    Bench(BenchArgs),
    /// Run a mixed fleet at every door of a server that is killed now and then, and check everything
    #[command(long_about = SOAK, after_long_help = SOAK_AFTER)]
    Soak(SoakArgs),
}

const BENCH: &str = "\
Starts a server of its own in a temporary directory, sends mail through it and reports messages per \
second and latencies, with every answer durable on this machine's disk, beside a loop that \
writes the same rows with SQLite alone. With --files it measures durable files in a mail directory beside \
a minimal loop that creates files, and the path from a file through a server to a file. Touches no real mail.";

const BENCH_AFTER: &str = "\
Example:
  posthaste-load bench --in-flight 1,64 --seconds 10 --agents 32
  posthaste-load bench --files --writers 1,4,16

A MAP server over WebSocket, posthaste's or another:
  posthaste-load bench --map --only send,turn,fanout
  posthaste-load bench --map ws://127.0.0.1:8080 --pid 4711 --only send --in-flight 64";

const SOAK: &str = "\
Starts a server and runs a fleet of agents through every door at once: MAP, MCP, AIRC, files, \
swarm tasks and posthaste's own methods. Agents join, leave, crash, read slowly and send truncated requests; the \
server is killed and restarted. Checked throughout: nothing acknowledged is missing or doubled, order is \
kept, refused requests leave no trace, counters agree, the database is sound, memory and handles stay flat. Exits with 6 \
and names the failed check if one does not hold. Ctrl-C ends it early, with all checks and the report. Touches no \
real mail: it works in a temporary directory, or in a new one that --data names.";

const SOAK_AFTER: &str = "\
Examples:
  posthaste-load soak --minutes 10
  posthaste-load soak --seconds 20 --agents 60 --rate 150 --kills 3 --json
  posthaste-load soak --minutes 60 --agents 1000 --kills 0 --data /srv/soak --keep";

/// A fleet that works for a while.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct SoakArgs {
    /// How long the fleet works
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) minutes: u64,
    /// The same in seconds
    #[arg(long, value_name = "N", conflicts_with = "minutes")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: Option<u64>,
    /// How many agents, at all doors together
    #[arg(long, value_name = "N", default_value_t = 300)]
    #[arg(value_parser = clap::value_parser!(u32).range(16..=20_000))]
    pub(crate) agents: u32,
    /// How much they do a second, all together
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: u32,
    /// How often the server is killed; none in the last two fifths of the time [default: 1 for each 10 seconds of the rest]
    #[arg(long, value_name = "N")]
    pub(crate) kills: Option<u32>,
    /// Seed of the random numbers; the same seed gives the same fleet
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Work in this new directory [default: a temporary one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) data: Option<PathBuf>,
    /// Leave the data directory, the mail directory and the server's log where they are
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct BenchArgs {
    /// Requests kept in flight, one round for each number
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,8,64,512")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) in_flight: Vec<u32>,
    /// How long each round lasts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
    /// End each round after this many messages, if that comes first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) messages: Option<u64>,
    /// What to measure: posthaste's own sends, or beside them those of another door
    #[arg(long, value_enum, default_value_t = BenchDoor::Office)]
    pub(crate) door: BenchDoor,
    /// Measure files in a mail directory instead, and the way from a file through a server to a file
    #[arg(long)]
    pub(crate) files: bool,
    /// With --files: threads that write into one mailbox, one round for each number
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,4,16", requires = "files")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) writers: Vec<u32>,
    /// With --files: the directory on whose disk to measure [default: that of temporary files]
    #[arg(long, value_name = "DIR", requires = "files", value_hint = ValueHint::DirPath)]
    pub(crate) r#in: Option<PathBuf>,
    /// Agents that write to one another
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) agents: u32,
    /// Measure a MAP server over WebSocket instead: the one at the address, or a server of its own
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    pub(crate) map: Option<Option<String>>,
    /// With --map: the process of the server at the address, whose processor time and memory are measured
    #[arg(long, value_name = "PID", requires = "map")]
    pub(crate) pid: Option<u32>,
    /// With --map: what to measure
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "send,turn,fanout",
        requires = "map"
    )]
    #[arg(value_parser = ["send", "forget", "turn", "fanout", "list", "idle", "idle-agents"])]
    pub(crate) only: Vec<String>,
    /// With --map and fanout: how many subscribers
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "100,1000", requires = "map")]
    pub(crate) followers: Vec<u32>,
    /// With --map and list: how long the conversation is
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "10000,1000000",
        requires = "map"
    )]
    pub(crate) turns: Vec<u64>,
    /// With --map and idle: how many connections
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "map")]
    pub(crate) idle: u32,
}

/// Which way the mail of a measurement goes in.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum BenchDoor {
    /// posthaste's own methods
    Office,
    /// The send tool of MCP, turn by turn with posthaste's own
    Mcp,
    /// Signed messages over AIRC, turn by turn with posthaste's own and MCP's
    Airc,
    /// Tasks for a swarm of built-in agents, of one hop and of three
    Swarm,
}
