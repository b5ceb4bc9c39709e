//! Sweeping: each expiry becomes one event, in batches.

use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{Audience, DeliveryState, ReservationStatus};
use posthaste_engine::verbs::deliveries::{MarkDelivered, MarkRead};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::office::{Sweep, Swept};
use posthaste_engine::verbs::reservations::Reserve;
use posthaste_engine::views::{InboxQuery, ReservationQuery};

use crate::harness::{Realm, admin, id, message, soon, to};

#[tokio::test]
async fn expired_messages_and_reservations_emit_one_event_each() {
    let realm = Realm::new();
    let [anna, bert, carl] = realm.agents(["anna", "bert", "carl"]).await;
    let end = soon();
    let brief =
        SendMessage { expires_at: Some(end), ..SendMessage::text(vec![to("bert"), to("carl")], "brief") };
    let sent = realm.ask(&anna, brief).await.message.id;
    realm.ask(&carl, MarkRead { agent: id("carl"), message: sent, unread: false }).await;
    let reserve = Reserve {
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
    realm.ask(&anna, reserve).await;
    assert_eq!(realm.ask(&admin(), Sweep {}).await, Swept::default(), "nothing yet");
    realm.passed(end).await;
    let swept = realm.ask(&admin(), Sweep {}).await;
    assert_eq!(
        swept,
        Swept { deliveries: 1, reservations: 1, keys: 0, more: false },
        "a message read in time does not expire"
    );
    assert_eq!(realm.ask(&admin(), Sweep {}).await, Swept::default(), "once");
    let tracked = realm.see(|view| view.message(&anna, sent));
    let states: Vec<_> =
        tracked.deliveries.iter().map(|delivery| (delivery.agent.as_str(), delivery.state)).collect();
    assert_eq!(states, [("bert", DeliveryState::Expired), ("carl", DeliveryState::Read)]);
    let expired = |who| {
        let told = realm.replayed(who);
        (told.contains(&"message.expired"), told.contains(&"reservation.expired"))
    };
    assert_eq!(expired(&anna), (true, true));
    assert_eq!(expired(&bert), (true, true));
    assert_eq!(expired(&carl), (false, true), "carl does not see the state of bert's delivery");
    let late = realm.ask(&bert, MarkRead { agent: id("bert"), message: sent, unread: false }).await;
    assert_eq!(late.state, DeliveryState::Expired);
    let query = ReservationQuery { ended: true, limit: 9, ..ReservationQuery::default() };
    let held = realm.see(|view| view.reservations(&bert, &query)).items;
    assert_eq!(held[0].status, ReservationStatus::Expired);
}

#[tokio::test]
async fn message_delivered_in_time_does_not_expire() {
    let realm = Realm::new();
    let [anna, bert, _] = realm.agents(["anna", "bert", "carl"]).await;
    let end = soon();
    let brief =
        SendMessage { expires_at: Some(end), ..SendMessage::text(vec![to("bert"), to("carl")], "brief") };
    let sent = realm.ask(&anna, brief).await.message.id;
    realm.ask(&bert, MarkDelivered { agent: id("bert"), messages: vec![sent] }).await;
    realm.passed(end).await;
    assert_eq!(realm.ask(&admin(), Sweep {}).await.deliveries, 1, "only the waiting delivery");
    let tracked = realm.see(|view| view.message(&anna, sent));
    let states: Vec<_> =
        tracked.deliveries.iter().map(|delivery| (delivery.agent.as_str(), delivery.state)).collect();
    assert_eq!(states, [("bert", DeliveryState::Delivered), ("carl", DeliveryState::Expired)]);
    assert!(!realm.replayed(&bert).contains(&"message.expired"));
    // Expired messages are not listed as unread, delivered or not.
    let query = InboxQuery { unread: true, limit: 9, ..InboxQuery::default() };
    assert!(realm.see(|view| view.inbox(&bert, &id("bert"), &query)).items.is_empty());
    let read = realm.ask(&bert, MarkRead { agent: id("bert"), message: sent, unread: false }).await;
    assert_eq!(read.state, DeliveryState::Read);
}

#[tokio::test]
async fn sweep_processes_a_batch_and_reports_more() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    realm.rules(Rules { sweep_rows: 2, ..Rules::default() }).await;
    let end = soon();
    for _ in 0..5 {
        realm.ask(&anna, SendMessage { expires_at: Some(end), ..message("bert", "brief") }).await;
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
