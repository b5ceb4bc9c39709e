//! Prompts that a client can offer its user: how to begin, how to hand over, how to clear the inbox.

use serde_json::{Map, Value, json};

use super::errors::{Problem, did_you_mean, nearest};

/// A prompt and what it takes: name, meaning, whether it is needed.
pub(super) struct Prompt {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) takes: &'static [(&'static str, &'static str, bool)],
    text: &'static str,
}

/// A prompt with its blanks filled in.
pub(super) struct Made {
    pub(super) about: &'static str,
    pub(super) text: String,
}

pub(super) const PROMPTS: &[Prompt] = &[
    Prompt {
        name: "start_session",
        about: "Register with the post office and look at what is waiting",
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

pub(super) fn listed() -> Vec<Value> {
    let row = |prompt: &Prompt| {
        let takes: Vec<Value> = prompt
            .takes
            .iter()
            .map(
                |(name, about, required)| json!({ "name": name, "description": about, "required": required }),
            )
            .collect();
        json!({ "name": prompt.name, "description": prompt.about, "arguments": takes })
    };
    PROMPTS.iter().map(row).collect()
}

pub(super) fn make(name: &str, given: &Map<String, Value>) -> Result<Made, Problem> {
    let Some(prompt) = PROMPTS.iter().find(|prompt| prompt.name == name) else {
        let near = nearest(name, PROMPTS.iter().map(|prompt| prompt.name));
        return Err(Problem::new(
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
                return Err(Problem::new("MISSING_ARGUMENT", format!("prompt '{name}' needs '{blank}'")));
            }
            _ => format!("(your {blank})"),
        };
        text = text.replace(&format!("{{{blank}}}"), &value);
    }
    Ok(Made { about: prompt.about, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    // F18: what a client fills in with an empty text was not given.
    #[test]
    fn an_empty_argument_counts_as_left_out() {
        let made = |given: Value| make("start_session", given.as_object().unwrap());
        let text = made(json!({ "human_key": "/srv/app", "task": "" })).unwrap().text;
        assert!(text.contains("task_description=(your task)"), "{text}");
        assert_eq!(made(json!({ "human_key": "" })).err().unwrap().code, "MISSING_ARGUMENT");
    }
}
