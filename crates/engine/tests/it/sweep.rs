//! Sweeping: what has run out becomes an event, once, a batch at a time.

use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{Audience, DeliveryState, ReservationStatus};
use posthaste_engine::verbs::deliveries::{MarkDelivered, MarkRead};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::office::{Sweep, Swept};
use posthaste_engine::verbs::reservations::Reserve;
use posthaste_engine::views::{InboxQuery, ReservationQuery};

use crate::harness::{Realm, admin, id, letter, soon, to};

#[tokio::test]
async fn letters_and_leases_that_ran_out_become_events_once() {
    let realm = Realm::new();
    let [anna, bert, carl] = realm.agents(["anna", "bert", "carl"]).await;
    let end = soon();
    let brief =
        SendMessage { expires_at: Some(end), ..SendMessage::text(vec![to("bert"), to("carl")], "brief") };
    let sent = realm.ask(&anna, brief).await.message.id;
    realm.ask(&carl, MarkRead { agent: id("carl"), message: sent, unread: false }).await;
    let lease = Reserve {
        key: None,
        scope: "repo".into(),
        paths: vec!["a".into()],
        exclusive: true,
        reason: None,
        issued_at: None,
        expires_at: end,
        audience: Audience::Observers,
        meta: None,
    };
    realm.ask(&anna, lease).await;
    assert_eq!(realm.ask(&admin(), Sweep {}).await, Swept::default(), "nothing yet");
    realm.passed(end).await;
    let swept = realm.ask(&admin(), Sweep {}).await;
    assert_eq!(
        swept,
        Swept { deliveries: 1, reservations: 1, keys: 0, more: false },
        "what was read in time is not lost"
    );
    assert_eq!(realm.ask(&admin(), Sweep {}).await, Swept::default(), "once");
    let tracked = realm.see(|view| view.message(&anna, sent));
    let states: Vec<_> = tracked.deliveries.iter().map(|copy| (copy.agent.as_str(), copy.state)).collect();
    assert_eq!(states, [("bert", DeliveryState::Expired), ("carl", DeliveryState::Read)]);
    let expired = |who| {
        let told = realm.replayed(who);
        (told.contains(&"message.expired"), told.contains(&"reservation.expired"))
    };
    assert_eq!(expired(&anna), (true, true));
    assert_eq!(expired(&bert), (true, true));
    assert_eq!(expired(&carl), (false, true), "how bert's copy fared is not carl's");
    let late = realm.ask(&bert, MarkRead { agent: id("bert"), message: sent, unread: false }).await;
    assert_eq!(late.state, DeliveryState::Expired);
    let query = ReservationQuery { ended: true, limit: 9, ..ReservationQuery::default() };
    let held = realm.see(|view| view.reservations(&bert, &query)).items;
    assert_eq!(held[0].status, ReservationStatus::Expired);
}

#[tokio::test]
async fn a_letter_that_was_handed_over_in_time_never_fails_by_its_expiry() {
    let realm = Realm::new();
    let [anna, bert, _] = realm.agents(["anna", "bert", "carl"]).await;
    let end = soon();
    let brief =
        SendMessage { expires_at: Some(end), ..SendMessage::text(vec![to("bert"), to("carl")], "brief") };
    let sent = realm.ask(&anna, brief).await.message.id;
    realm.ask(&bert, MarkDelivered { agent: id("bert"), messages: vec![sent] }).await;
    realm.passed(end).await;
    assert_eq!(realm.ask(&admin(), Sweep {}).await.deliveries, 1, "the one that still waited");
    let tracked = realm.see(|view| view.message(&anna, sent));
    let states: Vec<_> = tracked.deliveries.iter().map(|copy| (copy.agent.as_str(), copy.state)).collect();
    assert_eq!(states, [("bert", DeliveryState::Delivered), ("carl", DeliveryState::Expired)]);
    assert!(!realm.replayed(&bert).contains(&"message.expired"));
    // What has run out is not put before anybody who looks for news, handed over or not.
    let query = InboxQuery { unread: true, limit: 9, ..InboxQuery::default() };
    assert!(realm.see(|view| view.inbox(&bert, &id("bert"), &query)).items.is_empty());
    let read = realm.ask(&bert, MarkRead { agent: id("bert"), message: sent, unread: false }).await;
    assert_eq!(read.state, DeliveryState::Read);
}

#[tokio::test]
async fn a_sweep_takes_a_batch_and_says_that_there_is_more() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    realm.rules(Rules { sweep_rows: 2, ..Rules::default() }).await;
    let end = soon();
    for _ in 0..5 {
        realm.ask(&anna, SendMessage { expires_at: Some(end), ..letter("bert", "brief") }).await;
    }
    realm.passed(end).await;
    let mut swept = Vec::new();
    loop {
        let Swept { deliveries, more, .. } = realm.ask(&admin(), Sweep {}).await;
        swept.push(deliveries);
        if !more {
            break;
        }
    }
    assert_eq!(swept, [2, 2, 1]);
}
