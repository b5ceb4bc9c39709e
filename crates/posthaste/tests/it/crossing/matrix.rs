//! Five doors by five: a message is sent, read, acknowledged and answered, and the answer is read.

use std::collections::HashMap;

use serde_json::json;

use super::server::Everywhere;
use super::table::{Row, TABLE, shown};
use super::{Correspondent, Outgoing};
use crate::swarm::uuid;

type People = HashMap<&'static str, Box<dyn Correspondent>>;

fn sender_at(door: &str) -> String {
    if door == "swarm" { "boss".to_owned() } else { format!("{door}_s") }
}

fn receiver_at(door: &str) -> String {
    if door == "swarm" { "parrot".to_owned() } else { format!("{door}_r") }
}

/// A sender and a recipient at every door. The receiving AIRC identity has consented to every sender; the sending one has
/// consented to nothing, but may be answered.
async fn senders_and_receivers(all: &Everywhere) -> (People, People) {
    let (mut senders, mut receivers) = (People::new(), People::new());
    for row in &TABLE {
        senders.insert(row.door, all.agent(row.door, &sender_at(row.door)).await);
        receivers.insert(row.door, all.agent(row.door, &receiver_at(row.door)).await);
    }
    // The bridge registers the owner of a mailbox.
    all.until_registered("files_s").await;
    for row in TABLE.iter().filter(|row| row.door != "swarm") {
        let asks = json!({ "agent": sender_at(row.door), "other": "airc_r" });
        all.office.call("contact.ask", asks).await.unwrap();
        let gives = json!({ "agent": "airc_r", "other": sender_at(row.door) });
        all.office.call("contact.accept", gives).await.unwrap();
    }
    (senders, receivers)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_cross_between_all_doors_and_are_answered() {
    let all = Everywhere::open().await;
    let (mut senders, mut receivers) = senders_and_receivers(&all).await;
    for (n, from) in TABLE.iter().enumerate() {
        for (m, to) in TABLE.iter().enumerate() {
            let (one, other) = (senders.get_mut(from.door).unwrap(), receivers.get_mut(to.door).unwrap());
            let thread = match from.door {
                "swarm" => uuid((n * 10 + m) as u64),
                _ => format!("T-{}-{}", from.door, to.door),
            };
            let message = Outgoing {
                to: receiver_at(to.door),
                subject: format!("Über \"{}\" → {}", from.door, to.door),
                body: format!("from {} to {}:\n`code` \u{1f48c} \\ end", from.door, to.door),
                thread,
                priority: from.sends,
                wants_ack: from.asks.is_ok(),
            };
            exchange(from, to, one.as_mut(), other.as_mut(), &message).await;
        }
    }
    assert_eq!(all.office.close(), Some(0));
}

async fn exchange(
    from: &Row,
    to: &Row,
    one: &mut dyn Correspondent,
    other: &mut dyn Correspondent,
    message: &Outgoing,
) {
    let pair = format!("{} to {}", from.door, to.door);
    eprintln!("{pair}");
    let words = format!("from {pair}:");
    one.send(message).await;
    let arrived = other.receive(&words).await;
    assert_eq!(arrived.from, one.name(), "{pair}: sender in {}", arrived.raw);
    assert_eq!(
        arrived.subject.as_deref(),
        Some(message.subject.as_str()),
        "{pair}: subject in {}",
        arrived.raw
    );
    assert_eq!(arrived.body, message.body, "{pair}: body in {}", arrived.raw);
    assert_eq!(arrived.thread.as_deref(), Some(message.thread.as_str()), "{pair}: thread in {}", arrived.raw);
    assert_eq!(arrived.priority.as_deref(), shown(from, to), "{pair}: priority in {}", arrived.raw);
    if from.door != "swarm" {
        assert_eq!(arrived.wants_ack, Some(message.wants_ack), "{pair}: acknowledgement in {}", arrived.raw);
    }
    other.acknowledge(&arrived).await;
    if from.asks.is_ok() {
        one.hear_ack(message).await;
    }
    let answer = format!("answer to from {pair}:");
    other.reply(&arrived, &answer).await;
    let back = one.receive(&answer).await;
    assert_eq!(back.from, other.name(), "{pair}: sender of the answer in {}", back.raw);
    assert_eq!(
        back.thread.as_deref(),
        Some(message.thread.as_str()),
        "{pair}: thread of the answer {}",
        back.raw
    );
    assert_eq!(
        back.subject.as_deref(),
        Some(format!("Re: {}", message.subject).as_str()),
        "{pair}: subject of the answer {}",
        back.raw
    );
}
