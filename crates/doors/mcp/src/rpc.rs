//! The methods of MCP that need no session, answered directly: what hooks call with curl, and what most clients call
//! most of the time.

use posthaste_wire::rpc::{ErrorObject, INVALID_PARAMS, METHOD_NOT_FOUND};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::answer::write_failure;
use super::call::Call;
use super::errors::Problem;
use super::{prompts, resources, table};

/// The code of a resource that is not there.
const RESOURCE_NOT_FOUND: i64 = -32_002;

#[derive(Deserialize)]
struct CallParams {
    name: String,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct ReadParams {
    uri: String,
}

#[derive(Deserialize)]
struct PromptParams {
    name: String,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

/// What a call for a tool says of itself before it is made.
#[derive(Default)]
pub(super) struct Glimpse {
    /// Whether the caller wants to be told how it is getting on, by a tool that can tell.
    pub(super) wants_progress: bool,
    /// Whether it is of a revision that rmcp has to see through.
    pub(super) is_modern: bool,
}

impl Glimpse {
    pub(super) fn of(method: &str, params: Option<&RawValue>) -> Self {
        let text = params.map_or("", RawValue::get);
        let is_modern = text.contains("io.modelcontextprotocol/protocolVersion");
        let mut wants_progress = false;
        if method == "tools/call" && text.contains("\"progressToken\"") {
            let name = serde_json::from_str::<CallParams>(text).map(|params| params.name);
            wants_progress =
                name.ok().and_then(|name| table::find(&name)).is_some_and(table::Tool::makes_progress);
        }
        Self { wants_progress, is_modern }
    }
}

/// Answers one request. The result is JSON text.
pub(super) async fn reply(
    call: &Call,
    method: &str,
    params: Option<&RawValue>,
) -> Result<String, ErrorObject> {
    match method {
        "tools/call" => {
            let given: CallParams = read(params)?;
            Ok(match table::run(call, &given.name, given.arguments.unwrap_or_default()).await {
                Ok(answer) => answer.write(),
                Err(problem) => write_failure(&given.name, &problem),
            })
        }
        "tools/list" => {
            let tools: Vec<Value> = table::shown(call.shared.tool_set()).map(table::Tool::shown).collect();
            Ok(json!({ "tools": tools }).to_string())
        }
        "ping" => Ok("{}".to_owned()),
        "resources/list" => Ok(json!({ "resources": resources::listed() }).to_string()),
        "resources/templates/list" => Ok(json!({ "resourceTemplates": resources::templates() }).to_string()),
        "resources/read" => {
            let given: ReadParams = read(params)?;
            let contents = resources::read(call, &given.uri).await;
            let contents = contents.map_err(|problem| resource_error(&problem, &given.uri))?;
            Ok(json!({ "contents": [contents.value(&given.uri)] }).to_string())
        }
        "prompts/list" => Ok(json!({ "prompts": prompts::listed() }).to_string()),
        "prompts/get" => {
            let given: PromptParams = read(params)?;
            let made = prompts::make(&given.name, &given.arguments.unwrap_or_default());
            let made = made.map_err(|problem| ErrorObject::new(INVALID_PARAMS, problem.message))?;
            Ok(json!({
                "description": made.about,
                "messages": [{ "role": "user", "content": { "type": "text", "text": made.text } }],
            })
            .to_string())
        }
        "logging/setLevel" => Ok("{}".to_owned()),
        "completion/complete" => Ok(json!({ "completion": { "values": [] } }).to_string()),
        _ => Err(ErrorObject::new(METHOD_NOT_FOUND, format!("there is no method {method}"))),
    }
}

fn read<'p, T: Deserialize<'p>>(params: Option<&'p RawValue>) -> Result<T, ErrorObject> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|error| ErrorObject::new(INVALID_PARAMS, format!("params: {error}")))
}

fn resource_error(problem: &Problem, uri: &str) -> ErrorObject {
    let code = if problem.is_missing() { RESOURCE_NOT_FOUND } else { INVALID_PARAMS };
    let data = to_raw_value(&json!({ "uri": uri })).ok();
    ErrorObject { data, ..ErrorObject::new(code, problem.message.clone()) }
}
