//! What `tools/list` says of a parameter whose name does not say it. Each sentence is repeated for every tool that takes the
//! parameter, so the sentences are short and few; `table.rs` tests the size of the whole list.

/// A parameter, or `tool.parameter` where one tool means something else by it, and what it means.
const ABOUT: &[(&str, &str)] = &[
    ("accept", "false denies and blocks"),
    ("ack_required", "ask for acknowledge_message"),
    ("after_id", "only messages newer than this id"),
    ("attachment_paths", "files below the project's path"),
    ("auto_contact_if_blocked", IGNORED),
    ("block", "refuse the commit instead of warning"),
    ("broadcast", "to every agent of the project"),
    ("commit_limit", IGNORED),
    ("convert_images", IGNORED),
    ("exclusive", "false: shared, conflicts with exclusive ones only"),
    ("extend_seconds", "added to the present end"),
    ("file_reservation_ids", "ids from granted"),
    ("human_key", "absolute path of the working directory"),
    ("identity_mode", IGNORED),
    ("in_reply_to", "turn_id"),
    ("include_recent_commits", IGNORED),
    ("list_agents.after", "last name of the page before"),
    ("list_conversations.before", "place of the last row of the page before"),
    ("list_turns.after", "last turn_id of the page before"),
    ("llm_mode", IGNORED),
    ("llm_model", IGNORED),
    ("macro_contact_handshake.agent_name", "same as requester"),
    ("macro_contact_handshake.to_agent", "same as target"),
    ("mark_read", "mark the returned messages as read"),
    ("note", "text for the other agent"),
    ("notify_previous", "send the former holder a message"),
    ("per_thread_limit", "messages read of each thread"),
    ("policy", "whose messages are accepted"),
    ("program", "the client, such as claude-code"),
    ("project_key", "absolute path or slug"),
    ("reply_message.to", "default: the sender"),
    ("respond_contact.from_project", IGNORED),
    ("sender_token", "the sender's registration_token"),
    ("since_ts", "RFC 3339"),
    ("targets", IGNORED),
    ("timeout_seconds", "0 to 600"),
    ("to_project", "project of to_agent, if another"),
    ("topic", "a label, such as ci"),
];

/// Taken for the sake of clients that send it.
const IGNORED: &str = "ignored";

/// What a tool's parameter means, where its name does not say it.
pub(super) fn about(tool: &str, parameter: &str) -> Option<&'static str> {
    let find = |name: &str| ABOUT.iter().find(|(known, _)| *known == name).map(|(_, about)| *about);
    find(&format!("{tool}.{parameter}")).or_else(|| find(parameter))
}

#[cfg(test)]
mod tests {
    use super::super::table::TABLE;
    use super::*;

    #[test]
    fn every_sentence_belongs_to_a_parameter() {
        for (name, _) in ABOUT {
            let (tool, parameter) =
                name.split_once('.').map_or((None, *name), |(tool, name)| (Some(tool), name));
            let used = TABLE.iter().any(|entry| {
                tool.is_none_or(|tool| tool == entry.line.name)
                    && entry.shown.input_schema["properties"].get(parameter).is_some()
            });
            assert!(used, "no tool takes {name}");
        }
    }
}
