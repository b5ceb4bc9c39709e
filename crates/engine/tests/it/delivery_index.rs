//! The delivery index (deliveries without message bodies, for syncing an external mailbox), and export and import of a
//! database.

use std::io::BufReader;

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Caller, DeliveryState, RealmName};
use posthaste_engine::store::{
    self, PortableError, count_rows, open_reader, open_writer, read_rows, write_rows,
};
use posthaste_engine::verbs::deliveries::MarkRead;
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::seen_keys::SingleUseKey;
use posthaste_engine::verbs::signed::SendSigned;
use posthaste_engine::{Engine, EngineError, Refusal};

use crate::harness::{Realm, id, member, message};

#[tokio::test]
async fn delivery_index_lists_every_delivery_in_order() {
    let realm = Realm::new();
    let (ann, bob) = (realm.agent("ann").await, realm.agent("bob").await);
    let mut ids = Vec::new();
    for n in 0..5 {
        let sent = realm.ask(&ann, SendMessage { key: Some(format!("k{n}")), ..message("bob", "x") }).await;
        ids.push(sent.message.id);
    }
    realm.ask(&bob, MarkRead { agent: id("bob"), message: ids[2], unread: false }).await;
    let page = realm.engine.read_blocking(|view| view.delivery_index(&bob, &id("bob"), 0, 3)).unwrap();
    let found: Vec<_> = page.items.iter().map(|line| (line.message, line.key.clone(), line.state)).collect();
    let expected = [DeliveryState::Queued, DeliveryState::Queued, DeliveryState::Read];
    for (n, state) in expected.into_iter().enumerate() {
        assert_eq!(found[n], (ids[n], Some(format!("k{n}")), state));
    }
    let rest = realm
        .engine
        .read_blocking(|view| view.delivery_index(&bob, &id("bob"), page.next.unwrap(), 99))
        .unwrap();
    assert_eq!(rest.items.iter().map(|line| line.message).collect::<Vec<_>>(), ids[3..]);
    assert_eq!(rest.next, None);
    assert!(
        realm.engine.read_blocking(|view| view.delivery_index(&ann, &id("bob"), 0, 9)).is_err(),
        "not ann's"
    );
}

#[tokio::test]
async fn deliveries_of_a_message_are_paged_by_recipient() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    for name in ["b1", "b2", "b3"] {
        realm.agent(name).await;
    }
    let to = ["b3", "b1", "b2"].map(crate::harness::to).to_vec();
    let sent = realm.ask(&ann, SendMessage { to, ..message("b1", "x") }).await;
    let seq = sent.message.seq;
    let office = Caller::office();
    let page = realm.engine.read_blocking(|view| view.deliveries_of(&office, seq, None, 2)).unwrap();
    assert_eq!(page.items.iter().map(|delivery| delivery.agent.as_str()).collect::<Vec<_>>(), ["b1", "b2"]);
    let after = page.next.unwrap();
    let rest = realm.engine.read_blocking(|view| view.deliveries_of(&office, seq, Some(&after), 2)).unwrap();
    assert_eq!(rest.items.iter().map(|delivery| delivery.agent.as_str()).collect::<Vec<_>>(), ["b3"]);
    assert!(realm.engine.read_blocking(|view| view.deliveries_of(&member("ann"), seq, None, 9)).is_err());
}

/// Everything except the id of the event log is the same, row for row.
#[tokio::test]
async fn exported_and_imported_database_is_the_same() {
    let realm = Realm::new();
    let ann = realm.agent("ann").await;
    realm.agent("bob").await;
    for n in 0..20 {
        realm
            .ask(
                &ann,
                SendMessage { subject: Some(format!("n{n}")), ..message("bob", "zebra \u{1f48c}\u{0}") },
            )
            .await;
    }
    // The search index catches up when the realm is swept.
    realm.ask(&crate::harness::admin(), posthaste_engine::verbs::office::Sweep {}).await;
    let db = open_reader(realm.engine.path()).unwrap();
    let mut lines = Vec::new();
    let written = write_rows(&db, "test", &mut lines, &mut |_| true).unwrap();
    assert_eq!(written, count_rows(&db).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let mut imported = open_writer(&dir.path().join("copy.db")).unwrap();
    assert_eq!(read_rows(&mut imported, &mut BufReader::new(&lines[..]), &mut |_| true).unwrap(), written);
    let history: String =
        db.query_row("SELECT value FROM meta WHERE key = 'history'", [], |row| row.get(0)).unwrap();
    let changed = imported
        .execute("UPDATE meta SET value = ?1 WHERE key = 'history' AND value <> ?1", [history])
        .unwrap();
    assert_eq!(changed, 1, "another event log has another id");
    assert_eq!(store::digest(&imported, false).unwrap(), store::digest(&db, false).unwrap());
    let found: i64 = imported
        .query_row("SELECT count(*) FROM fulltext WHERE fulltext MATCH 'zebra'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(found, 20, "the index is rebuilt");
    assert!(store::check_integrity(&imported).unwrap().is_empty());

    // Every truncation is detected and leaves the database unchanged.
    let before = store::digest(&imported, false).unwrap();
    for cut in (1..lines.len()).step_by(lines.len() / 40) {
        let read = read_rows(&mut imported, &mut BufReader::new(&lines[..cut]), &mut |_| true);
        assert!(matches!(read, Err(PortableError::Damaged { .. })), "{cut}: {read:?}");
    }
    assert!(matches!(
        read_rows(&mut imported, &mut BufReader::new(&lines[..]), &mut |n| n < 5),
        Err(PortableError::Stopped)
    ));
    assert_eq!(store::digest(&imported, false).unwrap(), before);
}

#[tokio::test]
async fn single_use_keys_survive_export_and_import() {
    let realm = Realm::new();
    let [ann, bob] = realm.agents(["ann", "bob"]).await;
    let keyed = || SendMessage { key: Some("id:1".into()), ..message("bob", "keyed") };
    let signed = |label: &str| SendSigned {
        message: message("bob", "signed"),
        keys: vec![SingleUseKey { label: label.into(), until: None, digest: None }],
        side_effect: None,
    };
    realm.ask(&ann, signed("id:1")).await;
    let first = realm.ask(&ann, keyed()).await;
    let mut lines = Vec::new();
    write_rows(&open_reader(realm.engine.path()).unwrap(), "test", &mut lines, &mut |_| true).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("copy.db");
    read_rows(&mut open_writer(&path).unwrap(), &mut BufReader::new(&lines[..]), &mut |_| true).unwrap();
    let (copy, guard) = Engine::open(&path, RealmName::main(), Limits::default()).unwrap();
    let again = copy.submit(&ann, keyed()).await.unwrap();
    assert_eq!((again.repeated, again.message.id), (true, first.message.id));
    let refused = copy.submit(&ann, signed("id:1")).await;
    assert!(matches!(refused, Err(EngineError::Refused(Refusal::KeyReused { .. }))), "{refused:?}");
    copy.submit(&ann, signed("id:2")).await.expect("a new key");
    let found = copy.read(move |view| view.messages_with_label(&bob, &id("bob"), "id:1")).await.unwrap();
    assert_eq!(found.len(), 1);
    drop(copy);
    guard.join();
}

#[test]
fn lines_that_are_not_for_these_tables_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut db = open_writer(&dir.path().join("new.db")).unwrap();
    for (head, why) in [
        (r#"{"posthaste":"realm","form":1,"db":11}"#, "before the first release"),
        (r#"{"posthaste":"realm","form":3,"database":1}"#, "newer program"),
        (r#"{"posthaste":"realm","form":2,"database":99}"#, "newer program"),
        (r#"{"posthaste":"realm","form":2}"#, "newer program"),
    ] {
        let lines = format!("{head}\n");
        let refused = read_rows(&mut db, &mut lines.as_bytes(), &mut |_| true).expect_err("refused");
        assert!(refused.to_string().contains(why), "{refused}");
    }
}
