//! Stored records stay readable in all later versions.

use std::collections::BTreeSet;

use posthaste_engine::nouns::RealmName;
use posthaste_engine::testing::apply_batches;
use posthaste_engine::verbs::Command;
use posthaste_engine::{EngineError, RECORD_VERSION, Record, RecordError};
use serde_json::Value;

/// One record of every verb, as version 2 writes it. Lines are added for new verbs and never changed.
const GOLDEN: &str = include_str!("../golden/records-v2.jsonl");

fn golden() -> Vec<Record> {
    GOLDEN.lines().map(|line| Record::from_bytes(line.as_bytes()).expect(line)).collect()
}

#[test]
fn golden_file_has_every_verb() {
    let written: BTreeSet<&str> = golden().iter().map(|record| record.command.word()).collect();
    let every: BTreeSet<&str> = Command::WORDS.iter().copied().collect();
    assert_eq!(every.difference(&written).collect::<Vec<_>>(), Vec::<&&str>::new(), "add a line for each");
    assert_eq!(written, every);
}

#[test]
fn golden_records_round_trip_unchanged() {
    for line in GOLDEN.lines() {
        let record = Record::from_bytes(line.as_bytes()).expect(line);
        let written = record.to_bytes().expect("bytes");
        let again = Record::from_bytes(&written).expect(line);
        assert_eq!(again, record);
        assert_eq!(again.to_bytes().expect("bytes"), written, "serialisation is stable");
        assert_within(&value(line.as_bytes()), &value(&written), line);
    }
}

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

/// The new value contains the whole old one. A verb may have got new fields since.
fn assert_within(old: &Value, new: &Value, line: &str) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, old) in old {
                assert_within(old, new.get(key).unwrap_or_else(|| panic!("{key} is gone: {line}")), line);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            assert_eq!(old.len(), new.len(), "{line}");
            old.iter().zip(new).for_each(|(old, new)| assert_within(old, new, line));
        }
        (old, new) => assert_eq!(old, new, "{line}"),
    }
}

#[test]
fn golden_records_can_be_applied() {
    let directory = tempfile::TempDir::new().unwrap();
    let realm = RealmName::new("main").unwrap();
    let answers =
        apply_batches(&directory.path().join("main.db"), realm, "golden", vec![golden()]).expect("db");
    assert_eq!(answers.len(), golden().len());
    let failed: Vec<_> =
        answers.iter().filter(|answer| matches!(answer, Err(EngineError::Failed(_)))).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn omitted_fields_get_defaults() {
    let head = r#""v":2,"stamp":{"id":"0190a000-0000-7000-8000-000000000000","now":1},
        "caller":{"agent":"ann","rights":{"member":true,"observe":false,"admin":false},"via":"test"}"#;
    let cases = [
        r#""verb":"register","with":{}"#,
        r#""verb":"update","with":{"agent":"ann"}"#,
        r#""verb":"unregister","with":{"agent":"ann"}"#,
        r#""verb":"send","with":{"to":["all"],"body":{"text":"x"},"priority":3,"audience":"parties"}"#,
        r#""verb":"create_conversation","with":{"kind":"chat","audience":"parties"}"#,
        r#""verb":"say","with":{"conversation":"c","content_type":"text","content":"\"x\""}"#,
        r#""verb":"create_scope","with":{}"#,
        r#""verb":"create_task","with":{"audience":"observers"}"#,
        r#""verb":"sweep","with":{}"#,
    ];
    for case in cases {
        let text = format!("{{{head},{case}}}");
        let record = Record::from_bytes(text.as_bytes()).expect(&text);
        assert!(case.contains(&format!("\"{}\"", record.command.word())));
    }
}

#[test]
fn record_of_a_newer_version_is_refused_before_parsing() {
    let newer = RECORD_VERSION + 1;
    // The other fields may have another form in that version.
    let text = format!(r#"{{"v":{newer},"stamp":"another form","verb":"another verb"}}"#);
    let refused = Record::from_bytes(text.as_bytes());
    assert!(matches!(refused, Err(RecordError::Newer(v)) if v == newer), "{refused:?}");
}

#[test]
fn malformed_record_is_refused() {
    let first = GOLDEN.lines().next().expect("a line");
    let unknown = first.replace("\"verb\":\"", "\"verb\":\"un");
    for text in ["", "{}", "null", r#"{"v":2}"#, &first[..first.len() - 1], unknown.as_str()] {
        let refused = Record::from_bytes(text.as_bytes());
        assert!(matches!(refused, Err(RecordError::Malformed(_))), "{text}: {refused:?}");
    }
}
