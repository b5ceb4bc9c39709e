//! The setup: registers every agent at its door, exchanges consent, and opens conversations.

use std::collections::HashMap;
use std::sync::Arc;

use posthaste_engine::stamp;
use posthaste_wire::control::{
    ContactParams, RegisterParams, TokenCreateParams, TokenCreateResult, TokenRole,
};
use serde_json::json;

use super::mcp;
use super::plan::{Door, Plan};
use super::server::{Place, TestServer};
use super::shared::{REALM, Shared};
use crate::clients::{Connection, Peer, Signer};
use posthaste::cli::exit::{Exit, Failure};
use posthaste_files::MailDir;

/// What some agents need besides the shared state.
pub(super) struct Fleet {
    pub(super) shared: Arc<Shared>,
    pub(super) signers: HashMap<u32, Signer>,
    pub(super) mail: Arc<MailDir>,
}

pub(super) async fn prepare(
    server: &TestServer,
    place: &Place,
    plan: Plan,
    seed: u64,
    rate: u32,
) -> Result<Fleet, Failure> {
    let mut line = Connection::connect(&server.address, &server.token).await?;
    let mail = Arc::new(MailDir::open_or_make(&place.mail)?);
    let mut tokens = Vec::new();
    let mut signers = HashMap::new();
    let mut identities = Connection::to(&server.address, None, "/identity").await?;
    for (number, agent) in (0_u32..).zip(&plan.agents) {
        let mut token = String::new();
        match agent.door {
            Door::Own => line.call("register", &registration(&agent.name)).await?,
            Door::Files => {
                mail.mailbox_or_make(&agent.name)?;
                line.call("register", &registration(&agent.name)).await?;
            }
            Door::Airc => {
                let signer = Signer::register(&mut identities, agent.name.clone(), number).await?;
                signers.insert(number, signer);
            }
            Door::Map | Door::Mcp | Door::Visitor => {
                token = make_token(&mut line, TokenRole::Agent, &agent.name).await?
            }
            Door::Swarm => token = make_token(&mut line, TokenRole::User, &agent.name).await?,
            Door::Follower => {}
        }
        match agent.door {
            Door::Map => drop(enter(server, &token, &agent.name).await?),
            Door::Mcp => register(server, &token, &agent.name).await?,
            _ => {}
        }
        tokens.push(token);
    }
    for (number, agent) in (0_u32..).zip(&plan.agents) {
        for other in agent.recipients.iter().filter(|other| plan.agent(**other).door == Door::Airc) {
            let (me, other) = (plan.name(number), plan.name(*other));
            line.call("contact.ask", &contact(me, other)).await?;
            line.call("contact.accept", &contact(other, me)).await?;
        }
    }
    let mut conversations = Vec::new();
    for participants in &plan.conversations {
        let Some((&first, others)) = participants.split_first() else { continue };
        let mut peer = enter(server, &tokens[first as usize], plan.name(first)).await?;
        let others: Vec<_> =
            others.iter().map(|of| json!({ "id": plan.name(*of), "role": "assistant" })).collect();
        let made =
            peer.call("mail/create", &json!({ "subject": "soak", "initialParticipants": others })).await?;
        conversations.push(made["conversation"]["id"].as_str().unwrap_or_default().to_owned());
        peer.close().await;
    }
    let shared = Shared::new(
        server.address.clone(),
        server.token.clone(),
        tokens,
        conversations,
        place.mail.clone(),
        plan,
        seed,
        rate,
    );
    Ok(Fleet { shared: Arc::new(shared), signers, mail })
}

fn registration(name: &str) -> RegisterParams {
    RegisterParams { id: Some(name.to_owned()), ..RegisterParams::default() }
}

fn contact(agent: &str, other: &str) -> ContactParams {
    ContactParams { agent: Some(agent.to_owned()), other: other.to_owned(), reason: None }
}

/// A token that is valid longer than any soak.
async fn make_token(line: &mut Connection, role: TokenRole, name: &str) -> Result<String, Failure> {
    let expires_at = Some(stamp::now() + 30 * 24 * 3_600_000);
    let params = TokenCreateParams { role, name: name.to_owned(), observe: false, expires_at };
    Ok(line.ask::<TokenCreateResult>("token.create", &params).await?.token)
}

/// Registers a MAP agent.
async fn enter(server: &TestServer, token: &str, name: &str) -> Result<Peer, Failure> {
    let mut peer = Peer::dial(&format!("ws://{}/map?token={token}", server.address)).await?;
    peer.call("map/connect", &json!({ "protocolVersion": 1, "participantType": "agent" })).await?;
    let entry = json!({ "agentId": name, "name": name, "role": "soaker" });
    // The server may not have noticed yet that an earlier connection is closed.
    for _ in 0..20 {
        if peer.call("map/agents/register", &entry).await.is_ok() {
            return Ok(peer);
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Err(Failure::new(Exit::Failed, format!("{name} could not register by MAP")))
}

async fn register(server: &TestServer, token: &str, name: &str) -> Result<(), Failure> {
    let mut line = Connection::to(&server.address, Some(token), "/mcp").await?;
    let given = json!({ "project_key": REALM, "program": "soak", "model": "none", "name": name });
    let answer = serde_json::from_slice(line.post(&mcp::call("register_agent", &given)).await?)?;
    mcp::result(answer).map(drop).map_err(|why| Failure::new(Exit::Failed, format!("{name}: {why}")))
}
