//! Versions of the database: a golden file of each released version opens with all its content; other files are refused.

use std::path::Path;

use posthaste_engine::limits::{Limits, Rules};
use posthaste_engine::nouns::{Address, Caller, ConversationId, RealmName};
use posthaste_engine::store::{VERSION, open_reader, open_writer};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::office::SetRules;
use posthaste_engine::verbs::seen_keys::SingleUseKey;
use posthaste_engine::verbs::signed::SendSigned;
use posthaste_engine::views::{SearchQuery, TurnQuery};
use posthaste_engine::{Engine, EngineError, Fault, Refusal};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::harness::{Realm, admin, id, member, message};

const V1: &str = include_str!("../golden/database-v1.sql");

/// A file with the golden database.
fn golden() -> (TempDir, std::path::PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("main.db");
    Connection::open(&path).unwrap().execute_batch(V1).unwrap();
    (directory, path)
}

fn texts(db: &Connection, sql: &str) -> Vec<String> {
    db.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn tables(db: &Connection) -> Vec<String> {
    texts(db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1")
}

/// Each table with its number of rows. The full-text index keeps its own tables.
fn rows(db: &Connection) -> Vec<(String, i64)> {
    let count = |name: &String| {
        db.query_row(&format!("SELECT count(*) FROM {name}"), [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let names = tables(db).into_iter().filter(|name| !name.starts_with("fulltext"));
    names.map(|name| (name.clone(), count(&name))).collect()
}

/// Columns, indices and views, each in a line.
fn layout(path: &Path) -> Vec<String> {
    let db = open_reader(path).unwrap();
    let mut found = texts(
        &db,
        "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema WHERE type <> 'table'",
    );
    for table in tables(&db) {
        let columns =
            "SELECT 'column ' || name || ' ' || type || ' ' || \"notnull\" || ' ' || coalesce(dflt_value, '')
                           || ' ' || pk FROM pragma_table_xinfo";
        found.extend(texts(&db, &format!("{columns}('{table}')")).iter().map(|it| format!("{table} {it}")));
    }
    // Comments and line breaks do not count.
    let mut found: Vec<String> =
        found.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_version_1_database_opens_with_all_its_content() {
    let (_directory, path) = golden();
    let before = rows(&Connection::open(&path).unwrap());
    let empty: Vec<&String> = before.iter().filter(|(_, rows)| *rows == 0).map(|(name, _)| name).collect();
    assert!(empty.is_empty(), "the golden file has no row in {empty:?}");

    let (engine, guard) = Engine::open(&path, RealmName::main(), Limits::default()).expect("it opens");
    let history = engine.read(|view| view.history()).await.unwrap();
    assert_eq!(history, "0190a000-0000-7000-8000-000000000000");
    let head = engine.read(|view| view.head()).await.unwrap();
    assert_eq!(head, 34);
    let ann = engine.read(|view| view.agent(&Caller::office(), &id("ann"))).await.unwrap();
    assert_eq!(ann.name.as_deref(), Some("Ann"));
    let sent =
        engine.read(|view| view.message_by_key(&Caller::office(), &id("ann"), "order-1")).await.unwrap();
    assert_eq!(sent.message.body.as_str(), "The heron is back.");
    let query = || SearchQuery { text: "heron OR kingfisher".into(), limit: 9, ..SearchQuery::default() };
    let found = engine.read(move |view| view.search(&Caller::office(), &query())).await.unwrap();
    assert_eq!(found.hits.len(), 3, "in the full-text index, and waiting for it");
    let plan = ConversationId::new("plan").unwrap();
    let turns = engine
        .read(move |view| {
            view.turns(&Caller::office(), &plan, &TurnQuery { limit: 9, ..TurnQuery::default() })
        })
        .await
        .unwrap();
    assert_eq!(turns.items.len(), 2);

    // Keys that were used are known.
    let ann = member("ann");
    let again = SendMessage {
        subject: Some("Birds".into()),
        cc: vec![Address::Agent(id("carl"))],
        key: Some("order-1".into()),
        ack_required: true,
        ..message("bob", "The heron is back.")
    };
    assert!(engine.submit(&ann, again).await.unwrap().repeated);
    for label in ["id:1", "mail:1", "nonce:1"] {
        let key = SingleUseKey { label: label.into(), until: None, digest: None };
        let signed = SendSigned { message: message("bob", "replayed"), keys: vec![key], side_effect: None };
        let refused = engine.submit(&ann, signed).await;
        let expected = Refusal::KeyReused { key: label.into() };
        assert!(matches!(&refused, Err(EngineError::Refused(why)) if *why == expected), "{refused:?}");
    }
    assert_eq!(rows(&open_reader(&path).unwrap()), before, "nothing was lost or added");

    engine.submit(&ann, message("bob", "one more")).await.expect("it can be written");
    assert_eq!(engine.read(|view| view.head()).await.unwrap(), head + 1);
    drop(engine);
    guard.join();
}

/// A change to the tables without a new version, or a step that forgets something, shows here.
#[test]
fn a_version_1_database_gets_the_tables_of_a_new_one() {
    let (_directory, path) = golden();
    open_writer(&path).unwrap();
    let directory = TempDir::new().unwrap();
    let new = directory.path().join("new.db");
    open_writer(&new).unwrap();
    let (old, new) = (layout(&path), layout(&new));
    assert!(old.len() > 100, "{}", old.len());
    assert_eq!(old, new);
}

#[test]
fn a_newer_database_is_refused_with_both_versions() {
    let (_directory, path) = golden();
    Connection::open(&path).unwrap().pragma_update(None, "user_version", VERSION + 1).unwrap();
    for refused in [open_writer(&path), open_reader(&path)] {
        let fault = refused.expect_err("it is newer");
        assert!(
            matches!(fault, Fault::NewerDatabase { found, known } if (found, known) == (VERSION + 1, VERSION))
        );
        let text = fault.to_string();
        assert!(text.contains(&(VERSION + 1).to_string()) && text.contains(&VERSION.to_string()), "{text}");
    }
    let version: i64 =
        Connection::open(&path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, VERSION + 1, "it was left alone");
}

#[test]
fn a_database_of_an_unreleased_build_is_refused() {
    let directory = TempDir::new().unwrap();
    for found in [1, 11] {
        let path = directory.path().join(format!("{found}.db"));
        let old = Connection::open(&path).unwrap();
        old.execute_batch(
            "CREATE TABLE meta(key TEXT PRIMARY KEY, value ANY); CREATE TABLE marks(label TEXT)",
        )
        .unwrap();
        old.pragma_update(None, "user_version", found).unwrap();
        drop(old);
        for refused in [open_writer(&path), open_reader(&path)] {
            let fault = refused.expect_err("its layout is not known");
            assert!(matches!(fault, Fault::UnreleasedDatabase { found: it } if it == found), "{fault:?}");
            assert!(fault.to_string().contains("before the first release"), "{fault}");
        }
        let left = tables(&Connection::open(&path).unwrap());
        assert_eq!(left, ["marks", "meta"], "it was left alone");
    }
}

#[tokio::test]
async fn all_rules_are_stored_when_a_database_is_created() {
    let directory = TempDir::new().unwrap();
    let db = open_writer(&directory.path().join("new.db")).unwrap();
    let stored = texts(&db, "SELECT value FROM meta WHERE key = 'rules'");
    assert_eq!(stored, [serde_json::to_string(&Rules::default()).unwrap()]);
}

#[tokio::test]
async fn rules_that_cannot_be_read_are_an_error_and_not_the_defaults() {
    let realm = Realm::new();
    realm.ask(&admin(), SetRules { rules: Rules { recipients: 7, ..Rules::default() } }).await;
    let realm = realm.reopened();
    assert_eq!(realm.see(|view| view.rules()).recipients, 7);
    let path = realm.directory.path().join("copy.db");
    open_reader(realm.engine.path()).unwrap().execute("VACUUM INTO ?1", [path.to_str().unwrap()]).unwrap();
    let whole = serde_json::to_string(&Rules::default()).unwrap();
    let cases = [
        ("{".to_owned(), "rules"),
        (whole.replace("\"recipients\":20000", "\"recipients\":\"many\""), "rules"),
        (whole.replace("\"recipients\":20000,", ""), "the rule `recipients` is missing"),
        (whole.replace("{\"thread_depth\"", "{\"moon\":1,\"thread_depth\""), "the rule `moon` is not known"),
    ];
    for (text, named) in cases {
        let db = Connection::open(&path).unwrap();
        assert_eq!(db.execute("UPDATE meta SET value = ?1 WHERE key = 'rules'", [&text]).unwrap(), 1);
        drop(db);
        let refused = Engine::open(&path, RealmName::main(), Limits::default()).expect_err("no defaults");
        assert!(refused.to_string().contains("`rules` in the table `meta`"), "{refused}");
        assert!(refused.to_string().contains(named), "{refused}");
    }
    Connection::open(&path).unwrap().execute("DELETE FROM meta WHERE key = 'rules'", []).unwrap();
    let refused = Engine::open(&path, RealmName::main(), Limits::default()).expect_err("no defaults");
    assert!(refused.to_string().contains("`rules` is missing"), "{refused}");
}
