//! Five doors by five: sent at one, read at the other, acknowledged, answered, and the answer read at the first.

use std::collections::HashMap;

use serde_json::json;

use super::office::Everywhere;
use super::table::{Row, TABLE, shown};
use super::{Correspondent, Letter};
use crate::swarm::uuid;

type People = HashMap<&'static str, Box<dyn Correspondent>>;

fn sender_at(door: &str) -> String {
    if door == "swarm" { "boss".to_owned() } else { format!("{door}_s") }
}

fn receiver_at(door: &str) -> String {
    if door == "swarm" { "parrot".to_owned() } else { format!("{door}_r") }
}

/// Somebody who sends and somebody who receives at every door. The AIRC identity that receives has agreed to it; the one
/// that sends has agreed to nothing but being answered.
async fn everybody(all: &Everywhere) -> (People, People) {
    let (mut senders, mut receivers) = (People::new(), People::new());
    for row in &TABLE {
        senders.insert(row.door, all.agent(row.door, &sender_at(row.door)).await);
        receivers.insert(row.door, all.agent(row.door, &receiver_at(row.door)).await);
    }
    // Whoever is known by a file only is entered with the first one.
    all.until_entered("files_s").await;
    for row in TABLE.iter().filter(|row| row.door != "swarm") {
        let asks = json!({ "agent": sender_at(row.door), "other": "airc_r" });
        all.office.call("contact.ask", asks).await.unwrap();
        let gives = json!({ "agent": "airc_r", "other": sender_at(row.door) });
        all.office.call("contact.accept", gives).await.unwrap();
    }
    (senders, receivers)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_letter_goes_from_every_door_to_every_door_and_is_answered() {
    let all = Everywhere::open().await;
    let (mut senders, mut receivers) = everybody(&all).await;
    for (n, from) in TABLE.iter().enumerate() {
        for (m, to) in TABLE.iter().enumerate() {
            let (one, other) = (senders.get_mut(from.door).unwrap(), receivers.get_mut(to.door).unwrap());
            let thread = match from.door {
                "swarm" => uuid((n * 10 + m) as u64),
                _ => format!("T-{}-{}", from.door, to.door),
            };
            let letter = Letter {
                to: receiver_at(to.door),
                subject: format!("Über \"{}\" → {}", from.door, to.door),
                body: format!("from {} to {}:\n`code` \u{1f48c} \\ end", from.door, to.door),
                thread,
                priority: from.sends,
                wants_ack: from.asks.is_ok(),
            };
            exchange(from, to, one.as_mut(), other.as_mut(), &letter).await;
        }
    }
    assert_eq!(all.office.close(), Some(0));
}

async fn exchange(
    from: &Row,
    to: &Row,
    one: &mut dyn Correspondent,
    other: &mut dyn Correspondent,
    letter: &Letter,
) {
    let pair = format!("{} to {}", from.door, to.door);
    eprintln!("{pair}");
    let words = format!("from {pair}:");
    one.send(letter).await;
    let arrived = other.receive(&words).await;
    assert_eq!(arrived.from, one.name(), "{pair}: sender in {}", arrived.raw);
    assert_eq!(
        arrived.subject.as_deref(),
        Some(letter.subject.as_str()),
        "{pair}: subject in {}",
        arrived.raw
    );
    assert_eq!(arrived.body, letter.body, "{pair}: body in {}", arrived.raw);
    assert_eq!(arrived.thread.as_deref(), Some(letter.thread.as_str()), "{pair}: thread in {}", arrived.raw);
    assert_eq!(arrived.priority.as_deref(), shown(from, to), "{pair}: priority in {}", arrived.raw);
    if from.door != "swarm" {
        assert_eq!(arrived.wants_ack, Some(letter.wants_ack), "{pair}: acknowledgement in {}", arrived.raw);
    }
    other.acknowledge(&arrived).await;
    if from.asks.is_ok() {
        one.hear_ack(letter).await;
    }
    let answer = format!("answer to from {pair}:");
    other.reply(&arrived, &answer).await;
    let back = one.receive(&answer).await;
    assert_eq!(back.from, other.name(), "{pair}: who answers in {}", back.raw);
    assert_eq!(
        back.thread.as_deref(),
        Some(letter.thread.as_str()),
        "{pair}: thread of the answer {}",
        back.raw
    );
    assert_eq!(
        back.subject.as_deref(),
        Some(format!("Re: {}", letter.subject).as_str()),
        "{pair}: subject of the answer {}",
        back.raw
    );
}
