//! A server with every door open, and agents at each door.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use posthaste_host::http::listen::ListenOptions;
use serde_json::{Value, json};

use super::Correspondent;
use super::airc::AtAirc;
use super::files::InFiles;
use super::map::AtMap;
use super::mcp::AtMcp;
use super::swarm::{Hosted, InSwarm};
use crate::airc::Agent;
use crate::harness::{Listening, TestDir, listen};
use crate::mcp::client::Mcp;
use crate::office::Office;

/// The realm of all doors; a swarm's realm has the swarm's name.
pub(super) const REALM: &str = "team";

/// Turns that the hosted agent was given.
pub(super) type Turns = Arc<Mutex<Vec<Value>>>;

/// A server with every door open.
pub(super) struct Everywhere {
    pub(super) dir: TestDir,
    pub(super) office: Office,
    pub(super) turns: Turns,
    _hook: Listening,
}

/// The program of the agent `parrot`: answers the sender of the last message.
async fn hook(State(turns): State<Turns>, Json(turn): Json<Value>) -> Json<Value> {
    let mail = turn["inbox"].as_array().and_then(|inbox| inbox.last()).cloned().unwrap_or_default();
    turns.lock().unwrap().push(turn);
    let (payload, sender) = (&mail["message"], &mail["message"]["sender"]["address"]);
    let body = format!("answer to {}", payload["body"].as_str().unwrap_or_default());
    let subject = format!("Re: {}", payload["subject"].as_str().unwrap_or_default());
    Json(json!({ "calls": [
        { "tool": "send_response", "args": { "target": sender, "subject": subject, "body": body } },
    ] }))
}

impl Everywhere {
    pub(super) async fn open() -> Self {
        Self::open_with(&[]).await
    }

    pub(super) async fn open_with(flags: &[&str]) -> Self {
        let turns = Turns::default();
        let app = Router::new().route("/turn", post(hook)).with_state(turns.clone());
        let hook = listen(app, ListenOptions::default()).await;
        let connected = |name: &str| json!({ "name": name, "driver": "connected", "comm_targets": ["boss"] });
        let file = json!({
            "name": REALM, "version": "1.3", "entrypoint": "boss", "actions": [], "agents": [
                {
                    "name": "boss", "driver": { "builtin": "script" }, "enable_entrypoint": true,
                    "can_complete_tasks": true,
                    "comm_targets": ["map_r", "airc_r", "mcp_r", "files_r", "parrot"],
                },
                {
                    "name": "parrot", "comm_targets": ["boss"],
                    "driver": { "http": format!("http://{}/turn", hook.address) },
                },
                connected("map_r"), connected("airc_r"), connected("mcp_r"), connected("files_r"),
            ],
        });
        let dir = TestDir::new();
        let swarm = dir.write("swarm.json", &file.to_string());
        let mail = dir.path().join("mail");
        std::fs::create_dir(&mail).unwrap();
        let mut args = vec!["--swarm", swarm.to_str().unwrap(), "--mail-dir", mail.to_str().unwrap()];
        args.extend(flags);
        // The tests send more in a second than AIRC's quotas allow.
        let env = ["MESSAGES", "BROADCASTS", "CONSENTS"].map(|what| format!("POSTHASTE_RATE_{what}"));
        let env: Vec<(&str, &str)> = env.iter().map(|name| (name.as_str(), "off")).collect();
        let office = Office::open_with(&dir.path().join("data"), &args, &env);
        Self { dir, office, turns, _hook: hook }
    }

    pub(super) fn mail(&self) -> PathBuf {
        self.dir.path().join("mail")
    }

    /// Waits until the bridge has registered the owner of a mailbox: agents of other doors get no files (F14).
    pub(super) async fn until_registered(&self, name: &str) {
        super::find("the owner of the mailbox", async || {
            let page = self.office.call("agents", json!({ "limit": 1000 })).await.unwrap();
            let mut agents = page["agents"].as_array().unwrap().iter();
            agents.any(|agent| agent["id"] == name && agent["door"] == "files").then_some(())
        })
        .await;
    }

    /// A token of the shared realm.
    pub(super) async fn token(&self, role: &str, name: &str) -> String {
        let made = self.office.call("token.create", json!({ "role": role, "name": name })).await.unwrap();
        made["token"].as_str().unwrap().to_owned()
    }

    /// An agent at a door. Those at `swarm` are hosted: the sender is `boss`, the recipient `parrot`.
    pub(super) async fn agent(&self, door: &str, name: &str) -> Box<dyn Correspondent> {
        match door {
            "map" => Box::new(self.at_map(name).await),
            "airc" => Box::new(AtAirc::new(Agent::new(self.office.url(), name).await)),
            "mcp" => Box::new(self.at_mcp(name).await),
            "files" => Box::new(InFiles::new(self.mail(), name)),
            "swarm" if name == "boss" => {
                let token = self.token("user", "ann").await;
                Box::new(InSwarm::new(self.office.url(), token))
            }
            "swarm" => Box::new(Hosted::new(self.turns.clone())),
            _ => panic!("there is no door {door}"),
        }
    }

    pub(super) async fn at_map(&self, name: &str) -> AtMap {
        let token = self.token("agent", name).await;
        AtMap::connect(self.office.url(), &token, name).await
    }

    pub(super) async fn at_mcp(&self, name: &str) -> AtMcp {
        let token = self.token("agent", name).await;
        let mcp = Mcp::at(&format!("{}/mcp", self.office.url()), Some(&token));
        let given = json!({ "project_key": REALM, "program": "test", "model": "m", "name": name });
        mcp.call("register_agent", given).await;
        AtMcp::new(mcp, name)
    }
}
