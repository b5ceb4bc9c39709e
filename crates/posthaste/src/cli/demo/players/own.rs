//! A script: the office's own methods over HTTP, with a token of its own.

use serde_json::{Value, json};

use super::cannot;
use crate::cli::client::Client;
use crate::cli::demo::stage::Stage;
use crate::cli::demo::story::{Act, Part, Props};
use crate::cli::exit::Failure;
use posthaste_engine::nouns::RealmName;
use posthaste_engine::stamp;

pub(in crate::cli::demo) struct OwnPlayer {
    name: String,
    client: Client,
    realm: RealmName,
}

impl OwnPlayer {
    pub(super) async fn enter(stage: &Stage, part: &Part) -> Result<Self, Failure> {
        let client = Client::bare(stage.url().to_owned())?.with_token(Some(stage.token(part.name).await?));
        let player = Self { name: part.name.to_owned(), client, realm: stage.realm().clone() };
        let entry = json!({ "id": part.name, "name": part.name, "role": part.role, "kind": part.kind });
        player.call("register", entry).await?;
        Ok(player)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, Failure> {
        self.client.call(Some(&self.realm), method, params).await
    }

    pub(super) async fn perform(&mut self, props: &Props, act: &Act) -> Result<Option<String>, Failure> {
        match act {
            Act::Send(letter) => {
                let mut params = json!({
                    "to": letter.to,
                    "subject": letter.subject,
                    "body": letter.body,
                    "priority": letter.priority,
                    "ack_required": letter.ack,
                });
                if let Some(name) = &letter.within {
                    params["conversation"] = props.id(name).into();
                }
                if let Some(millis) = letter.expires_in {
                    params["expires_at"] = (stamp::now() + millis).into();
                }
                Ok(self.call("send", params).await?["id"].as_str().map(str::to_owned))
            }
            Act::AnswerMail => {
                let inbox = self.call("inbox", json!({ "unread": true, "limit": 20 })).await?;
                for message in inbox["messages"].as_array().into_iter().flatten() {
                    let method = if message["ack_required"] == true { "ack" } else { "read" };
                    let response = (method == "ack").then_some("on it");
                    self.call(method, json!({ "message": message["id"], "response": response })).await?;
                }
                Ok(None)
            }
            Act::Reserve { scope, paths, exclusive, reason, minutes, .. } => {
                let params = json!({
                    "scope": scope, "paths": paths, "exclusive": exclusive, "reason": reason,
                    "expires_at": stamp::now() + minutes * 60_000,
                });
                let made = self.call("reserve", params).await?;
                Ok(made["key"].as_str().map(str::to_owned))
            }
            Act::Release { prop } => {
                self.call("release", json!({ "keys": [props.id(prop)] })).await?;
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
