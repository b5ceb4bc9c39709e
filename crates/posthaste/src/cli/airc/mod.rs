//! `posthaste airc`: an AIRC client for people and scripts. It keeps its keys and known reservations in the data directory.

pub(crate) mod args;
mod cache;
mod git;
mod inbox;
mod keyring;
mod registry;

use std::io::Read as _;
use std::time::Duration;

use posthaste_engine::stamp;
use posthaste_wire::airc::{
    ConsentRequest, ContentPayload, Envelope, Handle, HeartbeatRequest, MailboxPayload, ReservationPayload,
    Scope, Target, check_path,
};
use posthaste_wire::signing::PublicKey;
use posthaste_wire::time::to_rfc3339;
use serde::Serialize;
use serde_json::{Map, Value};

use self::args::{
    AircArgs, AircCommand, ConsentAction, ConsentArgs, RegisterArgs, ReleaseArgs, ReserveArgs, SendArgs,
    Tier, VerifyArgs,
};
use self::cache::{Cache, Entry};
use self::keyring::Keyring;
use self::registry::Registry;
use super::args::{GlobalArgs, OfficeArgs};
use super::exit::{Exit, Failure};
use super::output::{Output, Style, Table};
use super::runtime;
use super::target::{Source, Target as Meant};
use crate::config::Config;

pub(super) fn run(global: &GlobalArgs, args: &AircArgs, output: &Output) -> Result<(), Failure> {
    let config = Config::load(global, &OfficeArgs::default(), &|name| std::env::var_os(name))?;
    runtime()?.block_on(async {
        if let AircCommand::Register(given) = &args.command {
            return register(global, &config, args, given, output).await;
        }
        let keyring = Keyring::find(&config.data.value, args.identity.as_deref())?;
        let url = registry_url(global, &config, args, Some(&keyring))?;
        let key = keyring.key()?;
        let mut registry = Registry::new(&url, keyring, key)?;
        match &args.command {
            AircCommand::Register(_) => Ok(()),
            AircCommand::Send(given) => send(&mut registry, given, output).await,
            AircCommand::Inbox(given) => inbox::run(&mut registry, given, output).await,
            AircCommand::Consent(given) => consent(&mut registry, given, output).await,
            AircCommand::Reserve(given) => reserve(&mut registry, given, output).await,
            AircCommand::Release(given) => release(&mut registry, given, output).await,
            AircCommand::Verify(given) => verify(&mut registry, given, output).await,
        }
    })
}

/// The registry that was named, else the one the identity is registered at, else the server that other commands talk to.
fn registry_url(
    global: &GlobalArgs,
    config: &Config,
    args: &AircArgs,
    keyring: Option<&Keyring>,
) -> Result<String, Failure> {
    let by_flag = global.url.is_some() || global.context.is_some();
    let variable = || std::env::var("POSTHASTE_REGISTRY").ok().filter(|url| !url.is_empty() && !by_flag);
    if let Some(url) = args.registry.clone().or_else(variable) {
        return Ok(url);
    }
    let target = Meant::of(global)?;
    let known = keyring.map(|keyring| keyring.session().registry).filter(|url| !url.is_empty());
    // The identity's own registry counts before a context that was chosen once for all commands.
    let is_named = by_flag || matches!(target.url_from, Source::Env(_));
    let server = || Ok::<_, Failure>(target.server(&config.data.value)?.map(|server| server.url));
    let found = match (is_named, known) {
        (false, Some(known)) => Some(known),
        _ => server()?,
    };
    found.ok_or_else(|| {
        let text = "no server runs on the data directory; start one with `posthaste serve`, or name a registry with --url";
        Failure::new(Exit::Unreachable, text)
    })
}

async fn register(
    global: &GlobalArgs,
    config: &Config,
    args: &AircArgs,
    given: &RegisterArgs,
    output: &Output,
) -> Result<(), Failure> {
    let handle = Handle::parse_new(&given.handle).map_err(|error| Failure::new(Exit::Usage, error))?;
    let keyring = Keyring::of(&config.data.value, handle);
    let url = registry_url(global, config, args, None)?;
    let (key, recovery) = keyring.make()?;
    let mut registry = Registry::new(&url, keyring, key)?;
    let identity = registry.register(given.name.as_deref(), &recovery).await?;
    if let Some(tier) = given.privacy {
        let privacy = match tier {
            Tier::Public => "public",
            Tier::Contacts => "contacts",
            Tier::Invisible => "invisible",
        };
        let heartbeat = HeartbeatRequest { status: "available".into(), privacy: privacy.into() };
        registry.post("/presence", &heartbeat).await?.done()?;
    }
    if output.is_json() {
        return output.json(&identity);
    }
    let key = identity["public_key"].as_str().unwrap_or_default();
    Ok(output.line(&format!("{} is registered at {url} with the key {key}", registry.handle()))?)
}

async fn send(registry: &mut Registry, given: &SendArgs, output: &Output) -> Result<(), Failure> {
    confirm_public(&given.to, given.yes)?;
    let payload = match &given.payload {
        Some(text) => serde_json::from_str::<Map<String, Value>>(text)
            .map_err(|error| Failure::new(Exit::Usage, format!("--payload: {error}")))?
            .into(),
        None => {
            let text = match &given.text {
                Some(text) => text.clone(),
                None => read_input()?,
            };
            payload_of(given, text)?
        }
    };
    let answer = registry.send(&given.to, payload, given.thread.clone()).await?.done()?;
    if output.is_json() {
        return output.json(&answer);
    }
    let count = answer["delivered"].as_u64().unwrap_or(0);
    Ok(output
        .line(&format!("{} is with {count} recipient(s)", answer["messageId"].as_str().unwrap_or("it")))?)
}

/// The payload: plain text, or a mailbox message if an option needs one.
fn payload_of(given: &SendArgs, text: String) -> Result<Value, Failure> {
    let mail = given.subject.is_some() || given.ack || given.expires.is_some() || given.priority != "normal";
    if !mail {
        let payload = ContentPayload { kind: "text".into(), content: text.into() };
        return Ok(serde_json::to_value(payload)?);
    }
    let first = text.lines().next().unwrap_or_default().chars().take(80).collect::<String>();
    let payload = MailboxPayload {
        kind: MailboxPayload::KIND.into(),
        message_id: format!("mail-{}", &stamp::secret()[..16]),
        subject: given.subject.clone().unwrap_or(first),
        body_md: text,
        ack_required: given.ack,
        priority: given.priority.clone().into(),
        foreign_kind: None,
        expires_ts: given.expires.map(|span| to_rfc3339(from_now(span))),
        thread_id: given.thread.clone(),
    };
    Ok(serde_json::to_value(payload)?)
}

/// The list of requests as JSON.
#[derive(Serialize)]
struct PendingList<'a> {
    pending: &'a Value,
    next: Option<&'a str>,
}

async fn consent(registry: &mut Registry, given: &ConsentArgs, output: &Output) -> Result<(), Failure> {
    let action = match given.action {
        ConsentAction::List => {
            let answer = registry.get("/consent").await?.done()?;
            if output.is_json() {
                return output.json(&PendingList { pending: &answer["pending"], next: None });
            }
            let mut table = Table::new(["FROM", "SINCE", "MESSAGE"]);
            for one in answer["pending"].as_array().into_iter().flatten() {
                let cell = |name: &str| one[name].as_str().unwrap_or("-").to_owned();
                table.row([cell("from"), cell("created_at"), cell("message")], Style::Plain);
            }
            return Ok(output.table(&table)?);
        }
        ConsentAction::Request => "request",
        ConsentAction::Accept => "accept",
        ConsentAction::Block => "block",
        ConsentAction::Unblock => "unblock",
    };
    let handle =
        given.handle.as_deref().ok_or_else(|| Failure::new(Exit::Usage, "with whom? name a handle"))?;
    let body =
        ConsentRequest { action: action.into(), handle: handle.to_owned(), message: given.message.clone() };
    let answer = registry.post("/consent", &body).await?.done()?;
    if output.is_json() {
        return output.json(&answer);
    }
    Ok(output.line(&format!("{handle}: {}", answer["state"].as_str().unwrap_or("none")))?)
}

async fn reserve(registry: &mut Registry, given: &ReserveArgs, output: &Output) -> Result<(), Failure> {
    let mut cache = Cache::load(registry);
    for warning in cache.sync(registry).await? {
        warn(&warning);
    }
    if let Some(id) = &given.renew {
        return renew(registry, &mut cache, id, given, output).await;
    }
    if given.paths.is_empty() {
        return show_reservations(&cache, output);
    }
    let remotes = git::remotes();
    let scope = scope_of(given, &remotes)?;
    for path in &given.paths {
        check_path(path).map_err(|why| Failure::new(Exit::Usage, format!("{path}: {why}")))?;
    }
    if let Some(doubt) = git::doubt(&scope, &remotes) {
        warn(&doubt);
    }
    let overlaps =
        if given.shared { Vec::new() } else { cache.overlaps(registry.handle(), &scope, &given.paths) };
    for held in &overlaps {
        let why = held.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        warn(&format!("{} holds {} until {}{why}", held.owner, held.paths.join(", "), held.expires_ts));
    }
    if given.check {
        if output.is_json() {
            output.json(&overlaps)?;
        }
        return match overlaps.len() {
            0 => Ok(()),
            n => Err(Failure::new(
                Exit::Unhealthy,
                format!("{n} reservation(s) overlap; ask their owners first"),
            )),
        };
    }
    confirm_public(&given.to, given.yes)?;
    let (id, now) = (format!("rsv-{}", &stamp::secret()[..16]), stamp::now());
    let expires = from_now(given.ttl);
    let payload = ReservationPayload {
        scope: Some(scope.as_str().to_owned()),
        paths: Some(given.paths.clone()),
        exclusive: Some(!given.shared),
        ttl_seconds: Some(given.ttl.as_secs().max(1)),
        issued_ts: Some(to_rfc3339(now)),
        expires_ts: Some(to_rfc3339(expires)),
        reason: given.reason.clone(),
        thread_id: given.thread.clone(),
        ..reservation(&id, "active")
    };
    let answer = announce(registry, &given.to, payload).await?;
    for conflict in answer["conflicts"].as_array().into_iter().flatten() {
        let text = |name: &str| conflict[name].as_str().unwrap_or("?").to_owned();
        warn(&format!(
            "overlaps with {}'s {} until {}",
            text("owner"),
            text("reservation_id"),
            text("expires_ts")
        ));
    }
    cache.keep_own(Entry {
        reservation_id: id.clone(),
        owner: registry.handle().to_owned(),
        scope: scope.as_str().to_owned(),
        paths: given.paths.clone(),
        expires_ts: to_rfc3339(expires),
        last_seen: to_rfc3339(now),
        exclusive: !given.shared,
        reason: given.reason.clone(),
        status: "active".to_owned(),
    });
    cache.save(registry)?;
    if output.is_json() {
        return output.json(&answer);
    }
    Ok(output.line(&id)?)
}

async fn renew(
    registry: &mut Registry,
    cache: &mut Cache,
    id: &str,
    given: &ReserveArgs,
    output: &Output,
) -> Result<(), Failure> {
    let expires = to_rfc3339(from_now(given.ttl));
    let payload = ReservationPayload {
        ttl_seconds: Some(given.ttl.as_secs().max(1)),
        expires_ts: Some(expires.clone()),
        ..reservation(id, "renewed")
    };
    let answer = announce(registry, &given.to, payload).await?;
    let me = registry.handle().to_owned();
    for entry in cache.reservations.iter_mut().filter(|entry| entry.owner == me && entry.reservation_id == id)
    {
        entry.expires_ts.clone_from(&expires);
        entry.status = "renewed".to_owned();
    }
    cache.save(registry)?;
    if output.is_json() {
        return output.json(&answer);
    }
    Ok(output.line(&format!("{id} lasts until {expires}"))?)
}

/// The released reservations as JSON.
#[derive(Serialize)]
struct ReleasedList<'a> {
    released: &'a [String],
}

async fn release(registry: &mut Registry, given: &ReleaseArgs, output: &Output) -> Result<(), Failure> {
    let mut cache = Cache::load(registry);
    let (me, now) = (registry.handle().to_owned(), stamp::now());
    let ids: Vec<String> = match given.ids.is_empty() {
        false => given.ids.clone(),
        true => {
            let mine = cache.reservations.iter().filter(|entry| entry.owner == me && entry.is_live(now));
            mine.map(|entry| entry.reservation_id.clone()).collect()
        }
    };
    for id in &ids {
        let payload =
            ReservationPayload { released_ts: Some(to_rfc3339(stamp::now())), ..reservation(id, "released") };
        announce(registry, "@contacts", payload).await?;
        for entry in
            cache.reservations.iter_mut().filter(|entry| entry.owner == me && entry.reservation_id == *id)
        {
            entry.status = "released".to_owned();
        }
    }
    cache.save(registry)?;
    if output.is_json() {
        return output.json(&ReleasedList { released: &ids });
    }
    Ok(output.line(&format!("{} reservation(s) given back", ids.len()))?)
}

/// A payload without the members that depend on the status.
fn reservation(id: &str, status: &'static str) -> ReservationPayload {
    ReservationPayload {
        kind: ReservationPayload::KIND.into(),
        reservation_id: id.to_owned(),
        status: status.into(),
        ..ReservationPayload::default()
    }
}

async fn announce(registry: &mut Registry, to: &str, payload: ReservationPayload) -> Result<Value, Failure> {
    registry.send(to, serde_json::to_value(payload)?, None).await?.done()
}

fn show_reservations(cache: &Cache, output: &Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json(&cache);
    }
    let now = stamp::now();
    let mut table = Table::new(["OWNER", "ID", "SCOPE", "PATHS", "UNTIL", "STATE"]);
    for entry in &cache.reservations {
        let live = entry.is_live(now);
        let state = match (live, entry.status.as_str()) {
            (true, _) => "active",
            (false, "released") => "released",
            (false, _) => "expired",
        };
        let cells = [
            entry.owner.clone(),
            entry.reservation_id.clone(),
            entry.scope.clone(),
            entry.paths.join(" "),
            entry.expires_ts.clone(),
            state.to_owned(),
        ];
        table.row(cells, if live { Style::Plain } else { Style::Dim });
    }
    Ok(output.table(&table)?)
}

fn scope_of(given: &ReserveArgs, remotes: &[String]) -> Result<Scope, Failure> {
    let text = match (&given.scope, remotes.first()) {
        (Some(scope), _) => scope.clone(),
        (None, Some(remote)) => format!("repo:{remote}"),
        (None, None) => {
            return Err(Failure::new(Exit::Usage, "this work tree has no remote; name a scope with --scope"));
        }
    };
    Scope::parse(&text).map_err(|why| Failure::new(Exit::Usage, format!("--scope: {why}")))
}

/// Whether a message's signature is valid.
#[derive(Serialize)]
struct Verified {
    id: Value,
    from: Value,
    verified: bool,
}

async fn verify(registry: &mut Registry, given: &VerifyArgs, output: &Output) -> Result<(), Failure> {
    let text = match &given.file {
        Some(path) => std::fs::read_to_string(path)?,
        None => read_input()?,
    };
    let value: Value = serde_json::from_str(&text).map_err(|error| Failure::new(Exit::Usage, error))?;
    let messages = match value {
        Value::Array(list) => list,
        Value::Object(page) if page.get("messages").is_some_and(Value::is_array) => {
            page["messages"].as_array().cloned().unwrap_or_default()
        }
        one => vec![one],
    };
    let key = given.key.as_ref().map(|key| key.parse::<PublicKey>()).transpose()?;
    let mut bad = 0;
    let mut list = Vec::new();
    for message in &messages {
        let good = match &key {
            Some(key) => is_signed_by(message, key),
            None => registry.is_authentic(message).await?,
        };
        bad += usize::from(!good);
        list.push(Verified { id: message["id"].clone(), from: message["from"].clone(), verified: good });
    }
    if output.is_json() {
        output.json(&list)?;
    } else {
        for one in &list {
            let word = if one.verified { "good" } else { "BAD" };
            let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
            output.line(&format!("{word}  {}  from {}", text(&one.id), text(&one.from)))?;
        }
    }
    match bad {
        0 => Ok(()),
        n => Err(Failure::new(Exit::Unhealthy, format!("{n} of {} signatures are not good", messages.len()))),
    }
}

fn is_signed_by(message: &Value, key: &PublicKey) -> bool {
    let mut message = message.clone();
    if let Value::Object(members) = &mut message {
        members.shift_remove("delivery");
    }
    Envelope::parse(&message.to_string()).is_ok_and(|envelope| envelope.verify(key).is_ok())
}

/// Refuses a broadcast to all agents without --yes.
fn confirm_public(to: &str, yes: bool) -> Result<(), Failure> {
    if Target::parse(to) == Target::Public && !yes {
        return Err(Failure::new(Exit::Usage, "@public tells everyone; say --yes if that is what you want"));
    }
    Ok(())
}

fn read_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text.trim_end_matches('\n').to_owned())
}

fn from_now(span: Duration) -> i64 {
    stamp::now().saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
}

fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~:".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn warn(text: &str) {
    // If standard error is closed, the exit code still reports the outcome.
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr().lock(), "warning: {text}");
}
