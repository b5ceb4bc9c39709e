//! The door as rmcp sees it: the same table, resources and prompts, in rmcp's types, which stay inside this door.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::request::Parts;
use posthaste_engine::one_request;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, Prompt, PromptArgument, PromptMessage, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate, ResourceUpdatedNotificationParam, Role, ServerCapabilities, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, Tool, ToolAnnotations, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use serde_json::json;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::answer::{EMPTY, failure};
use super::call::{Call, Progress, Visitor};
use super::errors::Problem;
use super::resources::Contents;
use super::updates::{self, MOST_WATCHED};
use super::{prompts, resources, table};
use crate::Door;

/// What a client is told of the office when it connects.
const INSTRUCTIONS: &str = "posthaste: mail between agents. Start with macro_start_session(human_key=<absolute path of the \
    working directory>, program, model); keep the registration_token. Read with fetch_inbox or wait_for_mail, answer with \
    reply_message, reserve files before editing them. A message to operator reaches the person who runs this server.";

/// One session, or one call, at the door.
pub(super) struct Server {
    shared: Door,
    /// The resources a session is told of; forgetting one ends its telling.
    watched: Mutex<HashMap<String, DropGuard>>,
}

impl Server {
    pub(super) fn new(shared: Door) -> Self {
        Self { shared, watched: Mutex::default() }
    }

    fn call(&self, context: &RequestContext<RoleServer>) -> Result<Call, ErrorData> {
        let visitor =
            context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Visitor>()).cloned();
        let visitor = visitor.ok_or_else(|| ErrorData::internal_error("nobody is at the door", None))?;
        Ok(Call::new(self.shared.clone(), visitor))
    }
}

fn shown(tool: &table::Tool) -> Tool {
    let effect = tool.line.effect;
    let mut hints = ToolAnnotations::new().read_only(effect.read_only).open_world(effect.open_world);
    if !effect.read_only {
        hints = hints.destructive(effect.destructive).idempotent(effect.idempotent);
    }
    Tool::new(tool.line.name, tool.line.about, Arc::new(tool.schema.clone())).with_annotations(hints)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("posthaste", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = table::shown(self.shared.tool_set()).map(shown).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        table::find(name).map(shown)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut call = self.call(&context)?;
        call.progress = progress(&context);
        let given = request.arguments.unwrap_or_default();
        let stop = context.ct.clone();
        let ran = tokio::select! {
            ran = table::run(&call, &request.name, given) => ran,
            () = stop.cancelled() => Err(Problem::new("CANCELLED", "the call was cancelled")),
        };
        let forms = match ran {
            Ok(answer) => answer.forms(),
            Err(problem) => failure(&request.name, &problem),
        };
        let mut content = vec![ContentBlock::text(forms.text)];
        content.extend(forms.words.map(|words| {
            ContentBlock::resource(ResourceContents::text(words, EMPTY).with_mime_type("text/plain"))
        }));
        let mut result = CallToolResult::success(content);
        result.structured_content = Some(forms.structured);
        result.is_error = Some(forms.is_error);
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let rows = resources::FIXED.iter().map(|(uri, about)| {
            Resource::new(*uri, resources::name_of(uri))
                .with_description(*about)
                .with_mime_type(resources::JSON)
        });
        Ok(ListResourcesResult::with_all_items(rows.collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let rows = resources::TEMPLATES.iter().map(|(uri, about)| {
            ResourceTemplate::new(*uri, resources::name_of(uri))
                .with_description(*about)
                .with_mime_type(resources::JSON)
        });
        Ok(ListResourceTemplatesResult::with_all_items(rows.collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let call = self.call(&context)?;
        let read = one_request(resources::read(&call, &request.uri));
        let contents = read.await.map_err(|problem| resource_error(problem, &request.uri))?;
        let contents = match contents {
            Contents::Json(value) => {
                ResourceContents::text(value.to_string(), request.uri).with_mime_type(resources::JSON)
            }
            Contents::Blob { media, base64 } => {
                ResourceContents::blob(base64, request.uri).with_mime_type(media)
            }
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let rows = prompts::PROMPTS.iter().map(|prompt| {
            let takes = prompt.takes.iter().map(|(name, about, required)| {
                PromptArgument::new(*name).with_description(*about).with_required(*required)
            });
            Prompt::new(prompt.name, Some(prompt.about), Some(takes.collect()))
        });
        Ok(ListPromptsResult::with_all_items(rows.collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let made = prompts::make(&request.name, &request.arguments.unwrap_or_default());
        let made = made.map_err(|problem| ErrorData::invalid_params(problem.message, None))?;
        let mut result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, made.text)]);
        result.description = Some(made.about.to_owned());
        Ok(result.into())
    }

    // The revisions before 2026-07-28 subscribe this way.
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let call = self.call(&context)?;
        let watch = updates::watch(&call, &request.uri).await;
        let watch = watch.map_err(|problem| resource_error(problem, &request.uri))?;
        let stop = CancellationToken::new();
        {
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            if watched.len() >= MOST_WATCHED && !watched.contains_key(&request.uri) {
                let text = format!("a session watches {MOST_WATCHED} resources at most");
                return Err(ErrorData::invalid_params(text, None));
            }
            watched.insert(request.uri.clone(), stop.clone().drop_guard());
        }
        let (peer, uri) = (context.peer.clone(), request.uri);
        let tell = move || {
            let (peer, uri) = (peer.clone(), uri.clone());
            async move { peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok() }
        };
        let office = self.shared.stop().clone();
        tokio::spawn(async move {
            tokio::select! {
                () = watch.tell(tell) => {}
                () = stop.cancelled() => {}
                () = office.cancelled() => {}
            }
        });
        Ok(())
    }

    // The revisions before 2026-07-28 unsubscribe this way.
    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut uris = requested.resource_subscriptions.clone().unwrap_or_default();
        uris.truncate(MOST_WATCHED);
        Some(SubscriptionFilter::builder().resource_subscriptions(uris).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let call = self.call(context.request_context())?;
        let mut telling = Vec::new();
        for uri in context.accepted().resource_subscriptions.clone().unwrap_or_default() {
            let watch = updates::watch(&call, &uri).await;
            let watch = watch.map_err(|problem| resource_error(problem, &uri))?;
            let sink = context.sink().clone();
            let tell = move || {
                let (sink, uri) = (sink.clone(), uri.clone());
                async move { sink.notify_resource_updated(uri).await.is_ok() }
            };
            telling.push(watch.tell(tell));
        }
        tokio::select! {
            // Without anything to tell there is still somebody listening.
            _ = futures_util::future::join_all(telling), if !context.accepted().resource_subscriptions.as_deref().unwrap_or_default().is_empty() => {}
            () = context.cancelled() => {}
            () = self.shared.stop().cancelled() => {}
        }
        Ok(())
    }
}

/// How the caller is told how far a call has come, if it wants to be.
fn progress(context: &RequestContext<RoleServer>) -> Option<Progress> {
    let token = context.meta.get_progress_token()?;
    let peer = context.peer.clone();
    Some(Arc::new(move |done, whole, text| {
        let mut note = ProgressNotificationParam::new(token.clone(), done);
        (note.total, note.message) = (Some(whole), Some(text));
        let peer = peer.clone();
        Box::pin(async move { drop(peer.notify_progress(note).await) })
    }))
}

fn resource_error(problem: Problem, uri: &str) -> ErrorData {
    let code = if problem.is_missing() { ErrorCode::RESOURCE_NOT_FOUND } else { ErrorCode::INVALID_PARAMS };
    ErrorData::new(code, problem.message, Some(json!({ "uri": uri })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_shown_alike_in_both_ways() {
        for tool in table::TABLE.iter() {
            assert_eq!(serde_json::to_value(shown(tool)).unwrap(), tool.shown());
        }
    }
}
