//! posthaste's own methods: params and results keep their bytes when they are parsed and written.

use std::fmt::Debug;

use posthaste_wire::control::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Parses a text and writes it again: the text must stay as it is.
fn round_trip<T: DeserializeOwned + Serialize + Debug>(text: &str) {
    let value: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(serde_json::to_string(&value).unwrap(), text);
}

const AGENT: &str = r#""id":"ann","kind":"agent","name":null,"role":"cook","parent":null,"owner":"root","state":"active","door":"map","scopes":["kitchen"],"created_at":"2026-01-06T12:00:00.000Z","updated_at":"2026-01-06T12:00:00.007Z""#;
const MESSAGE: &str = r#""id":"01563e3a-b5d3-d676-4c61-efb99302bd5b","seq":7,"from":"ann","to":[{"agent":"bob"},"all"],"kind":"","subject":null,"body":{"b":1.50,"a":[]},"priority":3,"ack_required":false,"expires_at":null,"conversation":"c","in_reply_to":null,"key":null,"door":"cli","at":"2026-01-06T12:00:00.000Z","attachments":[{"name":"a.txt","size":3,"media_type":"text/plain","sha256":"ab","url":"/x"}]"#;
const DELIVERY: &str = r#"{"agent":"bob","copy":"to","state":"queued","delivered_at":null,"read_at":null,"acked_at":null,"note":null}"#;
const RESERVATION: &str = r#""id":9,"key":"k","owner":"ann","scope":"s","paths":["src/**"],"exclusive":true,"reason":null,"status":"active","issued_at":"2026-01-06T12:00:00.000Z","expires_at":"2026-01-06T13:00:00.000Z","released_at":null"#;
const TOKEN: &str = r#""id":"t","role":"user","name":"me","door":null,"observe":false,"created_at":"2026-01-06T12:00:00.000Z","expires_at":null,"revoked_at":null"#;

#[test]
fn results_keep_their_bytes() {
    round_trip::<WhoamiResult>(r#"{"name":"ann","role":"agent","realm":"main"}"#);
    round_trip::<RegisterResult>(&format!(r#"{{{AGENT},"resumed":true}}"#));
    let listed = format!(r#"{AGENT},"connected":true,"connected_by":["map"],"last_seen":null"#);
    round_trip::<AgentsResult>(&format!(r#"{{"agents":[{{{listed}}}],"next":null}}"#));
    let shown = format!(r#"{listed},"description":null,"contact_policy":"open""#);
    round_trip::<AgentResult>(&format!("{{{shown}}}"));
    round_trip::<AgentResult>(&format!(r#"{{{shown},"unread":1,"waiting":0}}"#));
    round_trip::<SendResult>(
        r#"{"id":"i","seq":7,"at":"2026-01-06T12:00:00.000Z","receipts":[{"agent":"bob","copy":"bcc","state":"delivered"}],"repeated":false}"#,
    );
    let message = MESSAGE.replace("1.50", "1.5");
    round_trip::<InboxResult>(&format!(r#"{{"messages":[{{{message},"delivery":{DELIVERY}}}],"next":7}}"#));
    round_trip::<MessageResult>(&format!(r#"{{{message},"deliveries":[{DELIVERY}]}}"#));
    round_trip::<ReserveResult>(&format!(r#"{{{RESERVATION},"conflicts":[]}}"#));
    round_trip::<TokenCreateResult>(&format!(r#"{{{TOKEN},"token":"ph_x"}}"#));
    let turn = r#"{"turn":"t","seq":8,"from":"bob","content_type":"text/plain","body":"hi","thread":null,"at":"2026-01-06T12:00:00.000Z"}"#;
    round_trip::<ThreadResult>(&format!(
        r#"{{"id":"c","conversation":null,"said":[{{{message}}},{turn}],"more":false}}"#
    ));
    round_trip::<EventsResult>(&format!(
        r#"{{"events":[{{"seq":8,"at":"x","kind":"message.sent","actor":"ann","cause":null,"fact":{{"kind":"message.sent"}},"message":{{{message}}},"turn":null}}],"cursor":8,"end":true,"now":"x"}}"#
    ));
    round_trip::<ProjectMoveResult>(
        r#"{"path":"/p","realm":"main","before":{"agents":null,"messages":0,"problem":null,"realm":"old"}}"#,
    );
    round_trip::<RefusalData>(r#"{"refusal":"bad_params"}"#);
    round_trip::<RefusalData>(r#"{"refusal":"no_such_agent","agent":"bob"}"#);
}

#[test]
fn a_message_and_a_turn_are_told_apart() {
    let message = format!("{{{MESSAGE}}}");
    assert!(matches!(serde_json::from_str(&message), Ok(Said::Message(_))));
}

#[test]
fn lines_of_an_export_keep_their_bytes() {
    round_trip::<ExportLine>(r#"{"posthaste":"realm","form":2,"database":1,"realm":"main"}"#);
    round_trip::<ExportLine>(r#"{"table":"agents","row":{"id":"ann","born":{"hex":"00"}}}"#);
    round_trip::<ExportLine>(r#"{"end":{"rows":1,"sha256":"ab"}}"#);
}

#[test]
fn params_send_only_what_is_given() {
    let params: SendParams = serde_json::from_str(r#"{"to":["bob"],"body":{"a": 1}}"#).unwrap();
    assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"to":["bob"],"body":{"a": 1}}"#);
    let params: InboxParams = serde_json::from_str("{}").unwrap();
    assert_eq!(params, InboxParams::default());
    assert_eq!(params.limit, PageSize(50));
    let params: ReserveParams =
        serde_json::from_str(r#"{"scope":"s","paths":["a"],"expires_at":1}"#).unwrap();
    assert!(params.exclusive);
}

#[test]
fn params_refuse_unknown_members_and_wrong_types() {
    let error = |text: &str| serde_json::from_str::<MessageParams>(text).unwrap_err().to_string();
    assert_eq!(
        error(r#"{"message":"1","x":2}"#),
        "unknown field `x`, expected `agent` or `message` at line 1 column 18"
    );
    assert_eq!(error("{}"), "missing field `message` at line 1 column 2");
    let error = serde_json::from_str::<InboxParams>(r#"{"limit":null}"#).unwrap_err().to_string();
    assert_eq!(error, "invalid type: null, expected usize at line 1 column 13");
}

#[test]
fn params_of_methods_without_params_are_ignored() {
    for text in ["{}", "[1]", r#"{"x":{}}"#] {
        assert_eq!(serde_json::from_str::<NoParams>(text).unwrap(), NoParams {}, "{text}");
    }
}

#[test]
fn members_of_files_that_have_another_type_count_as_absent() {
    let file: FileData = serde_json::from_str(r#"{"name":7,"data":"eA==","media_type":null,"x":1}"#).unwrap();
    assert_eq!(file, FileData { name: String::new(), data: Some("eA==".into()), media_type: None });
    assert!(serde_json::from_str::<FileData>("7").is_err());
}
