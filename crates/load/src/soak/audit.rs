//! The auditor: reads the whole event log as it is written, and at the end compares the server's counters with those of the
//! fleet.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use posthaste_wire::control::{
    AgentsParams, AgentsResult, ConversationsParams, ConversationsResult, Event, EventsParams, EventsResult,
    InboxMessage, InboxOrder, InboxParams, InboxResult, PageSize, STATUS_PATH, Status,
};
use tokio_util::sync::CancellationToken;

use super::http::{HttpClient, NoAnswer};
use super::own::tag_of;
use super::shared::Shared;
use super::tag::{Channel, Tag};

/// Rows of one page.
const PAGE: usize = 500;
/// How long one call waits for events, in milliseconds.
const EVENT_WAIT_MS: u64 = 500;

/// The auditor's position in the event log.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) last: AtomicI64,
    /// Set whenever there was nothing left to read.
    idle: AtomicU64,
}

/// Reads the event log until it is stopped.
pub(super) async fn read_events(shared: Arc<Shared>, place: Arc<Place>, stop: CancellationToken) {
    let mut http = HttpClient::new(&shared, &shared.token);
    let mut last = 0;
    while !stop.is_cancelled() {
        let params = EventsParams {
            after: Some(last),
            limit: PageSize(PAGE),
            wait: EVENT_WAIT_MS,
            ..EventsParams::default()
        };
        let page: EventsResult = match http.own("events", &params).await {
            Ok(Ok(page)) => page,
            Ok(Err(why)) => {
                shared.refused(&why, "the event log");
                tokio::time::sleep(Duration::from_millis(500)).await;
                continue;
            }
            Err(NoAnswer) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        for Event { seq, kind, message, turn, .. } in &page.events {
            let seq = *seq;
            if seq != last + 1 {
                shared.ledger.find("event log: a gap", format!("event {seq} after {last}"));
            }
            last = seq;
            let (tag, id) = match (kind.as_str(), message, turn) {
                ("message.sent", Some(message), _) => (tag_of(message), &message.id),
                ("turn.added", _, Some(turn)) => (Tag::find(&turn.body.to_string()), &turn.turn),
                _ => continue,
            };
            if let Some(tag) = tag {
                shared.ledger.in_database(tag, &format!("event {seq} ({id})"));
            }
        }
        place.last.store(last, Ordering::Release);
        if page.events.is_empty() {
            place.idle.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Place {
    /// Waits until the auditor has twice reached the end. False if that takes too long.
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

/// Compares the server's counters with those of the fleet. Each pair is in the report.
pub(super) async fn compare(shared: &Shared, place: &Place) -> Result<BTreeMap<String, [u64; 2]>, NoAnswer> {
    let mut pairs = BTreeMap::new();
    let mut http = HttpClient::new(shared, &shared.token);
    let listed = agents(shared, &mut http).await?;
    let (messages, acks) = inboxes(shared, &mut http).await?;
    let turns = conversations(shared, &mut http).await?;
    let kept = shared.ledger.kept_by_recipient();
    let numbers = 0..u32::try_from(shared.plan.agents.len()).unwrap_or(u32::MAX);
    let expected: u64 = numbers.clone().filter_map(|me| kept.get(&me)).sum();
    pairs.insert("messages in inboxes".to_owned(), [messages, expected]);
    let lasting = numbers.filter(|me| shared.plan.reads_all(*me));
    let acked = lasting.map(|me| shared.acked[me as usize].load(Ordering::Relaxed)).sum();
    pairs.insert("messages acknowledged by recipients".to_owned(), [acks, acked]);
    let all_tables =
        (0..).take(shared.conversations.len()).filter_map(|of| kept.get(&Channel::turns(0, of).to));
    pairs.insert("turns in conversations".to_owned(), [turns, all_tables.sum()]);
    let (status, last) = settled_status(place, &mut http).await?;
    let count = |count: i64| u64::try_from(count).unwrap_or(u64::MAX);
    pairs.insert("events".to_owned(), [count(status.events), last]);
    pairs.insert("agents".to_owned(), [count(status.agents), listed]);
    let held = shared.held.iter().map(|held| held.load(Ordering::Relaxed)).sum();
    pairs.insert("reservations in force".to_owned(), [count(status.reservations), held]);
    pairs.insert("open tasks".to_owned(), [count(status.open_tasks), 0]);
    pairs.insert("commands in the queue".to_owned(), [status.queue, 0]);
    for (what, [says, counted]) in &pairs {
        if says != counted {
            shared.ledger.find("counters: differ", format!("{what}: the server says {says}, not {counted}"));
        }
    }
    Ok(pairs)
}

/// Gauges of the server: attached agents, followers and internal failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gauges {
    pub(super) attached: u64,
    pub(super) followers: u64,
    failed: u64,
    poisoned: u64,
}

impl Gauges {
    pub(super) async fn read(shared: &Shared) -> Result<Self, NoAnswer> {
        Ok(Self::parse(&HttpClient::new(shared, &shared.token).text("/metrics").await?))
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

    /// The difference to the gauges at the start.
    pub(super) fn problem(&self, base: &Self) -> Option<String> {
        (self != base).then(|| format!("{self:?}, {base:?} before the fleet came"))
    }
}

/// The server's status once its queue is empty, and the auditor's position then. Files that were removed are still being
/// noted as read for a moment.
async fn settled_status(place: &Place, http: &mut HttpClient<'_>) -> Result<(Status, u64), NoAnswer> {
    let mut tries = 0;
    loop {
        let (_, status) = http.ask_until_answered("GET", STATUS_PATH, "").await?;
        let status: Status = serde_json::from_value(status).map_err(|_| NoAnswer)?;
        let last = u64::try_from(place.last.load(Ordering::Acquire)).unwrap_or_default();
        tries += 1;
        if tries == 50 || (status.queue == 0 && u64::try_from(status.events) == Ok(last)) {
            return Ok((status, last));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Checks that each agent is in the directory once. Gives the number of its entries.
async fn agents(shared: &Shared, http: &mut HttpClient<'_>) -> Result<u64, NoAnswer> {
    let mut found: HashMap<String, u64> = HashMap::new();
    let mut after = None;
    loop {
        let params = AgentsParams { after, limit: PageSize(PAGE) };
        let page: AgentsResult = match http.own_until_answered("agents", &params).await? {
            Ok(page) => page,
            Err(why) => {
                shared.refused(&why, "the address book");
                break;
            }
        };
        for listed in page.agents {
            *found.entry(listed.agent.id).or_default() += 1;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    for agent in shared.plan.agents.iter().filter(|agent| agent.door.takes_mail()) {
        match found.get(&agent.name) {
            Some(1) => {}
            count => {
                let text = format!("{} is there {} times", agent.name, count.unwrap_or(&0));
                shared.ledger.find("address book: not once", text);
            }
        }
    }
    Ok(found.values().sum())
}

/// Reads every inbox again. Gives the number of tagged messages, and the number of acknowledged ones among those of recipients
/// that count their acknowledgements.
async fn inboxes(shared: &Shared, http: &mut HttpClient<'_>) -> Result<(u64, u64), NoAnswer> {
    let kept = shared.ledger.kept_by_recipient();
    let (mut messages, mut acks) = (0, 0);
    for (me, agent) in (0_u32..).zip(&shared.plan.agents).filter(|(_, agent)| agent.door.takes_mail()) {
        let (mut after, mut here, mut acked) = (0, 0, 0);
        loop {
            let params = InboxParams {
                agent: Some(agent.name.clone()),
                after: Some(after),
                order: InboxOrder::Oldest,
                limit: PageSize(PAGE),
                ..InboxParams::default()
            };
            let page: InboxResult = match http.own_until_answered("inbox", &params).await? {
                Ok(page) => page,
                Err(why) => {
                    shared.refused(&why, &format!("the inbox of {}", agent.name));
                    break;
                }
            };
            if page.messages.is_empty() {
                break;
            }
            for InboxMessage { message, delivery } in &page.messages {
                after = message.seq;
                here += u64::from(tag_of(message).is_some_and(|tag| tag.channel.to == me));
                acked += u64::from(delivery.acked_at.is_some());
            }
        }
        let expected = kept.get(&me).copied().unwrap_or_default();
        if here != expected {
            let text = format!("{}: {here} messages, {expected} in the event log", agent.name);
            shared.ledger.find("inbox: differs from the event log", text);
        }
        messages += here;
        if agent.door.reads_all() {
            acks += acked;
            let counted = shared.acked[me as usize].load(Ordering::Relaxed);
            if acked != counted {
                let text = format!("{}: {acked} messages are acknowledged, {counted} were", agent.name);
                shared.ledger.find("inbox: acknowledgements", text);
            }
        }
    }
    Ok((messages, acks))
}

/// The number of turns in all conversations.
async fn conversations(shared: &Shared, http: &mut HttpClient<'_>) -> Result<u64, NoAnswer> {
    let mut turns = 0;
    let mut cursor = None;
    loop {
        let params = ConversationsParams { cursor, limit: PageSize(PAGE), ..ConversationsParams::default() };
        let page: ConversationsResult = match http.own_until_answered("conversations", &params).await? {
            Ok(page) => page,
            Err(why) => {
                shared.refused(&why, "the conversations");
                return Ok(turns);
            }
        };
        for one in &page.conversations {
            // Tasks are conversations, too.
            if shared.conversations.contains(&one.id) {
                turns += u64::try_from(one.turns).unwrap_or_default();
            }
        }
        cursor = page.next;
        if cursor.is_none() {
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
