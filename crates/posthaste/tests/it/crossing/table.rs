//! What each door carries: the table that the tests use and `docs/CROSSING.md` shows.

/// How a door sends and receives messages.
pub(super) struct Row {
    pub(super) door: &'static str,
    /// The priority of messages that are sent here, as other doors show it.
    pub(super) sends: &'static str,
    /// Where the name of the conversation is.
    pub(super) thread: &'static str,
    /// Where the priority is.
    pub(super) priority: &'static str,
    /// How a sender requests an acknowledgement and receives it; the reason if it cannot.
    pub(super) asks: Result<&'static str, &'static str>,
    /// How a recipient acknowledges.
    pub(super) acknowledges: &'static str,
    /// How a recipient answers.
    pub(super) replies: &'static str,
}

pub(super) const TABLE: [Row; 5] = [
    Row {
        door: "map",
        sends: "high",
        thread: "`meta.mail.conversationId`",
        priority: "`meta.priority`",
        asks: Ok("`meta.requireAck`; event `message_acknowledged`"),
        acknowledges: "when the message is delivered",
        replies: "`map/send` with the same `meta.mail.conversationId`",
    },
    Row {
        door: "swarm",
        // A request of an agent has the fifth tier, which other doors call low.
        sends: "low",
        thread: "`task_id`; messages of other doors also `routing_info.thread_id`",
        priority: "the tier; messages of other doors also `routing_info.priority`",
        asks: Err("MAIL has no acknowledgements of requests"),
        acknowledges: "when the message is delivered",
        replies: "`send_response`, `task_complete`",
    },
    Row {
        door: "airc",
        sends: "high",
        thread: "`thread_id`",
        priority: "`priority`",
        asks: Ok("`ack_required`; `context:mailbox_ack` in the inbox"),
        acknowledges: "`context:mailbox_ack`",
        replies: "`context:mailbox` with the same `thread_id`",
    },
    Row {
        door: "mcp",
        sends: "high",
        thread: "`thread_id`",
        priority: "`importance`",
        asks: Ok("`ack_required`; `acknowledgements` in `resource://outbox/{agent}`"),
        acknowledges: "`acknowledge_message`",
        replies: "`reply_message`",
    },
    Row {
        door: "files",
        sends: "high",
        thread: "`thread_id`",
        priority: "`priority`, with `importance` for high and bulk",
        asks: Err("a mailbox shows nothing of what its owner sent; `ack_required` is carried"),
        acknowledges: "`read: true` on a message that asks for it",
        replies: "a file with the same `thread_id` and `in_reply_to`",
    },
];

/// How a priority of one door is shown at another.
pub(super) fn shown(sent: &Row, at: &Row) -> Option<&'static str> {
    match (sent.door, at.door) {
        // Within one swarm the tier follows from the kind of message.
        ("swarm", "swarm") => None,
        // Files distinguish the fifth tier from the fourth.
        ("swarm", "files") => Some("bulk"),
        _ => Some(sent.sends),
    }
}

fn line(row: &Row) -> String {
    let asks = match row.asks {
        Ok(how) => how.to_owned(),
        Err(why) => format!("no: {why}"),
    };
    let Row { door, thread, priority, acknowledges, replies, .. } = row;
    format!("| {door} | {thread} | {priority} | {asks} | {acknowledges} | {replies} |")
}

#[test]
fn the_page_shows_the_table() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/CROSSING.md");
    let page = std::fs::read_to_string(page).unwrap();
    let missing: Vec<String> = TABLE.iter().map(line).filter(|line| !page.contains(line.as_str())).collect();
    assert!(missing.is_empty(), "docs/CROSSING.md lacks\n{}", missing.join("\n"));
}
