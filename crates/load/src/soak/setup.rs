//! Before the fleet comes: everybody is entered by the door that is its own, those who need consent have given it, and
//! conversations are open.

use std::collections::HashMap;
use std::sync::Arc;

use posthaste_engine::stamp;
use serde_json::json;

use super::field::{Field, REALM};
use super::mcp;
use super::office::{Office, Place};
use super::plan::{Door, Plan};
use crate::clients::{Line, Peer, Signer};
use posthaste::cli::exit::{Exit, Failure};
use posthaste_files::MailDir;

/// What some of them need besides the field.
pub(super) struct Fleet {
    pub(super) field: Arc<Field>,
    pub(super) signers: HashMap<u32, Signer>,
    pub(super) mail: Arc<MailDir>,
}

pub(super) async fn prepare(
    office: &Office,
    place: &Place,
    plan: Plan,
    seed: u64,
    rate: u32,
) -> Result<Fleet, Failure> {
    let mut line = Line::connect(&office.address, &office.token).await?;
    let mail = Arc::new(MailDir::open_or_make(&place.mail)?);
    let mut tokens = Vec::new();
    let mut signers = HashMap::new();
    let mut identities = Line::to(&office.address, None, "/identity").await?;
    for (number, agent) in (0_u32..).zip(&plan.agents) {
        let mut token = String::new();
        match agent.door {
            Door::Own => line.call("register", &json!({ "id": agent.name })).await?,
            Door::Files => {
                mail.mailbox_or_make(&agent.name)?;
                line.call("register", &json!({ "id": agent.name })).await?;
            }
            Door::Airc => {
                let signer = Signer::register(&mut identities, agent.name.clone(), number).await?;
                signers.insert(number, signer);
            }
            Door::Map | Door::Mcp | Door::Visitor => {
                token = make_token(&mut line, "agent", &agent.name).await?
            }
            Door::Swarm => token = make_token(&mut line, "user", &agent.name).await?,
            Door::Follower => {}
        }
        match agent.door {
            Door::Map => drop(enter(office, &token, &agent.name).await?),
            Door::Mcp => register(office, &token, &agent.name).await?,
            _ => {}
        }
        tokens.push(token);
    }
    for (number, agent) in (0_u32..).zip(&plan.agents) {
        for other in agent.circle.iter().filter(|other| plan.agent(**other).door == Door::Airc) {
            let (me, other) = (plan.name(number), plan.name(*other));
            line.call("contact.ask", &json!({ "agent": me, "other": other })).await?;
            line.call("contact.accept", &json!({ "agent": other, "other": me })).await?;
        }
    }
    let mut conversations = Vec::new();
    for table in &plan.conversations {
        let Some((&first, others)) = table.split_first() else { continue };
        let mut peer = enter(office, &tokens[first as usize], plan.name(first)).await?;
        let others: Vec<_> =
            others.iter().map(|of| json!({ "id": plan.name(*of), "role": "assistant" })).collect();
        let made =
            peer.call("mail/create", &json!({ "subject": "soak", "initialParticipants": others })).await?;
        conversations.push(made["conversation"]["id"].as_str().unwrap_or_default().to_owned());
        peer.close().await;
    }
    let field = Field::new(
        office.address.clone(),
        office.token.clone(),
        tokens,
        conversations,
        place.mail.clone(),
        plan,
        seed,
        rate,
    );
    Ok(Fleet { field: Arc::new(field), signers, mail })
}

/// A token that outlives any soak.
async fn make_token(line: &mut Line, role: &str, name: &str) -> Result<String, Failure> {
    let end = stamp::now() + 30 * 24 * 3_600_000;
    let made = line.ask("token.create", &json!({ "role": role, "name": name, "expires_at": end })).await?;
    Ok(made["token"].as_str().unwrap_or_default().to_owned())
}

/// A MAP agent, entered into the address book.
async fn enter(office: &Office, token: &str, name: &str) -> Result<Peer, Failure> {
    let mut peer = Peer::dial(&format!("ws://{}/map?token={token}", office.address)).await?;
    peer.call("map/connect", &json!({ "protocolVersion": 1, "participantType": "agent" })).await?;
    let entry = json!({ "agentId": name, "name": name, "role": "soaker" });
    // The office may not have noticed yet that an earlier connection is gone.
    for _ in 0..20 {
        if peer.call("map/agents/register", &entry).await.is_ok() {
            return Ok(peer);
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Err(Failure::new(Exit::Failed, format!("{name} could not register by MAP")))
}

async fn register(office: &Office, token: &str, name: &str) -> Result<(), Failure> {
    let mut line = Line::to(&office.address, Some(token), "/mcp").await?;
    let given = json!({ "project_key": REALM, "program": "soak", "model": "none", "name": name });
    let answer = serde_json::from_slice(line.post(&mcp::call("register_agent", &given)).await?)?;
    mcp::result(answer).map(drop).map_err(|why| Failure::new(Exit::Failed, format!("{name}: {why}")))
}
