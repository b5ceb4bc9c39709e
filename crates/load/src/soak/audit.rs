//! The auditor: reads the whole history as it is written, and at the end compares what the office counts with what the
//! fleet counted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::field::Field;
use super::mark::{Channel, Mark};
use super::own::mark_of;
use super::phone::{Cut, Phone};
use super::swarm::open_tasks;

/// Events of one page.
const PAGE: usize = 500;

/// How far the auditor has come.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) last: AtomicI64,
    /// Set whenever there was nothing left to read.
    idle: AtomicU64,
}

/// Reads the history until told to stop.
pub(super) async fn read_history(field: Arc<Field>, place: Arc<Place>, stop: CancellationToken) {
    let mut phone = Phone::new(&field, &field.token);
    let mut last = 0;
    while !stop.is_cancelled() {
        let page = json!({ "after": last, "limit": PAGE, "wait": 500 });
        let page = match phone.own("events", &page).await {
            Ok(Ok(page)) => page,
            Ok(Err(why)) => {
                field.refused(&why, "the history");
                tokio::time::sleep(Duration::from_millis(500)).await;
                continue;
            }
            Err(Cut) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let events = page["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        for event in events {
            let seq = event["seq"].as_i64().unwrap_or_default();
            if seq != last + 1 {
                field.ledger.find("history: a gap", format!("event {seq} after {last}"));
            }
            last = seq;
            let mark = match event["kind"].as_str() {
                Some("message.sent") => mark_of(&event["message"]),
                Some("turn.added") => Mark::find(&event["turn"]["body"].to_string()),
                _ => None,
            };
            if let Some(mark) = mark {
                let id = event["message"]["id"].as_str().or_else(|| event["turn"]["turn"].as_str());
                field.ledger.in_books(mark, &format!("event {seq} ({})", id.unwrap_or("no id")));
            }
        }
        place.last.store(last, Ordering::Release);
        if events.is_empty() {
            place.idle.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Place {
    /// Waits until the auditor has twice found nothing more to read. False if that takes too long.
    pub(super) async fn caught_up(&self, patience: Duration) -> bool {
        let end = tokio::time::Instant::now() + patience;
        let before = self.idle.load(Ordering::Acquire);
        while self.idle.load(Ordering::Acquire) < before + 2 {
            if tokio::time::Instant::now() > end {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        true
    }
}

/// What the office says of itself against what the fleet knows. Each pair is in the report.
pub(super) async fn compare(field: &Field, place: &Place) -> Result<BTreeMap<String, [u64; 2]>, Cut> {
    let mut pairs = BTreeMap::new();
    let mut phone = Phone::new(field, &field.token);
    let listed = agents(field, &mut phone).await?;
    let (letters, acks) = inboxes(field, &mut phone).await?;
    let turns = conversations(field, &mut phone).await?;
    let kept = field.ledger.kept_by_recipient();
    let everybody = 0..u32::try_from(field.plan.agents.len()).unwrap_or(u32::MAX);
    let expected: u64 = everybody.clone().filter_map(|me| kept.get(&me)).sum();
    pairs.insert("letters in inboxes".to_owned(), [letters, expected]);
    let lasting = everybody.filter(|me| field.plan.reads_all(*me));
    let acked = lasting.map(|me| field.acked[me as usize].load(Ordering::Relaxed)).sum();
    pairs.insert("letters acknowledged by recipients".to_owned(), [acks, acked]);
    let all_tables =
        (0..).take(field.conversations.len()).filter_map(|of| kept.get(&Channel::turns(0, of).to));
    pairs.insert("turns in conversations".to_owned(), [turns, all_tables.sum()]);
    let (status, last) = settled_status(place, &mut phone).await?;
    let number = |name: &str| status[name].as_u64().unwrap_or(u64::MAX);
    pairs.insert("events".to_owned(), [number("events"), last]);
    pairs.insert("agents".to_owned(), [number("agents"), listed]);
    let held = field.held.iter().map(|held| held.load(Ordering::Relaxed)).sum();
    pairs.insert("reservations in force".to_owned(), [number("reservations"), held]);
    pairs.insert("open tasks".to_owned(), [open_tasks(&status), 0]);
    pairs.insert("commands in the queue".to_owned(), [number("queue"), 0]);
    for (what, [says, counted]) in &pairs {
        if says != counted {
            field.ledger.find("counters: differ", format!("{what}: the office says {says}, not {counted}"));
        }
    }
    Ok(pairs)
}

/// What the office counts about itself at a moment: who waits for mail, who follows, and what went wrong inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gauges {
    pub(super) attached: u64,
    pub(super) followers: u64,
    failed: u64,
    poisoned: u64,
}

impl Gauges {
    pub(super) async fn read(field: &Field) -> Result<Self, Cut> {
        Ok(Self::parse(&Phone::new(field, &field.token).text("/metrics").await?))
    }

    fn parse(text: &str) -> Self {
        let mut gauges = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            let value: u64 = value.parse().unwrap_or_default();
            match name.split('{').next() {
                Some("posthaste_attached_agents") => gauges.attached += value,
                Some("posthaste_followers") => gauges.followers += value,
                Some("posthaste_poisoned") => gauges.poisoned += value,
                Some("posthaste_verb_total") if name.contains(r#"outcome="failed""#) => {
                    gauges.failed += value
                }
                _ => {}
            }
        }
        gauges
    }

    /// What is not as it was before anybody came.
    pub(super) fn problem(&self, base: &Self) -> Option<String> {
        (self != base).then(|| format!("{self:?}, {base:?} before anybody came"))
    }
}

/// What the office says once nothing is on its way inside any more, and how far the auditor had come then. Files that were
/// taken out are still being noted as read for a moment.
async fn settled_status(place: &Place, phone: &mut Phone<'_>) -> Result<(Value, u64), Cut> {
    let mut tries = 0;
    loop {
        let (_, status) = phone.insist("GET", "/x-posthaste/status", "").await?;
        let last = u64::try_from(place.last.load(Ordering::Acquire)).unwrap_or_default();
        tries += 1;
        if tries == 50 || (status["queue"] == 0 && status["events"] == last) {
            return Ok((status, last));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Everybody who lives here is in the address book, once. Gives how many are in it.
async fn agents(field: &Field, phone: &mut Phone<'_>) -> Result<u64, Cut> {
    let mut found: HashMap<String, u64> = HashMap::new();
    let mut after = Value::Null;
    loop {
        let page = match phone.own_surely("agents", &json!({ "after": after, "limit": 500 })).await? {
            Ok(page) => page,
            Err(why) => {
                field.refused(&why, "the address book");
                break;
            }
        };
        for agent in page["agents"].as_array().into_iter().flatten() {
            *found.entry(agent["id"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        after = page["next"].clone();
        if after.is_null() {
            break;
        }
    }
    for agent in field.plan.agents.iter().filter(|agent| agent.door.takes_mail()) {
        match found.get(&agent.name) {
            Some(1) => {}
            count => {
                let text = format!("{} is there {} times", agent.name, count.unwrap_or(&0));
                field.ledger.find("address book: not once", text);
            }
        }
    }
    Ok(found.values().sum())
}

/// Every inbox once more from its beginning. Gives how many marked letters there are, and how many are acknowledged
/// among those of recipients that count what they acknowledge.
async fn inboxes(field: &Field, phone: &mut Phone<'_>) -> Result<(u64, u64), Cut> {
    let kept = field.ledger.kept_by_recipient();
    let (mut letters, mut acks) = (0, 0);
    for (me, agent) in (0_u32..).zip(&field.plan.agents).filter(|(_, agent)| agent.door.takes_mail()) {
        let (mut after, mut here, mut acked) = (json!(0), 0, 0);
        loop {
            let page = json!({ "agent": agent.name, "after": after, "order": "oldest", "limit": 500 });
            let page = match phone.own_surely("inbox", &page).await? {
                Ok(page) => page,
                Err(why) => {
                    field.refused(&why, &format!("the inbox of {}", agent.name));
                    break;
                }
            };
            let Some(page) = page["messages"].as_array().filter(|page| !page.is_empty()) else { break };
            for letter in page {
                after = letter["seq"].clone();
                here += u64::from(mark_of(letter).is_some_and(|mark| mark.channel.to == me));
                acked += u64::from(!letter["delivery"]["acked_at"].is_null());
            }
        }
        let expected = kept.get(&me).copied().unwrap_or_default();
        if here != expected {
            let text = format!("{}: {here} letters, {expected} in the history", agent.name);
            field.ledger.find("inbox: not what the history says", text);
        }
        letters += here;
        if agent.door.reads_all() {
            acks += acked;
            let counted = field.acked[me as usize].load(Ordering::Relaxed);
            if acked != counted {
                let text = format!("{}: {acked} letters are acknowledged, {counted} were", agent.name);
                field.ledger.find("inbox: acknowledgements", text);
            }
        }
    }
    Ok((letters, acks))
}

/// What the conversations say of their length, together.
async fn conversations(field: &Field, phone: &mut Phone<'_>) -> Result<u64, Cut> {
    let mut turns = 0;
    let mut cursor = Value::Null;
    loop {
        let page = match phone.own_surely("conversations", &json!({ "cursor": cursor, "limit": 500 })).await?
        {
            Ok(page) => page,
            Err(why) => {
                field.refused(&why, "the conversations");
                return Ok(turns);
            }
        };
        for one in page["conversations"].as_array().into_iter().flatten() {
            // Tasks are conversations as well.
            if field.conversations.iter().any(|id| one["id"] == id.as_str()) {
                turns += one["turns"].as_u64().unwrap_or_default();
            }
        }
        cursor = page["next"].clone();
        if cursor.is_null() {
            return Ok(turns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_are_read_from_the_metrics() {
        let text = "# HELP posthaste_followers Followers.\nposthaste_followers{realm=\"a\"} 2\n\
                    posthaste_followers{realm=\"b\"} 1\nposthaste_attached_agents{realm=\"a\"} 4\n\
                    posthaste_verb_total{realm=\"a\",verb=\"send\",outcome=\"done\"} 9\n\
                    posthaste_verb_total{realm=\"a\",verb=\"send\",outcome=\"failed\"} 3\nposthaste_poisoned{realm=\"a\"} 0\n";
        let gauges = Gauges::parse(text);
        assert_eq!(gauges, Gauges { attached: 4, followers: 3, failed: 3, poisoned: 0 });
        assert_eq!(gauges.problem(&gauges), None);
        assert!(gauges.problem(&Gauges::default()).is_some());
    }
}
