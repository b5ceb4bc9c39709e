//! Prompts that a client can offer its user: how to begin, how to hand over, how to clear the inbox.

use posthaste_wire::mcp::prompts::{
    Prompt as ListedPrompt, PromptArgument, PromptMessage, PromptResult, PromptText, Role,
};
use serde_json::{Map, Value};

use super::errors::{DoorError, did_you_mean, nearest};

/// A prompt and what it takes: name, meaning, whether it is needed.
struct Prompt {
    name: &'static str,
    about: &'static str,
    takes: &'static [(&'static str, &'static str, bool)],
    text: &'static str,
}

const PROMPTS: &[Prompt] = &[
    Prompt {
        name: "start_session",
        about: "Register with the server and look at what is waiting",
        takes: &[
            ("human_key", "Absolute path of the working directory", true),
            ("task", "What you are about to do", false),
        ],
        text: "Call macro_start_session with human_key={human_key}, your program and model, and task_description={task}. \
               Keep the registration_token. Read the inbox it returns; acknowledge what asks for it; answer what concerns you.",
    },
    Prompt {
        name: "check_mail",
        about: "Read and answer what has come in",
        takes: &[("project_key", "The project", true), ("agent_name", "Your name in it", true)],
        text: "Call fetch_inbox with project_key={project_key}, agent_name={agent_name}, unread_only=true, include_bodies=true. \
               For each message: do or answer what it asks, call acknowledge_message if ack_required, else mark_message_read.",
    },
    Prompt {
        name: "reserve_and_edit",
        about: "Edit files without treading on others",
        takes: &[
            ("project_key", "The project", true),
            ("agent_name", "Your name in it", true),
            ("paths", "What you will edit", true),
        ],
        text: "Call file_reservation_paths with project_key={project_key}, agent_name={agent_name}, paths={paths}. If conflicts \
               are reported, write to the holders with send_message before you go on. Release with release_file_reservations when done.",
    },
    Prompt {
        name: "hand_over",
        about: "Pass work on to another agent",
        takes: &[
            ("project_key", "The project", true),
            ("agent_name", "Your name in it", true),
            ("to", "Who takes over", true),
            ("thread_id", "The thread or ticket", false),
        ],
        text: "Write a hand-over with send_message (project_key={project_key}, sender_name={agent_name}, to=[{to}], thread_id={thread_id}, \
               ack_required=true): what is done, what is open, which files matter. Then release your reservations and wait_for_mail for the answer.",
    },
];

/// All prompts.
pub(super) fn listed() -> Vec<ListedPrompt> {
    let argument = |(name, about, required): &(&str, &str, bool)| PromptArgument {
        name: (*name).to_owned(),
        description: (*about).to_owned(),
        required: *required,
    };
    let row = |prompt: &Prompt| ListedPrompt {
        name: prompt.name.to_owned(),
        description: prompt.about.to_owned(),
        arguments: prompt.takes.iter().map(argument).collect(),
    };
    PROMPTS.iter().map(row).collect()
}

/// A prompt with its blanks filled in.
pub(super) fn fill_in(name: &str, given: &Map<String, Value>) -> Result<PromptResult, DoorError> {
    let Some(prompt) = PROMPTS.iter().find(|prompt| prompt.name == name) else {
        let near = nearest(name, PROMPTS.iter().map(|prompt| prompt.name));
        return Err(DoorError::new(
            "PROMPT_NOT_FOUND",
            format!("there is no prompt '{name}'{}", did_you_mean(&near)),
        ));
    };
    let mut text = prompt.text.to_owned();
    for (blank, _, required) in prompt.takes {
        let value = match given.get(*blank) {
            Some(Value::String(value)) if !value.is_empty() => value.clone(),
            Some(value) if !value.is_null() && value != "" => value.to_string(),
            _ if *required => {
                return Err(DoorError::new("MISSING_ARGUMENT", format!("prompt '{name}' needs '{blank}'")));
            }
            _ => format!("(your {blank})"),
        };
        text = text.replace(&format!("{{{blank}}}"), &value);
    }
    let message = PromptMessage { role: Role::User, content: PromptText { text } };
    Ok(PromptResult { description: prompt.about.to_owned(), messages: vec![message] })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // F18: what a client fills in with an empty text was not given.
    #[test]
    fn an_empty_argument_counts_as_left_out() {
        let filled = |given: Value| fill_in("start_session", given.as_object().unwrap());
        let result = filled(json!({ "human_key": "/srv/app", "task": "" })).unwrap();
        let text = &result.messages[0].content.text;
        assert!(text.contains("task_description=(your task)"), "{text}");
        assert_eq!(filled(json!({ "human_key": "" })).err().unwrap().code, "MISSING_ARGUMENT");
    }
}
