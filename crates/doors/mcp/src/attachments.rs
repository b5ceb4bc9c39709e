//! Files that a tool call gives for a message: their bytes in the call, or paths in work trees that the operator named.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use posthaste_engine::nouns::Caller;
use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::call::Call;
use super::errors::DoorError;
use posthaste_host::attachments::{self, AttachError, Carrier, Incoming};
pub(super) use posthaste_host::attachments::{MAX_FILES, MOST_BYTES};
use posthaste_host::projects::Project;

/// The files that a call gives for one message.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    pub(super) paths: Vec<String>,
    /// Objects like [`SentFile`], checked when they are kept.
    pub(super) sent: Vec<Map<String, Value>>,
}

/// A file with its bytes, as the schema of a tool shows it.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "describes what is read member by member, so that errors name the file")]
pub(super) struct SentFile {
    name: String,
    media_type: Option<String>,
    /// base64
    data: String,
}

/// Copies the files that a message is to carry and says how it refers to them.
pub(super) async fn keep(call: &Call, project: &Project, given: &Given) -> Result<Vec<Value>, DoorError> {
    if given.paths.is_empty() && given.sent.is_empty() {
        return Ok(Vec::new());
    }
    // Before any file is read.
    if given.paths.len() + given.sent.len() > MAX_FILES {
        return Err(problem(AttachError::TooMany));
    }
    let mut files =
        given.sent.iter().map(Incoming::received).collect::<Result<Vec<_>, _>>().map_err(problem)?;
    for path in &given.paths {
        files.push(from_tree(call, project, path).await?);
    }
    attachments::keep(call.door.attachments(), &project.engine, files).await.map_err(problem)
}

/// A file of a work tree that the operator named, for callers of the default realm on this machine.
async fn from_tree(call: &Call, project: &Project, path: &str) -> Result<Incoming, DoorError> {
    let refused = |why: &str| problem(AttachError::refused(path, why));
    if !call.visitor.local || !(call.at_default() || call.is_operator()) {
        let why = "attachment_paths works for agents of the default realm on the server's machine; send the bytes \
                   in 'attachments' instead";
        return Err(refused(why));
    }
    let (base, given) = (project.human_key.clone(), path.to_owned());
    let read = call.door.look_in_trees(move |trees| trees.read(&base, &given, MOST_BYTES)).await;
    let bytes = match read {
        Some(Ok(bytes)) => bytes,
        Some(Err(error)) => return Err(refused(&error.to_string())),
        None => return Err(refused(&posthaste_host::projects::TreeError::NotNamed.to_string())),
    };
    let name = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let media = attachments::media_type(&name).to_owned();
    Ok(Incoming { media, name, path: Some(path.to_owned()), bytes })
}

/// The type and the bytes, in base64, of a file that a message refers to, for callers that may read the message.
pub(super) async fn fetch(
    project: &Project,
    viewers: Vec<Caller>,
    message: i64,
    hash: &str,
) -> Result<(String, String), DoorError> {
    let found = attachments::fetch(&project.engine, viewers, Carrier::Seq(message), hash).await;
    let (file, bytes) = found.map_err(problem)?;
    Ok((file.media_type, STANDARD.encode(bytes)))
}

fn problem(error: AttachError) -> DoorError {
    let word = match error {
        AttachError::TooMany => "TOO_MANY",
        AttachError::Refused { .. } => "ATTACHMENT_REFUSED",
        AttachError::Missing => "ATTACHMENT_NOT_FOUND",
        AttachError::Failed => "OFFICE_FAILED",
        AttachError::Engine(error) => return error.into(),
    };
    DoorError::new(word, error.to_string())
}
