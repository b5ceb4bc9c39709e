//! `posthaste doctor`: checks a data directory. Changes nothing without `--restore` or `--accept-loss`.

use std::fs;
use std::path::Path;

use posthaste_engine::nouns::{Millis, RealmName};
use posthaste_engine::store::{VERSION, accept_loss, check_integrity, check_position, open_reader};
use posthaste_engine::{DirectoryLock, Fault, database_path, list_realms, stamp};
use serde::Serialize;

use super::args::{DoctorArgs, GlobalArgs};
use super::exit::{Exit, Failure};
use super::output::{Output, Style, Table, text_of};
use crate::config::Config;
use posthaste_files::MailDir;
use posthaste_host::keys::AdminKey;
use posthaste_host::observe::health::{MIN_FREE_BYTES, free_bytes};
use posthaste_host::units::show_bytes;

/// A clock may be this far behind the last event before it is called wrong.
const CLOCK_SLACK: Millis = 60_000;

/// Lines of SQLite's check that are shown; a damaged file can have thousands.
const MAX_PROBLEMS: usize = 10;

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    #[serde(rename = "ok")]
    Good,
    Note,
    #[serde(rename = "problem")]
    Bad,
}

/// The result of one check, as `--json` prints it.
#[derive(Serialize)]
struct Finding {
    #[serde(rename = "check")]
    what: String,
    verdict: Verdict,
    says: String,
}

pub(super) fn run(global: &GlobalArgs, args: &DoctorArgs, output: &Output) -> Result<(), Failure> {
    let config = Config::load(global, &args.office(), &|name| std::env::var_os(name))?;
    let data = &config.data.value;
    let mut findings = look_at_directory(data);
    let only = args.realm.realm.as_ref().map(|_| config.realm.value.clone());
    match list_realms(data) {
        Ok(mut realms) => {
            // A realm whose file is missing is known by the position file beside it.
            realms.extend(positions_in(data).into_iter().filter(|name| !database_path(data, name).exists()));
            let chosen: Vec<RealmName> = match only {
                Some(only) if !realms.contains(&only) => {
                    return Err(Failure::new(
                        Exit::Usage,
                        format!("there is no realm {only} in {}", data.display()),
                    ));
                }
                Some(only) => vec![only],
                None => realms,
            };
            for name in chosen {
                look_at_database(data, &name, args.accept_loss, output, &mut findings);
            }
        }
        Err(fault) => findings.push(bad("realms", fault)),
    }
    if let Some(dir) = &config.mail_dir.value {
        look_at_mail(dir, args.restore, &mut findings);
    } else if args.restore {
        return Err(Failure::new(Exit::Usage, "there is no mail directory to restore in: give --mail-dir"));
    }
    show(&findings, output)?;
    match findings.iter().filter(|finding| finding.verdict == Verdict::Bad).count() {
        0 => Ok(()),
        1 => Err(Failure::new(Exit::Unhealthy, "1 problem")),
        many => Err(Failure::new(Exit::Unhealthy, format!("{many} problems"))),
    }
}

fn look_at_directory(data: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !data.exists() {
        findings.push(note("data directory", format!("{} is not there yet", data.display())));
        return findings;
    }
    findings.push(permissions("data directory", data, 0o022, "others can change it"));
    let realms = posthaste_engine::realms_in(data);
    if realms.exists() {
        findings.push(permissions("realms", &realms, 0o077, "others can read the mail"));
    }
    let attachments = data.join("attachments");
    if attachments.exists() {
        findings.push(permissions("attachments", &attachments, 0o077, "others can read them"));
    }
    findings.push(look_at_admin_key(data));
    // The lock is taken and released at once; a running server is worth a note, and is no problem.
    findings.push(match DirectoryLock::take(data) {
        Ok(_) => good("lock", "free"),
        Err(Fault::Locked { holder, .. }) => note("lock", format!("held by process {holder}")),
        Err(fault) => bad("lock", fault),
    });
    findings.push(match free_bytes(data) {
        Some(free) if free < MIN_FREE_BYTES => bad(
            "disk space",
            format!(
                "only {} free where {} lies; free some space, then restart the server",
                show_bytes(free),
                data.display()
            ),
        ),
        Some(free) => good("disk space", format!("{} free", show_bytes(free))),
        None => note("disk space", "the system does not say"),
    });
    findings
}

/// The admin key must be there to be read, by its owner alone.
fn look_at_admin_key(data: &Path) -> Finding {
    let path = AdminKey::path(data);
    match AdminKey::look(data) {
        Ok(Some(_)) => permissions("admin.token", &path, 0o077, "others can read it"),
        Ok(None) => note("admin.token", "made at the first start"),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            bad("admin.token", format!("{error}; run this as the user that the server runs as"))
        }
        Err(error) => bad("admin.token", error),
    }
}

/// How a damaged realm is brought back.
fn restore_advice(data: &Path, realm: &RealmName) -> String {
    format!(
        "stop the server and restore a backup: posthaste --data {} restore FILE --realm {realm} --force",
        data.display()
    )
}

/// The realms with a position file.
fn positions_in(data: &Path) -> Vec<RealmName> {
    let Ok(entries) = fs::read_dir(posthaste_engine::realms_in(data)) else { return Vec::new() };
    let stem = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_suffix(".db.pos").map(str::to_owned);
    entries.filter_map(Result::ok).filter_map(stem).filter_map(|name| RealmName::new(name).ok()).collect()
}

/// Accepts what is left of a database. The server must be stopped.
fn accept_loss_of(data: &Path, what: &str, path: &Path, fault: &Fault) -> Finding {
    let accepted = DirectoryLock::take(data)
        .map_err(|fault| fault.to_string())
        .and_then(|_lock| accept_loss(path).map_err(|error| error.to_string()));
    match accepted {
        Ok(Some(kept)) => note(what, format!("{fault}; accepted, the log is kept as {}", kept.display())),
        Ok(None) => note(what, format!("{fault}; accepted")),
        Err(why) => bad(what, format!("{fault}; not accepted: {why}")),
    }
}

fn look_at_database(
    data: &Path,
    name: &RealmName,
    accept: bool,
    output: &Output,
    findings: &mut Vec<Finding>,
) {
    let path = database_path(data, name);
    let what = |part: &str| format!("{name}: {part}");
    findings.push(permissions(&what("file"), &path, 0o022, "others can change it"));
    // Files that are being written can be checked only by the server that writes them.
    let running = matches!(DirectoryLock::take(data), Err(Fault::Locked { .. }));
    findings.push(match (check_position(&path), accept) {
        _ if running => {
            note(&what("position"), "the running server watches it; `posthaste status` shows its health")
        }
        (Ok(()), _) => good(&what("position"), "everything that is known to have been acknowledged is there"),
        (Err(fault), false) => bad(&what("position"), fault),
        (Err(fault), true) => accept_loss_of(data, &what("position"), &path, &fault),
    });
    let database = match open_reader(&path) {
        Ok(database) => database,
        Err(fault) => {
            let says = format!("{fault}; {}", restore_advice(data, name));
            return findings.push(bad(&what("database"), says));
        }
    };
    let version = database.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0));
    findings.push(match version {
        Ok(version) if version == VERSION => good(&what("version"), version),
        Ok(version) => note(&what("version"), format!("{version}; the next start brings it to {VERSION}")),
        Err(error) => bad(&what("version"), error),
    });
    let bar = output.progress("checking", 0);
    let integrity = check_integrity(&database);
    bar.finish_and_clear();
    findings.push(match integrity {
        Ok(problems) if problems.is_empty() => good(&what("integrity"), "ok"),
        Ok(problems) => {
            let shown = problems.iter().take(MAX_PROBLEMS).map(String::as_str).collect::<Vec<_>>().join("; ");
            let shown = shown.replace('\n', " ");
            bad(&what("integrity"), format!("{shown}; {}", restore_advice(data, name)))
        }
        Err(fault) => bad(&what("integrity"), format!("{fault}; {}", restore_advice(data, name))),
    });
    let last =
        database.query_row("SELECT coalesce(max(seq), 0), coalesce(max(at), 0) FROM events", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Millis>(1)?))
        });
    findings.push(match last {
        Ok((_, at)) if at > stamp::now() + CLOCK_SLACK => bad(
            &what("clock"),
            format!(
                "the last event is from {}, later than now; set the clock of this machine",
                posthaste_wire::time::to_rfc3339(at)
            ),
        ),
        Ok((events, _)) => good(&what("clock"), format!("not behind the last of {events} events")),
        Err(error) => bad(&what("clock"), error),
    });
}

/// Checks a mail directory for files that are no messages, and for messages that were never delivered.
fn look_at_mail(dir: &Path, restore: bool, findings: &mut Vec<Finding>) {
    if !dir.exists() {
        return findings.push(note("mail directory", format!("{} is not there yet", dir.display())));
    }
    let mail = match MailDir::open(dir) {
        Ok(mail) => mail,
        Err(error) => return findings.push(bad("mail directory", error)),
    };
    let agents = match mail.agents() {
        Ok(agents) => agents,
        Err(error) => return findings.push(bad("mail directory", error)),
    };
    findings.push(good("mail directory", format!("{}: {} mailboxes", dir.display(), agents.len())));
    for agent in &agents {
        match mail.inbox(agent) {
            Ok(inbox) => findings.extend(inbox.skipped.iter().map(|(file, odd)| {
                note(&format!("mailbox {agent}"), format!("{file} is passed over: {odd}"))
            })),
            Err(error) => findings.push(bad(&format!("mailbox {agent}"), error)),
        }
    }
    let orphans = match mail.orphans() {
        Ok(orphans) => orphans,
        Err(error) => return findings.push(bad("undelivered", error)),
    };
    for orphan in orphans {
        let what = format!("mailbox {}", orphan.agent);
        let about = format!("{:?} from {} as {}", orphan.subject, orphan.from, orphan.file);
        findings.push(match restore {
            false => {
                bad(&what, format!("a whole message was never delivered: {about}; --restore delivers it"))
            }
            true => match mail.restore(&orphan) {
                Ok(true) => good(&what, format!("restored {about}")),
                Ok(false) => note(&what, format!("another process delivered {about}")),
                Err(error) => bad(&what, error),
            },
        });
    }
}

#[cfg(unix)]
fn permissions(what: &str, path: &Path, unwanted: u32, problem: &str) -> Finding {
    use std::os::unix::fs::PermissionsExt;
    match fs::metadata(path) {
        Ok(about) if about.permissions().mode() & unwanted == 0 => good(what, path.display()),
        Ok(about) => bad(
            what,
            format!(
                "{path} has mode {:o}: {problem}; chmod go-{} {path}",
                about.permissions().mode() & 0o777,
                if unwanted & 0o044 == 0 { "w" } else { "rwx" },
                path = path.display(),
            ),
        ),
        Err(error) => bad(what, format!("{}: {error}", path.display())),
    }
}

#[cfg(not(unix))]
fn permissions(what: &str, path: &Path, _: u32, _: &str) -> Finding {
    match fs::metadata(path) {
        Ok(_) => good(what, path.display()),
        Err(error) => bad(what, format!("{}: {error}", path.display())),
    }
}

fn show(findings: &[Finding], output: &Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json(&findings);
    }
    let mut table = Table::new(["CHECK", "VERDICT", "SAYS"]);
    for finding in findings {
        let style = match finding.verdict {
            Verdict::Good => Style::Plain,
            Verdict::Note => Style::Dim,
            Verdict::Bad => Style::Bad,
        };
        table.row([finding.what.clone(), text_of(finding.verdict), finding.says.clone()], style);
    }
    Ok(output.table(&table)?)
}

fn good(what: &str, says: impl ToString) -> Finding {
    Finding { what: what.to_owned(), verdict: Verdict::Good, says: says.to_string() }
}

fn note(what: &str, says: impl ToString) -> Finding {
    Finding { what: what.to_owned(), verdict: Verdict::Note, says: says.to_string() }
}

fn bad(what: &str, says: impl ToString) -> Finding {
    Finding { what: what.to_owned(), verdict: Verdict::Bad, says: says.to_string() }
}
