//! Files that a call names are sent in it: this process runs as the user, the server need not.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use posthaste_wire::mcp::tools::SentFile;
use serde_json::Value;

use posthaste_host::projects::Trees;

/// The largest file that is attached, in bytes; a request has room for less than this.
const MAX_FILE_BYTES: u64 = 2 << 20;

/// A call that names files to attach, with their bytes instead: this process runs as the user, the server need not.
/// Only files of the work tree that it was started in; a path that is left is the server's to judge.
pub(super) async fn with_bytes(trees: &Arc<Trees>, line: String) -> String {
    if !line.contains("attachment_paths") || trees.is_empty() {
        return line;
    }
    let Ok(mut call) = serde_json::from_str::<Value>(&line) else { return line };
    let Some(given) = call.pointer_mut("/params/arguments").and_then(Value::as_object_mut) else {
        return line;
    };
    let Some(Value::Array(paths)) = given.get("attachment_paths").cloned() else { return line };
    let base = given.get("project_key").and_then(Value::as_str).unwrap_or_default().to_owned();
    let trees = trees.clone();
    let read = tokio::task::spawn_blocking(move || {
        let (mut files, mut left) = (Vec::new(), Vec::new());
        for path in paths {
            let text = path.as_str().unwrap_or_default();
            match trees.read(&base, text, MAX_FILE_BYTES) {
                Ok(bytes) => {
                    let name = Path::new(text).file_name().unwrap_or_default().to_string_lossy();
                    let (name, data) = (name.into_owned(), STANDARD.encode(bytes));
                    files.extend(serde_json::to_value(SentFile { name, media_type: None, data }));
                }
                Err(_) => left.push(path),
            }
        }
        (files, left)
    });
    let Ok((files, left)) = read.await else { return line };
    given.insert("attachment_paths".to_owned(), left.into());
    match given.entry("attachments").or_insert_with(|| Value::Array(Vec::new())) {
        Value::Array(list) => list.extend(files),
        _ => return line,
    }
    call.to_string()
}
