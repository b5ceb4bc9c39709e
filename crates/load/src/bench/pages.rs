//! Pages of a short conversation beside those of a long one: both are written first and then asked for in turn, so that a
//! slow moment of the machine is in both.

use std::time::Instant;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::map::{Figure, micros, new_conversation, turn};
use crate::clients::Peer;
use posthaste::cli::exit::{Exit, Failure};

/// Pages of each kind that are asked for, and how many before they are measured.
const PAGES: usize = 500;
const WARM_UP: usize = 20;
/// Turns on their way while a conversation is written.
const IN_FLIGHT: u64 = 512;

/// A conversation to turn the pages of.
pub(super) struct Filled {
    peer: Peer,
    conversation: String,
    /// The thread that every other turn is in.
    thread: String,
    turns: u64,
    /// The turns in its middle and shortly before its end.
    middle: String,
    late: String,
}

impl Filled {
    /// Writes a conversation of `turns` turns on a server.
    pub(super) async fn fill(url: &str, turns: u64) -> Result<(Self, Figure), Failure> {
        let mut peer = Peer::open(url, "agent", "bench").await?;
        let conversation = new_conversation(&mut peer).await?;
        let mut body = turn(&conversation, &"z".repeat(120));
        let root = peer.call("mail/turn", &body).await?;
        let root = json!({ "conversationId": conversation, "rootTurnId": root["turn"]["id"] });
        let made = peer.call("mail/thread/create", &root).await?;
        let thread = made["thread"]["id"].as_str().unwrap_or_default().to_owned();
        let outside = body.to_string();
        body["threadId"] = thread.as_str().into();
        let inside = body.to_string();
        let (mut ids, mut asked, started) = (Vec::new(), 0, Instant::now());
        while (ids.len() as u64) < turns {
            while asked < turns && asked - (ids.len() as u64) < IN_FLIGHT {
                peer.put("mail/turn", if asked % 2 == 0 { &inside } else { &outside }).await?;
                asked += 1;
            }
            peer.flush().await?;
            let mut next = Some(Ok(peer.frame().await?));
            while let Some(frame) = next {
                ids.push(turn_id(&frame?)?);
                next = peer.frame_at_hand();
            }
        }
        let per_second = turns as f64 / started.elapsed().as_secs_f64();
        let name = format!("fill with {turns} turns");
        let figure = Figure { name, per_second: Some(per_second), ..Figure::default() };
        let at = |place: usize| ids.get(place).cloned().unwrap_or_default();
        let (middle, late) = (at(ids.len() / 2), at(ids.len().saturating_sub(60)));
        Ok((Self { peer, conversation, thread, turns, middle, late }, figure))
    }

    /// Every kind of page, by name.
    fn pages(&self) -> Vec<(&'static str, Value)> {
        let Self { peer, conversation, thread, middle, late, .. } = self;
        let me = &peer.agent;
        let before_middle = json!({ "filter": { "beforeTurnId": middle }, "order": "desc" });
        let own_after_middle = json!({ "filter": { "participantId": me, "afterTurnId": middle } });
        let own_of_absent_type = json!({ "filter": { "participantId": me, "contentTypes": ["data"] } });
        let own_in_thread =
            json!({ "filter": { "threadId": thread, "participantId": me, "afterTurnId": middle } });
        let absent_in_thread = json!({ "filter": { "threadId": thread, "participantId": "absent" } });
        let absent_type_in_thread = json!({ "filter": { "threadId": thread, "contentTypes": ["data"] } });
        let own_of_absent_type_in_thread =
            json!({ "filter": { "threadId": thread, "participantId": me, "contentTypes": ["data"] } });
        let mut pages = vec![
            ("first", json!({})),
            ("last, newest first", json!({ "order": "desc" })),
            ("after the middle", json!({ "filter": { "afterTurnId": middle } })),
            ("before the middle, newest first", before_middle),
            ("near the end", json!({ "filter": { "afterTurnId": late } })),
            ("by author", json!({ "filter": { "participantId": me } })),
            ("by author, after the middle", own_after_middle),
            ("by an absent author", json!({ "filter": { "participantId": "absent" } })),
            ("by type", json!({ "filter": { "contentTypes": ["text"] } })),
            ("by an absent type", json!({ "filter": { "contentTypes": ["data"] } })),
            ("by author and absent type", own_of_absent_type),
            ("of a thread, newest first", json!({ "filter": { "threadId": thread }, "order": "desc" })),
            ("of a thread by author, after the middle", own_in_thread),
            ("of a thread by an absent author", absent_in_thread),
            ("of a thread by an absent type", absent_type_in_thread),
            ("of a thread by author and absent type", own_of_absent_type_in_thread),
            ("before all time", json!({ "filter": { "beforeTimestamp": 1 } })),
            ("after all time", json!({ "filter": { "afterTimestamp": 9_000_000_000_000_u64 } })),
        ];
        for (_, params) in &mut pages {
            params["conversationId"] = conversation.as_str().into();
            params["limit"] = 50.into();
        }
        pages
    }
}

/// Asks for every kind of page of each conversation, turn by turn. The last figure says which kind differed most between
/// the first conversation and the last.
pub(super) async fn measure(filled: &mut [Filled]) -> Result<Vec<Figure>, Failure> {
    let pages: Vec<_> = filled.iter().map(Filled::pages).collect();
    let kinds = pages.first().map_or(0, Vec::len);
    let (mut figures, mut worst) = (Vec::new(), (0.0, ""));
    for kind in 0..kinds {
        let mut times = vec![Vec::with_capacity(PAGES); filled.len()];
        for round in 0..WARM_UP + PAGES {
            for ((one, pages), times) in filled.iter_mut().zip(&pages).zip(&mut times) {
                let asked = Instant::now();
                one.peer.call("mail/turns/list", &pages[kind].1).await?;
                if round >= WARM_UP {
                    times.push(micros(asked.elapsed()));
                }
            }
        }
        let mut medians = Vec::new();
        for ((one, pages), times) in filled.iter().zip(&pages).zip(&mut times) {
            times.sort_unstable();
            let rank = |share: f64| times.get((times.len() as f64 * share) as usize).copied();
            let name = format!("page {}, of {}", pages[kind].0, one.turns);
            figures.push(Figure { name, p50_us: rank(0.5), p99_us: rank(0.99), ..Figure::default() });
            medians.push(rank(0.5).unwrap_or_default());
        }
        if let (Some(first), Some(last)) = (medians.first(), medians.last()) {
            let ratio = *last as f64 / (*first).max(1) as f64;
            if ratio > worst.0 {
                worst = (ratio, pages[0][kind].0);
            }
        }
    }
    if filled.len() > 1 {
        let name = format!("at worst {:.2} times: page {}", worst.0, worst.1);
        figures.push(Figure { name, ..Figure::default() });
    }
    Ok(figures)
}

/// The name of the turn that an answer tells of.
fn turn_id(answer: &Utf8Bytes) -> Result<String, Failure> {
    let id = answer.find("\"turn-").and_then(|at| answer[at + 1..].split('"').next());
    id.map(str::to_owned).ok_or_else(|| Failure::new(Exit::Failed, format!("no turn was recorded: {answer}")))
}
