//! The commands: from what was typed to an exit code.

mod airc;
pub mod args;
mod attachments;
mod backup;
mod bench;
mod carried_tokens;
mod client;
mod complete;
mod config;
mod connect;
mod demo;
mod desk;
mod doctor;
mod drive;
pub mod exit;
mod export;
mod files;
mod guard;
mod help;
pub mod human;
mod human_body;
mod in_place;
mod inbox;
pub mod mail_args;
mod map;
mod mcp;
pub mod output;
mod people;
mod read;
mod reserve;
mod restore;
mod send;
mod serve;
mod signals;
mod soak;
mod status;
mod tail;
mod thread;
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
        Command::Mcp(given) => mcp::run(&args.global, given),
        Command::Connect(given) => connect::run(&args.global, given, output),
        Command::Guard { command } => guard::run(&args.global, command, output),
        Command::Airc(given) => airc::run(&args.global, given, output),
        Command::Token { command } => token::run(&args.global, command, output),
        Command::Doctor(realm) => doctor::run(&args.global, realm, output),
        Command::Backup(backup) => backup::back_up(&args.global, backup, output),
        Command::Restore(backup) => restore::restore(&args.global, backup, output),
        Command::Status(status) => status::run(&args.global, status, output),
        Command::Demo(given) => demo::run(&args.global, given, output),
        Command::Bench(given) => bench::run(given, output),
        Command::Soak(given) => soak::run(&args.global, given, output),
        Command::Send(given) => match &given.mail_dir.mail_dir {
            Some(dir) => files::send(dir, given, output),
            None => send::send(&args.global, given, output),
        },
        Command::Inbox(given) => match &given.mail_dir.mail_dir {
            Some(dir) => files::inbox(dir, given, output),
            None => inbox::run(&args.global, given, output),
        },
        Command::Read(given) => match &given.mail_dir.mail_dir {
            Some(dir) => files::read(dir, given, output),
            None => read::read(&args.global, given, output),
        },
        Command::Ack(given) => read::ack(&args.global, given, output),
        Command::Reply(given) => send::reply(&args.global, given, output),
        Command::Thread(given) => thread::thread(&args.global, given, output),
        Command::Search(given) => thread::search(&args.global, given, output),
        Command::Tail(given) => tail::run(&args.global, given, output),
        Command::Agents(given) => people::agents(&args.global, given, output),
        Command::Conversations(given) => thread::conversations(&args.global, given, output),
        Command::Reserve(given) => reserve::reserve(&args.global, given, output),
        Command::Release(given) => reserve::release(&args.global, given, output),
        Command::Reservations(given) => reserve::reservations(&args.global, given, output),
        Command::Contacts(given) => people::contacts(&args.global, given, output),
        Command::Whoami(given) => people::whoami(&args.global, given, output),
        Command::Export(given) => export::export(&args.global, given, output),
        Command::Import(given) => export::import(&args.global, given, output),
        Command::Archive(given) => files::archive(given, output),
        Command::Nudge(given) => signals::nudge(&args.global, given, output),
        Command::Hooks(given) => signals::hooks(&args.global, given, output),
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
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        // Each realm in use has a writer's thread, and reading has threads of its own: the doors get half the cores.
        // More would mostly wake each other (docs/BENCH.md).
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        builder.worker_threads((cores / 2).max(1));
    }
    builder.enable_all().build()
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
