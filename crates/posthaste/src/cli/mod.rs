//! The commands: from the command line to an exit code.

mod agents;
mod airc;
mod api;
pub mod args;
mod attachments;
mod backup;
mod body_input;
pub(crate) mod client;
mod client_tokens;
mod complete;
mod config;
mod connect;
mod context;
mod demo;
mod doctor;
pub mod exit;
mod export;
mod files;
mod guard;
mod help;
mod imported_tokens;
mod inbox;
mod map;
mod mcp;
pub mod output;
mod projects;
mod read;
mod realm_access;
mod reconnect;
mod replace_file;
mod reserve;
mod restore;
mod send;
mod serve;
mod signals;
mod status;
mod table;
mod tail;
mod target;
mod thread;
mod times;
mod token;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{ColorChoice, CommandFactory, FromArgMatches};

use self::args::{Args, Command, GuardCommand, InboxArgs, NudgeArgs, ReadArgs, SendArgs, SignalArgs};
use self::exit::{Exit, Failure};
use self::output::{ColorWhen, Output};
use self::target::Target;

/// Runs the command that was typed. Errors are printed on standard error.
pub fn run(typed: impl IntoIterator<Item = OsString>) -> ExitCode {
    let typed: Vec<OsString> = typed.into_iter().collect();
    let args = match parse(&typed) {
        Ok(args) => args,
        Err(error) => {
            // Help and version come this way too.
            if error.use_stderr() && typed.iter().any(|word| word == "--json") {
                Output::new(true, ColorWhen::Never).complain(&Failure::new(Exit::Usage, usage_error(&error)));
                return Exit::Usage.into();
            }
            // If it cannot be printed, the exit code still tells.
            let _ = error.print();
            return u8::try_from(error.exit_code()).map_or(Exit::Usage.into(), ExitCode::from);
        }
    };
    let output = Output::new(args.global.json, args.global.color);
    match dispatch(&args, &output) {
        Ok(()) => Exit::Ok.into(),
        Err(failure) if failure.is_broken_pipe() => Exit::Ok.into(),
        // The user pressed Ctrl-C and needs no message.
        Err(failure) if failure.is_plain_interrupt() => failure.exit.into(),
        Err(failure) => {
            output.complain(&failure);
            failure.exit.into()
        }
    }
}

/// What is wrong with the command line, without the general advice that follows.
fn usage_error(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.split("\n\nUsage:").next().unwrap_or_default();
    let text = text.split("\n\nFor more information").next().unwrap_or_default();
    text.strip_prefix("error: ").unwrap_or(text).trim().to_owned()
}

fn dispatch(args: &Args, output: &Output) -> Result<(), Failure> {
    must_be_local(args)?;
    match &args.command {
        Command::Config(given) => config::run(&args.global, given, output),
        Command::Api { command } => api::run(*command, output),
        Command::Completions { shell } => Ok(output.bytes(&complete::completions(*shell))?),
        Command::Man { out: Some(dir), .. } => complete::write_pages(dir, output),
        Command::Man { command, out: None } => Ok(output.bytes(&complete::man(command)?)?),
        Command::Version => complete::version(output),
        Command::Serve(flags) => serve::run(&args.global, flags, output),
        Command::Map(realm) => map::run(&args.global, realm),
        Command::Mcp(given) => mcp::run(&args.global, given),
        Command::Connect(given) => connect::run(&args.global, given, output),
        Command::Projects { command } => projects::run(&args.global, command, output),
        Command::Realms { command } => projects::realms(&args.global, command, output),
        Command::Guard { command } => guard::run(&args.global, command, output),
        Command::Context { command } => context::run(&args.global, command, output),
        Command::Airc(given) => airc::run(&args.global, given, output),
        Command::Token { command } => token::run(&args.global, command, output),
        Command::Doctor(realm) => doctor::run(&args.global, realm, output),
        Command::Backup(backup) => backup::back_up(&args.global, backup, output),
        Command::Restore(backup) => restore::restore(&args.global, backup, output),
        Command::Status(status) => status::run(&args.global, status, output),
        Command::Demo(given) => demo::run(&args.global, given, output),
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
        Command::Agents(given) => agents::agents(&args.global, given, output),
        Command::Agent { command } => agents::agent_command(&args.global, command, output),
        Command::Register(given) => agents::register(&args.global, given, output),
        Command::Conversations(given) => thread::conversations(&args.global, given, output),
        Command::Reserve(given) => reserve::reserve(&args.global, given, output),
        Command::Release(given) => reserve::release(&args.global, given, output),
        Command::Reservations(given) => reserve::reservations(&args.global, given, output),
        Command::Contacts(given) => agents::contacts(&args.global, given, output),
        Command::Whoami(given) => agents::whoami(&args.global, given, output),
        Command::Export(given) => export::export(&args.global, given, output),
        Command::Import(given) => export::import(&args.global, given, output),
        Command::Archive(given) => files::archive(given, output),
        Command::Nudge(given) => signals::nudge(&args.global, given, output),
        Command::Hooks(given) => signals::hooks(&args.global, given, output),
    }
}

/// Refuses `--url` and `--context` for commands that cannot work at another server. Commands that start a server ignore a
/// server that the environment or a chosen context names.
fn must_be_local(args: &Args) -> Result<(), Failure> {
    let here = "name a data directory with --data, or run it on the server's machine";
    let by_flag = args.global.url.is_some() || args.global.context.is_some();
    let (command, reason) = match &args.command {
        Command::Serve(_) if by_flag => ("serve", "it starts a server; --listen says where"),
        Command::Demo(_) if by_flag => ("demo", "it fills a realm of the data directory"),
        Command::Archive(_) if by_flag => ("archive", "it works on a mail directory"),
        Command::Guard { command: GuardCommand::Uninstall { .. } } if by_flag => {
            ("guard uninstall", "it takes hooks out of a repository")
        }
        Command::Doctor(_) => ("doctor", here),
        Command::Restore(_) => ("restore", here),
        Command::Import(_) => ("import", here),
        Command::Send(SendArgs { mail_dir, .. })
        | Command::Inbox(InboxArgs { mail_dir, .. })
        | Command::Read(ReadArgs { mail_dir, .. })
            if by_flag && mail_dir.mail_dir.is_some() =>
        {
            ("… --mail-dir", "leave one of the two out")
        }
        Command::Nudge(NudgeArgs { place: SignalArgs { mail_dir: Some(_), .. }, .. })
        | Command::Hooks(SignalArgs { mail_dir: Some(_), .. })
            if by_flag =>
        {
            ("… --mail-dir", "leave one of the two out")
        }
        _ => return Ok(()),
    };
    let target = Target::of(&args.global)?;
    // A data directory that is named wins over the environment.
    if !by_flag && args.global.data.is_some() {
        return Ok(());
    }
    target.must_be_local(command, reason)
}

/// Runs long work that Ctrl-C stops gracefully: the flag is set, and the work cleans up and returns.
fn interruptible<T: Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    runtime()?.block_on(async move {
        let mut working = tokio::task::spawn_blocking(move || work(&flag));
        tokio::select! {
            done = &mut working => done?,
            _ = tokio::signal::ctrl_c() => {
                stop.store(true, Ordering::Relaxed);
                working.await?
            }
        }
    })
}

/// The runtime of every command.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        // Each realm in use has a writer's thread, and readers have threads of their own: the doors get half the cores.
        // More threads mostly wake each other (docs/BENCH.md).
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        builder.worker_threads((cores / 2).max(1));
    }
    builder.enable_all().build()
}

// `--color` also applies to clap's own help and errors, which are printed before it is parsed.
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
