//! A script: calls the server's own methods over HTTP, with a token of its own.

use posthaste_engine::nouns::RealmName;
use posthaste_engine::stamp;
use posthaste_wire::control::{
    AgentKind, Delivery, InboxParams, InboxResult, MarkParams, PageSize, RegisterParams, RegisterResult,
    ReleaseParams, ReleaseResult, ReserveParams, ReserveResult, SendParams, SendResult,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;

use super::cannot;
use crate::cli::client::Client;
use crate::cli::demo::stage::Stage;
use crate::cli::demo::story::{Act, Part, Props};
use crate::cli::exit::Failure;

/// Messages that are answered at a time.
const INBOX_PAGE: usize = 20;

pub(in crate::cli::demo) struct OwnPlayer {
    name: String,
    client: Client,
    realm: RealmName,
}

impl OwnPlayer {
    pub(super) async fn enter(stage: &Stage, part: &Part) -> Result<Self, Failure> {
        let client = Client::bare(stage.url().to_owned())?.with_token(Some(stage.token(part.name).await?));
        let player = Self { name: part.name.to_owned(), client, realm: stage.realm().clone() };
        let entry = RegisterParams {
            id: Some(part.name.to_owned()),
            name: Some(part.name.to_owned()),
            kind: Some(if part.is_person { AgentKind::User } else { AgentKind::Agent }),
            role: Some(part.role.to_owned()),
        };
        player.call::<RegisterResult>("register", entry).await?;
        Ok(player)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    async fn call<R: DeserializeOwned>(&self, method: &str, params: impl Serialize) -> Result<R, Failure> {
        self.client.call(Some(&self.realm), method, params).await
    }

    pub(super) async fn perform(&mut self, props: &Props, act: &Act) -> Result<Option<String>, Failure> {
        match act {
            Act::Send(draft) => {
                let params = SendParams {
                    from: None,
                    to: draft.to.clone(),
                    cc: Vec::new(),
                    bcc: Vec::new(),
                    kind: String::new(),
                    subject: Some(draft.subject.clone()),
                    body: to_raw_value(&draft.body)?,
                    priority: Some(draft.priority),
                    ack_required: draft.ack,
                    expires_at: draft.expires_in.map(|millis| stamp::now() + millis),
                    conversation: draft.within.as_ref().map(|name| props.id(name)),
                    in_reply_to: None,
                    key: None,
                    attachments: Vec::new(),
                };
                Ok(Some(self.call::<SendResult>("send", params).await?.id))
            }
            Act::AnswerMail => {
                let params =
                    InboxParams { unread: true, limit: PageSize(INBOX_PAGE), ..InboxParams::default() };
                let inbox: InboxResult = self.call("inbox", params).await?;
                for found in inbox.messages {
                    let (method, response) = match found.message.ack_required {
                        true => ("ack", Some("on it".to_owned())),
                        false => ("read", None),
                    };
                    let params = MarkParams { agent: None, message: found.message.id, response };
                    self.call::<Delivery>(method, params).await?;
                }
                Ok(None)
            }
            Act::Reserve { scope, paths, exclusive, reason, minutes, .. } => {
                let params = ReserveParams {
                    agent: None,
                    key: None,
                    scope: scope.clone(),
                    directory: None,
                    paths: paths.clone(),
                    exclusive: *exclusive,
                    reason: Some(reason.clone()),
                    expires_at: stamp::now() + minutes * 60_000,
                };
                Ok(Some(self.call::<ReserveResult>("reserve", params).await?.reservation.key))
            }
            Act::Release { prop } => {
                let params = ReleaseParams { keys: vec![props.id(prop)], ..ReleaseParams::default() };
                self.call::<ReleaseResult>("release", params).await?;
                Ok(None)
            }
            Act::Task { .. }
            | Act::Move { .. }
            | Act::Open { .. }
            | Act::Say { .. }
            | Act::Thread { .. }
            | Act::State(_) => Err(cannot(act)),
        }
    }
}
