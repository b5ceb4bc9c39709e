//! `posthaste-load`: load generators and their clients. They start the program `posthaste` and talk to it from outside.

mod args;
mod bench;
mod clients;
mod program;
mod soak;

use std::process::ExitCode;

use clap::Parser;
use posthaste::cli::exit::{Exit, Failure};
use posthaste::cli::output::Output;

use self::args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let output = Output::new(args.json, args.color);
    let done = program::find(args.bin.as_deref()).and_then(|()| match &args.command {
        Command::Bench(given) => bench::run(given, &output),
        Command::Soak(given) => soak::run(given, &output),
    });
    match done {
        Ok(()) => Exit::Ok.into(),
        Err(failure) if failure.is_broken_pipe() => Exit::Ok.into(),
        Err(failure) if failure.is_plain_interrupt() => failure.exit.into(),
        Err(failure) => {
            output.complain(&failure);
            failure.exit.into()
        }
    }
}

/// The runtime of the clients: half of the cores, because the server under test needs the others.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads((cores / 2).max(1)).enable_all().build()?)
}
