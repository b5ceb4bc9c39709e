//! The one dispatcher: a request's method and params in, its result as JSON text out. Transport is in `http.rs`.

use posthaste_engine::one_request;
use posthaste_wire::mcp::errors::{RESOURCE_NOT_FOUND, ResourceErrorData};
use posthaste_wire::mcp::lifecycle::{
    CacheHints, Complete, CompleteResult, DiscoverResult, Empty, Implementation, InitializeParams,
    InitializeResult, ResultType, ServerCapabilities,
};
use posthaste_wire::mcp::meta::ServerMeta;
use posthaste_wire::mcp::prompts::{ListPromptsResult, PromptParams};
use posthaste_wire::mcp::resources::{ListResourcesResult, ListTemplatesResult, ReadResult, ResourceParams};
use posthaste_wire::mcp::tools::{CallParams, ListToolsResult};
use posthaste_wire::mcp::{Revision, methods};
use posthaste_wire::rpc::{ErrorObject, INVALID_PARAMS, METHOD_NOT_FOUND};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::answer;
use super::call::Call;
use super::errors::DoorError;
use super::{prompts, resources, table};

/// What a client is told of the server when it connects.
const INSTRUCTIONS: &str = "posthaste: mail between agents. Start with macro_start_session(human_key=<absolute path of the \
    working directory>, program, model); keep the registration_token. Read with fetch_inbox or wait_for_mail, answer with \
    reply_message, reserve files before editing them. A message to operator reaches the person who runs this server.";

/// Whether a request is of a revision with sessions. The others add members to results and have no `ping`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lifecycle {
    WithSessions,
    Sessionless,
}

/// Answers one request. The result is JSON text.
pub(super) async fn handle(
    call: &Call,
    lifecycle: Lifecycle,
    method: &str,
    params: Option<&RawValue>,
) -> Result<String, ErrorObject> {
    let has_sessions = lifecycle == Lifecycle::WithSessions;
    match method {
        methods::TOOLS_CALL => {
            let given: CallParams = read(params)?;
            let ran = table::run(call, &given.name, given.arguments.unwrap_or_default()).await;
            Ok(lifecycle.write(answer::result(&given.name, ran)))
        }
        methods::TOOLS_LIST => {
            let tools = table::listed(call.door.tool_set()).map(|tool| &tool.shown).collect();
            Ok(lifecycle.write_cacheable(ListToolsResult { tools }))
        }
        methods::RESOURCES_LIST => {
            Ok(lifecycle.write_cacheable(ListResourcesResult { resources: resources::listed() }))
        }
        methods::TEMPLATES_LIST => {
            Ok(lifecycle.write_cacheable(ListTemplatesResult { resource_templates: resources::templates() }))
        }
        methods::RESOURCES_READ => {
            let given: ResourceParams = read(params)?;
            let found = one_request(resources::read(call, &given.uri)).await;
            let found = found.map_err(|error| resource_error(lifecycle, error, &given.uri))?;
            Ok(lifecycle.write_cacheable(ReadResult { contents: vec![found] }))
        }
        methods::PROMPTS_LIST => {
            Ok(lifecycle.write_cacheable(ListPromptsResult { prompts: prompts::listed() }))
        }
        methods::PROMPTS_GET => {
            let given: PromptParams = read(params)?;
            let filled = prompts::fill_in(&given.name, &given.arguments.unwrap_or_default());
            let filled = filled.map_err(|error| ErrorObject::new(INVALID_PARAMS, error.message))?;
            Ok(lifecycle.write(filled))
        }
        methods::COMPLETE => Ok(lifecycle.write(CompleteResult::default())),
        methods::PING | methods::SET_LEVEL if has_sessions => Ok(lifecycle.write(Empty {})),
        _ => Err(no_such_method(method)),
    }
}

pub(super) fn no_such_method(method: &str) -> ErrorObject {
    ErrorObject::new(METHOD_NOT_FOUND, format!("there is no method {method}"))
}

/// The result of a handshake.
pub(super) fn greeting(given: &InitializeParams) -> InitializeResult {
    InitializeResult {
        protocol_version: Revision::negotiate(&given.protocol_version).as_str().to_owned(),
        capabilities: ServerCapabilities::default(),
        server_info: server_info(),
        instructions: INSTRUCTIONS.to_owned(),
    }
}

/// The result of `server/discover`.
pub(super) fn discovery() -> DiscoverResult {
    DiscoverResult {
        result_type: ResultType::Complete,
        supported_versions: Revision::known_dates(),
        capabilities: ServerCapabilities::default(),
        instructions: INSTRUCTIONS.to_owned(),
        cache: CacheHints::default(),
        meta: ServerMeta { server_info: server_info() },
    }
}

fn server_info() -> Implementation {
    Implementation { name: "posthaste".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

impl Lifecycle {
    fn write<R: Serialize>(self, result: R) -> String {
        match self {
            Self::WithSessions => text(&result),
            Self::Sessionless => text(&Complete { result_type: ResultType::Complete, cache: None, result }),
        }
    }

    fn write_cacheable<R: Serialize>(self, result: R) -> String {
        let cache = Some(CacheHints::default());
        match self {
            Self::WithSessions => text(&result),
            Self::Sessionless => text(&Complete { result_type: ResultType::Complete, cache, result }),
        }
    }
}

/// Wire types are always writable as JSON.
pub(super) fn text<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Reads the params of a request.
pub(super) fn read<'p, T: Deserialize<'p>>(params: Option<&'p RawValue>) -> Result<T, ErrorObject> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|error| ErrorObject::new(INVALID_PARAMS, format!("params: {error}")))
}

/// The error of a request about a resource.
pub(super) fn resource_error(lifecycle: Lifecycle, error: DoorError, uri: &str) -> ErrorObject {
    let is_missing = error.is_missing() && lifecycle == Lifecycle::WithSessions;
    let code = if is_missing { RESOURCE_NOT_FOUND } else { INVALID_PARAMS };
    let data = to_raw_value(&ResourceErrorData { uri: uri.to_owned() }).ok();
    ErrorObject { data, ..ErrorObject::new(code, error.message) }
}
