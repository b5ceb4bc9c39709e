//! Server-sent events (WHATWG HTML): writers, and an incremental parser for chunks of any size.

use std::fmt::Write as _;
use std::mem;

/// Writes one event: an optional id (the client resumes from it), an optional type, and data of any number of lines.
///
/// The format cannot represent line breaks or NULs in `id` and `event`, so they are removed. Line breaks in `data`
/// become `\n`.
pub fn write_event(out: &mut String, id: Option<&str>, event: Option<&str>, data: &str) {
    for (field, value) in [("id", id), ("event", event)] {
        if let Some(value) = value {
            let _ = write!(out, "{field}: ");
            out.extend(value.chars().filter(|c| !matches!(c, '\r' | '\n' | '\0')));
            out.push('\n');
        }
    }
    write_lines(out, "data: ", data);
    out.push('\n');
}

/// Writes the reconnection delay of the client, in milliseconds.
pub fn write_retry(out: &mut String, millis: u64) {
    let _ = write!(out, "retry: {millis}\n\n");
}

/// Writes a comment. Clients ignore it; it keeps an idle connection open.
pub fn write_comment(out: &mut String, text: &str) {
    write_lines(out, ": ", text);
    out.push('\n');
}

fn write_lines(out: &mut String, prefix: &str, text: &str) {
    let mut rest = text;
    loop {
        out.push_str(prefix);
        let Some(at) = rest.find(['\r', '\n']) else { break };
        out.push_str(&rest[..at]);
        out.push('\n');
        rest = &rest[at + if rest[at..].starts_with("\r\n") { 2 } else { 1 }..];
    }
    out.push_str(rest);
    out.push('\n');
}

/// A parsed event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The last id in the stream so far, possibly from an earlier event; empty if there was none.
    pub id: String,
    /// The event type; `message` if the stream gives none.
    pub event: String,
    /// The data lines, joined by `\n`.
    pub data: String,
}

/// An event exceeds the parser's size limit. The parser reads no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {limit} bytes")]
pub struct TooLarge {
    /// The parser's limit, in bytes.
    pub limit: usize,
}

/// Incremental parser for an event stream.
#[derive(Debug)]
pub struct Parser {
    limit: usize,
    /// The current, incomplete line. Bytes, because a chunk may end inside a character.
    line: Vec<u8>,
    data: String,
    event: String,
    /// The id of the current event; copied to `last_event_id` when the event is complete.
    id: String,
    last_event_id: String,
    retry: Option<u64>,
    first_line: bool,
    /// True if the last byte was CR, so that a following LF belongs to the same line break.
    after_cr: bool,
    overflowed: bool,
}

impl Parser {
    /// Creates a parser that buffers at most `limit` bytes of an incomplete event.
    pub fn new(limit: usize) -> Self {
        Parser {
            limit,
            line: Vec::new(),
            data: String::new(),
            event: String::new(),
            id: String::new(),
            last_event_id: String::new(),
            retry: None,
            first_line: true,
            after_cr: false,
            overflowed: false,
        }
    }

    /// Parses a chunk and appends completed events to `events`, including those before an event that is too large.
    pub fn feed(&mut self, chunk: &[u8], events: &mut Vec<Event>) -> Result<(), TooLarge> {
        let mut rest = chunk;
        while !rest.is_empty() && !self.overflowed {
            if mem::take(&mut self.after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let (line, next) = rest.split_at(end.unwrap_or(rest.len()));
            if self.buffered() + line.len() > self.limit {
                self.overflowed = true;
                break;
            }
            self.line.extend_from_slice(line);
            rest = next;
            if let [terminator, next @ ..] = next {
                self.after_cr = *terminator == b'\r';
                rest = next;
                events.extend(self.end_line());
            }
        }
        if self.overflowed { Err(TooLarge { limit: self.limit }) } else { Ok(()) }
    }

    /// The id of the last complete event, to send as `Last-Event-ID` on reconnection.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// The last reconnection delay that the stream set, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// Prepares for a new connection: drops an incomplete event, keeps the last event id and the delay.
    pub fn reconnect(&mut self) {
        let last_event_id = mem::take(&mut self.last_event_id);
        *self =
            Parser { id: last_event_id.clone(), last_event_id, retry: self.retry, ..Parser::new(self.limit) };
    }

    fn buffered(&self) -> usize {
        self.line.len() + self.data.len() + self.event.len() + self.id.len()
    }

    fn end_line(&mut self) -> Option<Event> {
        let mut line = mem::take(&mut self.line);
        let bom = mem::take(&mut self.first_line) && line.starts_with(b"\xef\xbb\xbf");
        let bytes = if bom { &line[3..] } else { &line };
        // Line breaks are ASCII, so no character spans lines and each line can be decoded separately.
        let text = String::from_utf8_lossy(bytes);
        let event = if text.is_empty() {
            self.end_event()
        } else {
            self.field(&text);
            None
        };
        // Reuse the allocation for the next line.
        line.clear();
        self.line = line;
        event
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            "event" => value.clone_into(&mut self.event),
            "id" if !value.contains('\0') => value.clone_into(&mut self.id),
            // Digits only: `parse` would also accept a sign.
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry = value.parse().ok().or(self.retry);
            }
            // A comment (empty name) or an unknown field.
            _ => {}
        }
    }

    fn end_event(&mut self) -> Option<Event> {
        self.id.clone_into(&mut self.last_event_id);
        let event = mem::take(&mut self.event);
        let mut data = mem::take(&mut self.data);
        // Each data line ends with a line break. Without data lines there is no event.
        data.pop()?;
        let event = if event.is_empty() { "message".to_owned() } else { event };
        Some(Event { id: self.id.clone(), event, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1 << 16;

    fn event(id: &str, event: &str, data: &str) -> Event {
        Event { id: id.to_owned(), event: event.to_owned(), data: data.to_owned() }
    }

    fn read(bytes: impl AsRef<[u8]>) -> Vec<Event> {
        let mut events = Vec::new();
        Parser::new(LIMIT).feed(bytes.as_ref(), &mut events).unwrap();
        events
    }

    #[test]
    fn events_comments_and_retry_are_written() {
        let mut out = String::new();
        write_event(&mut out, Some("7"), Some("mail"), "a\nb\r\nc\rd\n");
        write_event(&mut out, None, None, "");
        write_comment(&mut out, "still\nhere");
        write_retry(&mut out, 1500);
        assert_eq!(
            out,
            "id: 7\nevent: mail\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n\
             data: \n\n: still\n: here\n\nretry: 1500\n\n"
        );
        assert_eq!(read(out), [event("7", "mail", "a\nb\nc\nd\n"), event("7", "message", "")]);
    }

    #[test]
    fn line_breaks_in_id_and_type_inject_no_field() {
        let mut out = String::new();
        write_event(&mut out, Some("1\ndata: x\r\0"), Some("a\n\nb"), "y");
        assert_eq!(read(out), [event("1data: x", "ab", "y")]);
    }

    /// The examples of the WHATWG standard.
    #[test]
    fn examples_of_the_standard_parse() {
        assert_eq!(read("data: YHOO\ndata: +2\ndata: 10\n\n"), [event("", "message", "YHOO\n+2\n10")]);
        assert_eq!(
            read(
                ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
            ),
            [
                event("1", "message", "first event"),
                event("", "message", "second event"),
                event("", "message", " third event")
            ]
        );
        assert_eq!(
            read("data\n\ndata\ndata\n\ndata:"),
            [event("", "message", ""), event("", "message", "\n")]
        );
        assert_eq!(
            read("data:test\n\ndata: test\n\n"),
            [event("", "message", "test"), event("", "message", "test")]
        );
    }

    #[test]
    fn all_line_breaks_and_a_bom_are_parsed() {
        let expect = [event("", "message", "a\nb"), event("", "message", "c")];
        for br in ["\n", "\r", "\r\n"] {
            assert_eq!(read(["\u{feff}data:a", "data:b", "", "data:c", "", ""].join(br)), expect, "{br:?}");
        }
        // Only the first BOM is skipped.
        assert_eq!(read("\u{feff}\u{feff}data:a\n\n"), []);
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        assert_eq!(read(b"data: \xf0\x9f\n\n"), [event("", "message", "\u{fffd}")]);
    }

    #[test]
    fn id_persists_and_ids_with_nul_are_ignored() {
        assert_eq!(
            read("id: 1\ndata: a\n\ndata: b\n\nid: 2\0\ndata: c\n\nid\ndata: d\n\n"),
            [
                event("1", "message", "a"),
                event("1", "message", "b"),
                event("1", "message", "c"),
                event("", "message", "d")
            ]
        );
    }

    #[test]
    fn reconnect_resumes_after_the_last_complete_event() {
        let mut parser = Parser::new(LIMIT);
        let mut events = Vec::new();
        parser.feed(b"id: 1\n\nretry: 20\nretry: -5\nretry: 1e3\nid: 2\ndata: lost", &mut events).unwrap();
        assert_eq!((parser.last_event_id(), parser.retry(), events.len()), ("1", Some(20), 0));
        parser.reconnect();
        parser.feed(b"\xef\xbb\xbfdata: b\n\n", &mut events).unwrap();
        assert_eq!((parser.last_event_id(), parser.retry()), ("1", Some(20)));
        assert_eq!(events, [event("1", "message", "b")]);
    }

    #[test]
    fn oversized_event_ends_the_stream() {
        let mut parser = Parser::new(16);
        let mut events = Vec::new();
        // Comments are not buffered, so any number is allowed.
        parser.feed(": 0123456789\n".repeat(9).as_bytes(), &mut events).unwrap();
        let all = parser.feed(b"data: ok\n\ndata: 1234567\ndata: 1234567\n\n", &mut events);
        assert_eq!(all, Err(TooLarge { limit: 16 }));
        assert_eq!(parser.feed(b"\n\ndata: x\n\n", &mut events), Err(TooLarge { limit: 16 }));
        assert_eq!(events, [event("", "message", "ok")]);
    }
}
