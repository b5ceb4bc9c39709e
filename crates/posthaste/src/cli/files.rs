//! `send`, `inbox`, `read` and `archive` on a mail directory, without a server.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

use posthaste_wire::files::{Kind, Stamp, Urgency};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::args::{ArchiveArgs, InboxArgs, ReadArgs, SendArgs};
use super::body_input::body;
use super::exit::{Exit, Failure};
use super::output::{Output, Style, Table};
use posthaste_files::{Draft, FilesError, MAX_MESSAGE_BYTES, MailDir, MarkOutcome};

/// Messages of a batch that share one sync of the directory.
const BATCH: usize = 128;
/// The longest line of a batch: a message with every character escaped.
const MAX_LINE_BYTES: u64 = 8 << 20;

pub(super) fn send(dir: &Path, args: &SendArgs, output: &Output) -> Result<(), Failure> {
    if args.batch {
        return send_batch(dir, output);
    }
    let [to] = args.to.as_slice() else {
        return Err(Failure::new(Exit::Usage, "a file goes to one mailbox: give --to once"));
    };
    let unfit = [
        (!args.cc.is_empty(), "--cc"),
        (!args.bcc.is_empty(), "--bcc"),
        (args.ack, "--ack"),
        (args.expires.is_some(), "--expires"),
        (args.key.is_some(), "--key"),
        (!args.attach.is_empty(), "--attach"),
    ];
    if let Some((_, flag)) = unfit.iter().find(|(given, _)| *given) {
        return Err(Failure::new(
            Exit::Usage,
            format!("{flag} needs a server; a mail directory cannot keep it"),
        ));
    }
    let mut extra = Map::new();
    for (field, given) in [("thread_id", &args.thread), ("in_reply_to", &args.in_reply_to)] {
        if let Some(text) = given {
            extra.insert(field.to_owned(), text.as_str().into());
        }
    }
    let from = args.from.clone().or_else(|| std::env::var("POSTHASTE_AGENT").ok());
    let mut draft = Draft {
        from: from.ok_or_else(|| Failure::new(Exit::Usage, "who sends? give --from or POSTHASTE_AGENT"))?,
        to: to.clone(),
        kind: word("type", args.kind.as_deref(), Kind::Coordination, Kind::parse, Kind::NAMES)?,
        urgency: word("priority", args.priority.as_deref(), Urgency::Normal, Urgency::parse, Urgency::NAMES)?,
        subject: args.subject.clone().unwrap_or_default(),
        body: String::new(),
        at: None,
        extra,
    };
    if let Some(text) = &args.timestamp {
        draft.at = Some(Stamp::parse(text).ok_or_else(|| FilesError::BadTimestamp(text.clone()))?);
    }
    // Names are checked before a text is read from a terminal, and before a directory is made.
    draft.check()?;
    draft.body = body(&args.body)?;
    draft.check()?;
    let sent = MailDir::open_or_make(dir)?.send(&draft)?;
    if output.is_json() {
        return output.json(&Sent { file: &sent.file, to: &draft.to });
    }
    Ok(output.line(&sent.file)?)
}

/// A sent message as JSON.
#[derive(Serialize)]
struct Sent<'a> {
    file: &'a str,
    to: &'a str,
}

fn word<T>(
    field: &'static str,
    given: Option<&str>,
    default: T,
    parse: impl Fn(&str) -> Option<T>,
    words: &'static [&'static str],
) -> Result<T, FilesError> {
    let Some(given) = given else { return Ok(default) };
    parse(given).ok_or_else(|| FilesError::BadWord { field, given: given.to_owned(), words })
}

/// A line of a batch.
#[derive(Deserialize)]
struct BatchLine {
    #[serde(default)]
    r#ref: Value,
    from: String,
    to: String,
    #[serde(default)]
    r#type: Option<String>,
    #[serde(default)]
    priority: Option<String>,
    #[serde(default)]
    subject: String,
    body: String,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(default)]
    thread_id: Option<String>,
    #[serde(default)]
    in_reply_to: Option<String>,
}

/// An accepted line of a batch.
#[derive(Serialize)]
struct BatchAck<'a> {
    r#ref: &'a Value,
    file: &'a str,
}

/// A refused line of a batch.
#[derive(Serialize)]
struct BatchError<'a> {
    r#ref: &'a Value,
    error: &'a str,
}

/// Reads lines as they come; lines that are waiting together are made durable together.
fn send_batch(dir: &Path, output: &Output) -> Result<(), Failure> {
    let mail = MailDir::open_or_make(dir)?;
    let (lines, waiting) = sync_channel(BATCH * 2);
    let reader = std::thread::spawn(move || {
        let mut input = BufReader::new(io::stdin());
        loop {
            let mut line = Vec::new();
            match (&mut input).take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(0) => return Ok(()),
                Ok(count) if count as u64 == MAX_LINE_BYTES => {
                    return Err(io::Error::other(format!("a line is longer than {MAX_LINE_BYTES} bytes")));
                }
                Ok(_) if lines.send(line).is_err() => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    });
    let mut failed = 0_u64;
    while let Some(batch) = next_batch(&waiting) {
        failed += send_lines(&mail, &batch, output)?;
    }
    match reader.join() {
        Ok(read) => read?,
        Err(_) => return Err(Failure::new(Exit::Failed, "reading standard input failed")),
    }
    match failed {
        0 => Ok(()),
        some => Err(Failure::new(Exit::Failed, format!("{some} messages were not sent"))),
    }
}

fn next_batch(waiting: &Receiver<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    let mut batch = vec![waiting.recv().ok()?];
    let mut bytes = batch[0].len();
    while batch.len() < BATCH && bytes < MAX_MESSAGE_BYTES * 8 {
        match waiting.try_recv() {
            Ok(line) => {
                bytes += line.len();
                batch.push(line);
            }
            Err(_) => break,
        }
    }
    Some(batch)
}

/// Reports durable messages on standard output, and refused ones on standard error.
fn send_lines(mail: &MailDir, batch: &[Vec<u8>], output: &Output) -> Result<u64, Failure> {
    let mut refs = Vec::new();
    let mut drafts = Vec::new();
    let mut failed = 0;
    let mut complain = |reference: &Value, why: String| {
        failed += 1;
        let line = serde_json::to_string(&BatchError { r#ref: reference, error: &why }).unwrap_or_default();
        let _ = writeln!(io::stderr().lock(), "{line}");
    };
    for line in batch.iter().filter(|line| !line.trim_ascii().is_empty()) {
        match serde_json::from_slice::<BatchLine>(line) {
            Ok(line) => {
                let reference = line.r#ref.clone();
                match line.into_draft() {
                    Ok(draft) => {
                        refs.push(reference);
                        drafts.push(draft);
                    }
                    Err(error) => complain(&reference, error.to_string()),
                }
            }
            Err(error) => complain(&Value::Null, error.to_string()),
        }
    }
    let mut acks = String::new();
    for (reference, result) in refs.iter().zip(mail.send_all(&drafts)) {
        match result {
            Ok(sent) => {
                acks += &serde_json::to_string(&BatchAck { r#ref: reference, file: &sent.file })?;
                acks.push('\n');
            }
            Err(error) => complain(reference, error.to_string()),
        }
    }
    output.bytes(acks.as_bytes())?;
    Ok(failed)
}

impl BatchLine {
    fn into_draft(self) -> Result<Draft, FilesError> {
        let at = match &self.timestamp {
            Some(text) => Some(Stamp::parse(text).ok_or_else(|| FilesError::BadTimestamp(text.clone()))?),
            None => None,
        };
        let mut extra = Map::new();
        for (field, given) in [("thread_id", self.thread_id), ("in_reply_to", self.in_reply_to)] {
            if let Some(text) = given {
                extra.insert(field.to_owned(), text.as_str().into());
            }
        }
        let draft = Draft {
            from: self.from,
            to: self.to,
            kind: word("type", self.r#type.as_deref(), Kind::Coordination, Kind::parse, Kind::NAMES)?,
            urgency: word(
                "priority",
                self.priority.as_deref(),
                Urgency::Normal,
                Urgency::parse,
                Urgency::NAMES,
            )?,
            subject: self.subject,
            body: self.body,
            at,
            extra,
        };
        draft.check()?;
        Ok(draft)
    }
}

pub(super) fn inbox(dir: &Path, args: &InboxArgs, output: &Output) -> Result<(), Failure> {
    let agent = agent(args.agent.as_deref())?;
    posthaste_wire::files::check_agent(&agent).map_err(FilesError::from)?;
    let found = match dir.exists() {
        true => MailDir::open(dir)?.inbox(&agent)?,
        // No message was sent yet.
        false => posthaste_files::Inbox::default(),
    };
    for (file, reason) in &found.skipped {
        let _ = writeln!(
            io::stderr().lock(),
            "{} {file}: {reason}",
            output.paint_error(Style::Warning, "warning:")
        );
    }
    let wanted = |entry: &&posthaste_files::Entry| {
        (!args.unread || !entry.message.read)
            && (args.kinds.is_empty() || args.kinds.contains(&entry.message.kind))
    };
    let entries = found.entries.iter().filter(wanted);
    let entries: Vec<_> = match args.limit {
        Some(limit) => entries.take(limit as usize).collect(),
        None => entries.collect(),
    };
    if output.is_json() {
        let list: Vec<Value> =
            entries.iter().map(|entry| with_file(entry.message.to_value(), &entry.file)).collect();
        return output.json(&list);
    }
    let mut table = Table::new(["FILE", "FROM", "TYPE", "PRIORITY", "SUBJECT"]);
    for entry in entries {
        let message = &entry.message;
        let style = match (message.read, message.priority.as_str()) {
            (true, _) => Style::Dim,
            (false, "urgent") => Style::Bad,
            (false, _) => Style::Plain,
        };
        let cells = [&entry.file, &message.from, &message.kind, &message.priority, &message.subject];
        table.row(cells.map(Clone::clone), style);
    }
    Ok(output.table(&table)?)
}

pub(super) fn read(dir: &Path, args: &ReadArgs, output: &Output) -> Result<(), Failure> {
    let agent = agent(args.agent.as_deref())?;
    let missing = || Failure::new(Exit::NotFound, format!("{agent} has no message {}", args.message));
    posthaste_wire::files::check_agent(&agent).map_err(FilesError::from)?;
    if !dir.exists() {
        return Err(missing());
    }
    let mail = MailDir::open(dir)?;
    if !args.peek && mail.mark_read(&agent, &args.message)? == MarkOutcome::Missing {
        return Err(missing());
    }
    let Some(message) = mail.look_up(&agent, &args.message)? else { return Err(missing()) };
    if output.is_json() {
        return output.json(&with_file(message.to_value(), &args.message));
    }
    for (head, text) in [
        ("From", &message.from),
        ("To", &message.to),
        ("Date", &message.timestamp),
        ("Type", &message.kind),
        ("Priority", &message.priority),
        ("Subject", &message.subject),
    ] {
        output.line(&format!(
            "{} {}",
            output.paint(Style::Bold, &format!("{head}:")),
            super::output::printable(text)
        ))?;
    }
    Ok(output.line(&format!("\n{}", super::output::printable_text(&message.body_text())))?)
}

/// A message with the name of its file.
fn with_file(mut message: Value, file: &str) -> Value {
    message["file"] = file.into();
    message
}

/// The archived files as JSON.
#[derive(Serialize)]
struct Archived<'a> {
    archived: &'a [String],
}

pub(super) fn archive(args: &ArchiveArgs, output: &Output) -> Result<(), Failure> {
    if let Some(agent) = &args.agent {
        posthaste_wire::files::check_agent(agent).map_err(FilesError::from)?;
    }
    let mut moved = Vec::new();
    if args.mail_dir.exists() {
        let mail = MailDir::open(&args.mail_dir)?;
        let agents = match &args.agent {
            Some(agent) => vec![agent.clone()],
            None => mail.agents()?,
        };
        for agent in agents {
            moved.extend(mail.archive(&agent)?.into_iter().map(|file| format!("{agent}/{file}")));
        }
    }
    if output.is_json() {
        return output.json(&Archived { archived: &moved });
    }
    Ok(output.line(&format!("{} archived", moved.len()))?)
}

fn agent(given: Option<&str>) -> Result<String, Failure> {
    let named = given.map(str::to_owned).or_else(|| std::env::var("POSTHASTE_AGENT").ok());
    named.ok_or_else(|| Failure::new(Exit::Usage, "whose? give --agent or POSTHASTE_AGENT"))
}
