//! The commands: from what was typed to an exit code.

pub mod args;
mod backup;
mod bench;
mod client;
mod complete;
mod config;
mod demo;
mod desk;
mod doctor;
pub mod exit;
mod help;
pub mod human;
mod map;
pub mod output;
mod serve;
mod status;
mod token;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{ColorChoice, CommandFactory, FromArgMatches};

use self::args::{Args, Command};
use self::exit::{Exit, Failure};
use self::output::Output;

/// Runs the command that was typed. Says on standard error what went wrong, if something did.
pub fn run(typed: impl IntoIterator<Item = OsString>) -> ExitCode {
    let typed: Vec<OsString> = typed.into_iter().collect();
    let args = match parse(&typed) {
        Ok(args) => args,
        Err(error) => {
            // Help and version come this way too; nobody is left to tell if they cannot be printed.
            let _ = error.print();
            return u8::try_from(error.exit_code()).map_or(Exit::Usage.into(), ExitCode::from);
        }
    };
    let output = Output::new(args.global.json, args.global.color);
    match dispatch(&args, &output) {
        Ok(()) => Exit::Ok.into(),
        Err(failure) if failure.is_broken_pipe() => Exit::Ok.into(),
        Err(failure) => {
            output.complain(&failure);
            failure.exit.into()
        }
    }
}

fn dispatch(args: &Args, output: &Output) -> Result<(), Failure> {
    match &args.command {
        Command::Config(office) => config::run(&args.global, office, output),
        Command::Completions { shell } => Ok(output.bytes(&complete::completions(*shell))?),
        Command::Man { command } => Ok(output.bytes(&complete::man(command)?)?),
        Command::Serve(office) => serve::run(&args.global, office, output),
        Command::Map(realm) => map::run(&args.global, realm),
        Command::Token { command } => token::run(&args.global, command, output),
        Command::Doctor(realm) => doctor::run(&args.global, realm, output),
        Command::Backup(backup) => backup::back_up(&args.global, backup, output),
        Command::Restore(backup) => backup::restore(&args.global, backup, output),
        Command::Status(status) => status::run(&args.global, status, output),
        Command::Demo(given) => demo::run(&args.global, given, output),
        Command::Bench(given) => bench::run(given, output),
    }
}

/// Runs long work such that Ctrl-C ends it in good order: the work is told, cleans up and gives its last word.
fn interruptible<T: Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    runtime()?.block_on(async move {
        let mut working = tokio::task::spawn_blocking(move || work(&told));
        tokio::select! {
            done = &mut working => done?,
            _ = tokio::signal::ctrl_c() => {
                stop.store(true, Ordering::Relaxed);
                working.await?
            }
        }
    })
}

/// The runtime that every command with an office in it runs on.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

// `--color` must hold for clap's own help and complaints too, which are printed before it is parsed.
fn parse(typed: &[OsString]) -> Result<Args, clap::Error> {
    let mut words = typed.iter().filter_map(|word| word.to_str());
    let mut color = ColorChoice::Auto;
    while let Some(word) = words.next() {
        let when = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('='),
            None => continue,
        };
        color = match when {
            Some("always") => ColorChoice::Always,
            Some("never") => ColorChoice::Never,
            _ => color,
        };
    }
    let matches = Args::command().color(color).try_get_matches_from(typed)?;
    Args::from_arg_matches(&matches)
}
