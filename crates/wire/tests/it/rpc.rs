//! JSON-RPC frames: the examples of the specification, edge cases, and random input.

use posthaste_wire::rpc::{self, ErrorObject, Item, Message, RequestId};
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

const LIMIT: usize = 8;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// A message as one line, for comparison.
fn show(message: &Message) -> String {
    let params = |params: &Option<Box<RawValue>>| params.as_ref().map_or("-".to_owned(), |it| it.to_string());
    match message {
        Message::Request { id, method, params: it } => {
            format!("request {} {method} {}", id.as_json(), params(it))
        }
        Message::Notification { method, params: it } => format!("notification {method} {}", params(it)),
        Message::Response { id, outcome: Ok(result) } => format!("result {} {result}", id.as_json()),
        Message::Response { id, outcome: Err(error) } => {
            format!("error {} {} {} {}", id.as_json(), error.code, error.message, params(&error.data))
        }
        Message::Invalid { id, error } => format!("invalid {} {}", id.as_json(), error.code),
    }
}

fn show_items(text: &str) -> Vec<String> {
    let show_item = |item: &Item| match item {
        Item::Single(message) => show(message),
        Item::Batch(messages) => format!("[{}]", messages.iter().map(show).collect::<Vec<_>>().join("; ")),
    };
    rpc::parse(text, LIMIT).iter().map(show_item).collect()
}

#[track_caller]
fn check(text: &str, expect: &[&str]) {
    assert_eq!(show_items(text), expect, "{text}");
}

#[test]
fn examples_of_the_specification_parse() {
    check(
        r#"{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}"#,
        &["request 1 subtract [42, 23]"],
    );
    check(
        r#"{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42}, "id": 4}"#,
        &[r#"request 4 subtract {"minuend": 42}"#],
    );
    check(r#"{"jsonrpc": "2.0", "method": "foobar"}"#, &["notification foobar -"]);
    check(r#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#, &["invalid null -32700"]);
    check(r#"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#, &["invalid null -32600"]);
    check(
        r#"[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, {"jsonrpc": "2.0", "method"]"#,
        &["invalid null -32700"],
    );
    check("[]", &["invalid null -32600"]);
    check("[1]", &["[invalid null -32600]"]);
    check("[1,2,3]", &["[invalid null -32600; invalid null -32600; invalid null -32600]"]);
    check(
        r#"[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
            {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
            {"foo": "boo"},
            {"jsonrpc": "2.0", "method": "get_data", "id": "9"}]"#,
        &[
            r#"[request "1" sum [1,2,4]; notification notify_hello [7]; invalid null -32600; request "9" get_data -]"#,
        ],
    );
}

#[test]
fn ids_are_echoed_exactly_or_refused() {
    for id in ["0", "-1", "-0", "123456789012345678901234567890", "null", r#""""#, r#""\u0061/\/""#] {
        check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#), &[&format!("request {id} m -")]);
        check(&format!(r#"{{"jsonrpc":"1.0","id":{id},"method":"m"}}"#), &[&format!("invalid {id} -32600")]);
    }
    for id in ["1.0", "1e3", "true", "{}", "[]", "[1]"] {
        check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#), &["invalid null -32600"]);
    }
}

#[test]
fn members_of_wrong_types_are_refused() {
    for (text, expect) in [
        (r#"{"id":1,"method":"m"}"#, "invalid 1 -32600"),
        (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, "invalid 1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, "invalid 1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#, "invalid 1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":"x"}"#, "invalid 1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#, "invalid 1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "invalid 1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, "invalid null -32600"),
        (r#"["2.0",1,"m"]"#, "[invalid null -32600; invalid null -32600; invalid null -32600]"),
        (r#"[["2.0",1,"m"]]"#, "[invalid null -32600]"),
        (r#""hello""#, "invalid null -32600"),
    ] {
        check(text, &[expect]);
    }
}

#[test]
fn responses_have_an_id_and_one_outcome() {
    for (text, expect) in [
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "result 1 null"),
        (r#"{"jsonrpc":"2.0","id":"a","result":{"x": 1.0}}"#, r#"result "a" {"x": 1.0}"#),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#, "error null -32700 m -"),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":[1]}}"#, "error 1 1 m [1]"),
        (r#"{"jsonrpc":"2.0","result":1}"#, "invalid null -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"error":"m"}"#, "invalid 1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"error":[1,"m"]}"#, "invalid 1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"m"}}"#, "invalid 1 -32600"),
        (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"m"}}"#, "invalid 1 -32600"),
    ] {
        check(text, &[expect]);
    }
}

#[test]
fn malformed_lines_do_not_stop_later_lines() {
    let call = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
    let (a, b) = (call(1), call(2));
    check(&format!("{a}\n{b}\n"), &["request 1 m -", "request 2 m -"]);
    check(&format!(" \r\n{a}\r\n\r\n[{b}]\r\n"), &["request 1 m -", "[request 2 m -]"]);
    check(&format!("{a}\nnope\n{b}"), &["request 1 m -", "invalid null -32700", "request 2 m -"]);
    check(&format!("nope\n{a}\n"), &["invalid null -32700", "request 1 m -"]);
    check(&format!("{{\"jsonrpc\":\"2.0\",\"id\n{a}"), &["invalid null -32700", "request 1 m -"]);
    check(&format!("{a} {b}\n{a}"), &["invalid null -32700", "request 1 m -"]);
    check("no\nnor this\nnor that", &["invalid null -32700"]);
    // A value may span several lines, malformed values too.
    let spread = a.replace(',', ",\n");
    check(&format!("{spread}\n{b}"), &["request 1 m -", "request 2 m -"]);
    check(&spread.replace("2.0\"", "2.0"), &["invalid null -32700"]);
    // No part of a malformed batch is executed.
    for batch in
        [format!("[\n{a}"), format!("[{{,\n{a}\n]"), format!("{{\"x\":[\n{a}\n]"), format!("[{a}\n{b}")]
    {
        check(&batch, &["invalid null -32700"]);
    }
    // Values that share a line with other text are refused.
    check(&format!("{a}{b}"), &["invalid null -32700"]);
    check(&format!("{a} {b}"), &["invalid null -32700"]);
    check(&format!("{a}}}"), &["invalid null -32700"]);
    for text in ["", " \n ", "\u{feff}{}", "nul"] {
        check(text, &["invalid null -32700"]);
    }
}

#[test]
fn frame_is_limited_in_messages() {
    let note = r#"{"jsonrpc":"2.0","method":"m"}"#;
    let batch = |count: usize| format!("[{}]", vec![note; count].join(","));
    let size = |text: &str| match &rpc::parse(text, LIMIT)[..] {
        [Item::Batch(messages)] => messages.len(),
        _ => 0,
    };
    assert_eq!(size(&batch(LIMIT)), LIMIT);
    check(&batch(LIMIT + 1), &["invalid null -32600"]);

    let lines = show_items(&[note; LIMIT + 2].join("\n"));
    assert_eq!(lines.len(), LIMIT + 1);
    assert_eq!(lines[LIMIT], "invalid null -32600");
    // Lines and batches share the limit.
    assert_eq!(show_items(&format!("{note}\n{}", batch(LIMIT)))[1], "invalid null -32600");
}

#[test]
fn responses_are_written_on_one_line() {
    let id = RequestId::from(7);
    assert_eq!(
        rpc::write_result(&id, &raw("{\n  \"x\": 1.0,\r\n  \"y\": \"\\n\"\n}")),
        r#"{"jsonrpc":"2.0","id":7,"result":{   "x": 1.0,    "y": "\n" }}"#
    );
    let mut error = ErrorObject::new(rpc::METHOD_NOT_FOUND, "no \"such\"\nmethod");
    assert_eq!(
        rpc::write_error(&RequestId::null(), &error),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no \"such\"\nmethod"}}"#
    );
    error.data = Some(raw("[1]"));
    assert!(rpc::write_error(&id, &error).ends_with(r#","data":[1]}}"#));
    assert_eq!(
        rpc::write_notification("map/event", Some(&raw("{}"))),
        r#"{"jsonrpc":"2.0","method":"map/event","params":{}}"#
    );
    assert_eq!(rpc::write_request(&id, "ping", None), r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
    assert_eq!(rpc::write_batch(&["1", "2"]).as_deref(), Some("[1,2]"));
    assert_eq!(rpc::write_batch::<String>(&[]), None);
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(
        text in any::<String>(),
        json in r#"[\[\]{}:,"a\\u0-9eE.+ \n-]{0,40}"#,
        limit in 0..4usize,
    ) {
        for text in [text, json] {
            let items = rpc::parse(&text, limit);
            let count = items.iter().map(|item| match item {
                Item::Single(_) => 1,
                Item::Batch(messages) => messages.len(),
            });
            // Plus one for the error that the limit was exceeded.
            prop_assert!((1..=limit + 1).contains(&count.sum::<usize>()));
        }
    }

    /// A frame of one object takes a fast path; it must agree with the general path.
    #[test]
    fn fast_path_agrees_with_general_path(
        members in prop::collection::vec(
            (
                prop_oneof!["jsonrpc|id|method|params|result|error", "[a-z]{1,4}"],
                prop_oneof![
                    Just("\"2.0\""), Just("1"), Just("-7"), Just("1.5"), Just("null"), Just("\"x\""),
                    Just("{}"), Just("[1]"), Just("{\"code\":1,\"message\":\"m\"}"), Just("true"), Just("01"),
                ],
            ),
            0..6,
        ),
    ) {
        let body = members.iter().map(|(name, value)| format!("\"{name}\":{value}"));
        let object = format!("{{{}}}", body.collect::<Vec<_>>().join(","));
        let alone = rpc::parse(&object, 10);
        let twice = rpc::parse(&format!("{object}\n{object}"), 10);
        let shown = |item: Option<&Item>| item.map(|item| format!("{item:?}"));
        prop_assert_eq!(alone.len(), 1);
        prop_assert_eq!(shown(alone.first()), shown(twice.first()), "{}", object);
    }

    #[test]
    fn written_messages_parse_back(number in any::<i64>(), method in any::<String>(), message in any::<String>()) {
        let id = RequestId::from(number);
        let params = raw("[1]");
        let error = ErrorObject::new(number, message.as_str());
        let frame = [
            rpc::write_request(&id, &method, Some(&params)),
            rpc::write_notification(&method, None),
            rpc::write_result(&id, &params),
            rpc::write_error(&id, &error),
        ];
        let expect = [
            format!("request {number} {method} [1]"),
            format!("notification {method} -"),
            format!("result {number} [1]"),
            format!("error {number} {number} {message} -"),
        ];
        prop_assert_eq!(show_items(&frame.join("\n")), expect.to_vec());
        prop_assert_eq!(show_items(&rpc::write_batch(&frame).unwrap()), [format!("[{}]", expect.join("; "))]);
    }

    #[test]
    fn every_response_is_one_line_of_json(message in any::<String>(), blank in "[ \r\n\t]{0,4}") {
        let mut error = ErrorObject::new(1, message);
        error.data = Some(raw(&format!("[{blank}1{blank}]")));
        let line = rpc::write_error(&RequestId::null(), &error);
        prop_assert!(!line.contains(['\n', '\r']));
        prop_assert!(serde_json::from_str::<Value>(&line).is_ok());
    }
}
