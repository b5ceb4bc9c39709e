//! Properties of every parser of untrusted input. Each takes bytes and panics if it does not hold; the fuzz targets feed it
//! from libFuzzer, and `tests/it/parsers.rs` from mutations of the samples.

use posthaste_wire::airc::Envelope;
use posthaste_wire::canonical::{canonicalize, canonicalize_value, canonicalize_without};
use posthaste_wire::files::{self, FileMessage, FileName, Stamp};
use posthaste_wire::mail::{
    DirectRequest, Interswarm, LoadRequest, MailMessage, MessageRequest, Owner, RegisterRequest, split, tools,
};
use posthaste_wire::map::{Address, EventName, Pattern, Spec, detect_mode, stream_pattern};
use posthaste_wire::rpc::{self, Item, Message};
use posthaste_wire::signing::{SecretKey, sign_envelope};
use posthaste_wire::{sse, time};
use serde_json::Value;

/// Calls in one frame.
const CALLS: usize = 16;

/// A property, by the name of its fuzz target.
pub(crate) type Property = (&'static str, fn(&[u8]), &'static [&'static str]);

/// The parsers of the `wire` crate, each with samples.
pub(crate) const WIRE: &[Property] = &[
    (
        "map_frame",
        map_frame,
        &[
            r#"{"jsonrpc":"2.0","id":1,"method":"map/send","params":{"to":"a","payload":{}}}"#,
            "[{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"m\"},{\"jsonrpc\":\"2.0\",\"method\":\"n\"},7]",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\",\"params\":[1]}",
        ],
    ),
    (
        "map_values",
        map_values,
        &[
            r#"{"agent":"a"}"#,
            r#"{"agents":["a","b"]}"#,
            r#"{"scope":"s"}"#,
            r#"{"broadcast":true}"#,
            r#"{"eventTypes":["agent.*"],"fromAgents":["a"],"priority":{"min":"high"}}"#,
            r#""child:a""#,
            "scope.*",
            r#"{"system":"s","agent":"a"}"#,
            "map:agent:x",
        ],
    ),
    (
        "rpc_batch",
        rpc_batch,
        &[
            "[]",
            "[1]",
            "[[]]",
            r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"\u0000"}},{"id":{}},null]"#,
        ],
    ),
    (
        "airc_canonical",
        airc_canonical,
        &[
            r#"{"b":1,"a":[1.0,1e3,-0,"\u00e9\ud83d\ude00"],"signature":"x"}"#,
            "[0.1,1E400,9007199254740993]",
            r#"{"a":{"z":null,"y":true},"":""}"#,
            "-1.5e-7",
            r#"{"a":1,"a":2}"#,
        ],
    ),
    (
        "airc_envelope",
        airc_envelope,
        &[
            r#"{"v":"0.2","id":"msg_a1b2","from":"ann","to":"bob","timestamp":1736180000,"nonce":"n1","body":"hi","payload":{"type":"message:text","text":"hi"},"signature":"x"}"#,
        ],
    ),
    (
        "mail_message",
        mail_message,
        &[
            r#"{"id":"8ec2be66-fc6d-4a1c-b2f7-d73b9f0c2c41","timestamp":"2026-01-01T00:00:00Z","msg_type":"request","message":{"task_id":"8ec2be66-fc6d-4a1c-b2f7-d73b9f0c2c41","request_id":"8ec2be66-fc6d-4a1c-b2f7-d73b9f0c2c41","sender":{"address_type":"agent","address":"a"},"recipient":{"address_type":"agent","address":"b@far"},"subject":"s","body":"b","sender_swarm":null,"recipient_swarm":null,"routing_info":{}}}"#,
            r#"{"body":"b","subject":"s","task_id":"t","stream":true,"resume_from":"user_response","msg_type":"request","max_steps":3}"#,
            r#"{"user_token":"t","body":"b","targets":["a@far"],"subject":"s","msg_type":"broadcast"}"#,
            r#"{"name":"far","base_url":"http://far.test","auth_token":"${X}","volatile":true,"metadata":{}}"#,
            r#"{"message_id":"m","source_swarm":"a","target_swarm":"b","timestamp":"2026-01-01T00:00:00Z","payload":{},"msg_type":"request","task_owner":"user:u@a","task_contributors":["agent:x@b"]}"#,
            r#"{"target":"a","subject":"s","body":"b"}"#,
        ],
    ),
    (
        "files_message",
        files_message,
        &[
            r#"{"from":"ann","to":"bob","type":"question","subject":"s","body":"b","timestamp":"2026-01-01T00:00:00.123456Z","read":false,"priority":"high"}"#,
            "{\n  \"body\": {\"a\": 1.50},\n  \"from\": \"a\",\n  \"read\": false,\n  \"z\": [1e3]\n}\n",
            "{}",
            "{ }",
            r#"{"from":"a","read":"false","payload":null,"read":true}"#,
        ],
    ),
    (
        "files_name",
        files_name,
        &[
            "2026-01-06T12-00-00.123456Z-ann.json",
            "2026-01-06T12:00:00Z-a-b.json",
            "20260106T120000+0100-x.json",
            "../x.json",
            ".ph-x.tmp",
            "archive",
            "a.json",
        ],
    ),
    (
        "sse",
        sse_stream,
        &[
            "id: 1\nevent: x\ndata: {\"a\":1}\ndata: two\n\n",
            "retry: 5\r\n: comment\r\ndata\r\n\r\n",
            "\u{feff}data: x\r\r",
            "id: a\0b\ndata:\n\n",
        ],
    ),
    (
        "times",
        times,
        &[
            "2026-01-06T12:00:00Z",
            "2026-01-06T12:00:00.123456789+05:30",
            "1736180000",
            "1736180000000",
            "-1",
            "30d",
            "500ms",
            "9999-12-31T23:59:59.999Z",
            "0000-01-01T00:00:00Z",
            "9223372036854775807",
            "99999999999w",
        ],
    ),
];

/// Frames of a peer: parsed without panic, each message once, and every response can be parsed again.
pub(crate) fn map_frame(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let items = rpc::parse(text, CALLS);
    assert!(!items.is_empty(), "every frame has an item");
    for item in &items {
        let messages = match item {
            Item::Single(message) => std::slice::from_ref(message),
            Item::Batch(messages) => messages,
        };
        for message in messages {
            let answer = match message {
                Message::Request { id, params, .. } => {
                    rpc::write_result_text(id, params.as_deref().map_or("null", |params| params.get()))
                }
                Message::Invalid { id, error } => rpc::write_error(id, error),
                Message::Notification { .. } | Message::Response { .. } => continue,
            };
            assert!(!answer.contains('\n'), "a response is one line: {answer}");
            let again = rpc::parse(&answer, 1);
            let read = matches!(again.as_slice(), [Item::Single(Message::Response { .. })]);
            assert!(read, "a response can be parsed: {answer}");
        }
    }
}

/// A batch holds at most the allowed number of calls, and its responses are one line.
pub(crate) fn rpc_batch(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for limit in [1, 3, 100] {
        for item in rpc::parse(text, limit) {
            let Item::Batch(messages) = item else { continue };
            assert!(messages.len() <= limit, "{} in a batch of {limit}", messages.len());
            let answers: Vec<String> = messages
                .iter()
                .filter_map(|message| match message {
                    Message::Request { id, .. } => Some(rpc::write_result_text(id, "null")),
                    Message::Invalid { id, error } => Some(rpc::write_error(id, error)),
                    _ => None,
                })
                .collect();
            if let Some(line) = rpc::write_batch(&answers) {
                assert!(!line.contains('\n'));
                let read: Value = serde_json::from_str(&line).expect("a batch of responses is JSON");
                assert_eq!(read.as_array().map(Vec::len), Some(answers.len()));
            }
        }
    }
}

/// The values inside a call: addresses, filters, modes, event ids and names, in arbitrary JSON.
pub(crate) fn map_values(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = (Pattern::new(text), stream_pattern(text), EventName::parse(text));
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    if let Ok(found) = Address::parse(&value) {
        assert!(!found.is_empty(), "an accepted address names at least one recipient");
    }
    let _ = (Spec::parse(&value), detect_mode(&value));
}

/// Canonical JSON: every text is canonicalised or refused, and canonical text is its own canonical form.
pub(crate) fn airc_canonical(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(once) = canonicalize(text) else { return };
    assert_eq!(canonicalize(&once).expect("canonical text is JSON"), once);
    // Canonicalising the parsed value gives the same text.
    let value: Value = serde_json::from_str(&once).expect("canonical text is JSON");
    assert_eq!(canonicalize_value(&value).expect("it was canonicalised before"), once);
    if value.is_object() {
        let without = canonicalize_without(text, "signature").expect("an object");
        let again: Value = serde_json::from_str(&without).expect("canonical text is JSON");
        assert!(again.get("signature").is_none());
    }
}

/// Envelopes: parsing returns an error or the envelope verbatim, and only the right key verifies it.
pub(crate) fn airc_envelope(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(envelope) = Envelope::parse(text) else { return };
    assert!(text.contains(&envelope.text));
    let key = SecretKey::from_seed(&[7; 32]);
    // The input cannot hold a signature of this key.
    assert!(envelope.verify(&key.public()).is_err());
    let signature = sign_envelope(&envelope.text, &key).expect("it was read");
    key.public().verify(envelope.signed().as_bytes(), &signature).expect("the same bytes");
    let shown = Envelope::with_delivery(&envelope.text, "{\"seq\":1}");
    let back = canonicalize_without(&shown, "delivery").expect("still an object");
    assert_eq!(canonicalize_without(&back, "signature").expect("still an object"), envelope.signed());
}

/// Requests to a swarm: refused with a field's name, or parsed; written and parsed again, they are equal.
pub(crate) fn mail_message(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
    if let Ok(message) = MailMessage::read(&value) {
        let written = serde_json::to_value(&message).expect("JSON");
        let again = MailMessage::read(&written).expect("written data can be parsed");
        assert_eq!(serde_json::to_value(&again).expect("JSON"), written);
    }
    if let Ok(wrapper) = Interswarm::read(&value) {
        let written = serde_json::to_value(&wrapper).expect("JSON");
        let again = Interswarm::read(&written).expect("written data can be parsed");
        assert_eq!(serde_json::to_value(&again).expect("JSON"), written);
    }
    if let Ok(request) = MessageRequest::read(&value) {
        let _ = (request.max_steps(), request.timeout(), request.breakpoint_results());
    }
    let _ = (DirectRequest::read(&value), RegisterRequest::read(&value), LoadRequest::read(&value));
    for tool in tools::NAMES {
        let _ = tools::Call::read(tool, &value);
    }
    if let Some(text) = value.as_str() {
        let _ = split(text);
        if let Some(owner) = Owner::parse(text) {
            assert_eq!(Owner::parse(&owner.to_string()), Some(owner));
        }
    }
}

/// Files: a parsed file that is written parses to the same, and marking one as read changes nothing else.
pub(crate) fn files_message(bytes: &[u8]) {
    let name = "2026-01-06T12-00-00.000000Z-ann.json";
    if let Ok(message) = FileMessage::parse(bytes, "bob", name) {
        let text = message.to_text();
        let again = FileMessage::parse(text.as_bytes(), "bob", name).expect("written data can be parsed");
        assert_eq!(again.to_text(), text);
        let _ = message.body_text();
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(marked) = files::flag::set_read(text) {
        let value: Value = serde_json::from_str(&marked).expect("still JSON");
        assert_eq!(value["read"], true, "{marked}");
        let (mut before, mut after): (Value, Value) =
            (serde_json::from_str(text).expect("it was JSON"), value);
        before.as_object_mut().map(|fields| fields.remove("read"));
        after.as_object_mut().map(|fields| fields.remove("read"));
        assert_eq!(before, after, "nothing but `read` changed");
    }
    let _ = (files::signals::Hook::parse(bytes, "a"), files::signals::Nudge::parse(bytes));
}

/// File names: a plain one stays in its folder, and a timestamp survives being written into a name.
pub(crate) fn files_name(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if files::name::is_plain(text) {
        let mut parts = std::path::Path::new(text).components();
        assert!(
            matches!((parts.next(), parts.next()), (Some(std::path::Component::Normal(_)), None)),
            "{text:?}"
        );
    }
    if let Ok(agent) = files::check_agent(text) {
        let mut parts = std::path::Path::new(agent).components();
        assert!(
            matches!((parts.next(), parts.next()), (Some(std::path::Component::Normal(_)), None)),
            "{agent:?}"
        );
    }
    let _ = files::name::sender_in(text);
    if let Some(name) = FileName::parse(text) {
        let again = FileName::write(name.stamp, &name.from);
        let read = FileName::parse(&again).expect("written data can be parsed");
        assert_eq!(read.from, name.from);
        // Names hold microseconds.
        assert_eq!(read.stamp.millis(), name.stamp.millis());
    }
    if let Some(written) = Stamp::parse(text) {
        assert!(Stamp::from_nanos(written.stamp.nanos()).is_some());
    }
}

/// Event streams: the same events however the bytes are split, and never more in memory than allowed.
pub(crate) fn sse_stream(bytes: &[u8]) {
    const LIMIT: usize = 256;
    let whole = {
        let mut events = Vec::new();
        let result = sse::Parser::new(LIMIT).feed(bytes, &mut events);
        (events, result.is_ok())
    };
    let size = 1 + bytes.first().map_or(0, |byte| usize::from(*byte) % 7);
    let mut parser = sse::Parser::new(LIMIT);
    let (mut events, mut good) = (Vec::new(), true);
    for chunk in bytes.chunks(size) {
        good &= parser.feed(chunk, &mut events).is_ok();
    }
    assert_eq!((&events, good), (&whole.0, whole.1), "split into chunks of {size}");
    for event in &events {
        assert!(event.data.len() <= LIMIT);
        // A written event parses to the same data.
        let mut out = String::new();
        let id = (!event.id.is_empty() && !event.id.contains('\0')).then_some(event.id.as_str());
        sse::write_event(&mut out, id, Some(&event.event), &event.data);
        let mut again = Vec::new();
        sse::Parser::new(4 * LIMIT).feed(out.as_bytes(), &mut again).expect("small enough");
        assert_eq!(again.len(), 1, "{out:?}");
        assert_eq!(again[0].data, event.data, "{out:?}");
    }
}

/// Timestamps and durations: parsed or refused; a written timestamp parses to the same.
pub(crate) fn times(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(millis) = time::parse_timestamp(text) {
        assert_eq!(time::parse_rfc3339(&time::to_rfc3339(millis)), Ok(millis), "{text}");
    }
    if let Ok(millis) = time::parse_duration(text) {
        assert!(millis >= 0);
    }
    if let Ok(number) = text.parse::<i64>() {
        let _ = (time::from_number(number), time::to_rfc3339(number));
    }
}
