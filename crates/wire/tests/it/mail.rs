//! MAIL: published examples round-trip, schema violations are refused with the name of the field, and no input makes a
//! parser panic.

use posthaste_wire::mail::tools::Call;
use posthaste_wire::mail::{
    AddressType, DirectRequest, Interswarm, MailAddress, MailMessage, MessageRequest, MsgType, Owner,
    Payload, RegisterRequest, split,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn example(name: &str) -> Value {
    let path = format!("{}/tests/data/mail-1.3/examples/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

const MESSAGES: [&str; 5] = [
    "mail_message_request",
    "mail_message_response",
    "mail_message_broadcast",
    "mail_message_interrupt",
    "mail_message_broadcast_complete",
];

#[test]
fn published_messages_round_trip() {
    for name in MESSAGES {
        let value = example(name);
        let message = MailMessage::read(&value).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(serde_json::to_value(&message).unwrap(), value, "{name}");
        assert_eq!(serde_json::from_value::<MailMessage>(value).unwrap(), message, "{name}");
    }
}

#[test]
fn published_interswarm_messages_round_trip() {
    for name in ["interswarm_request", "interswarm_response"] {
        let value = example(name);
        let wrapper = Interswarm::read(&value).unwrap_or_else(|error| panic!("{name}: {error}"));
        let written = serde_json::to_value(&wrapper).unwrap();
        for (key, field) in value.as_object().unwrap() {
            assert_eq!(written[key], *field, "{name} {key}");
        }
        assert!(written["auth_token"].is_string() && written["metadata"].is_object());
    }
}

/// Each field of a message in turn: removed, of another type, and null; then an unknown field.
#[test]
fn schema_violations_name_the_field() {
    for name in MESSAGES {
        let good = example(name);
        for outer in ["", "message"] {
            let object = if outer.is_empty() { &good } else { &good[outer] };
            let optional = ["sender_swarm", "recipient_swarm", "recipient_swarms", "routing_info"];
            for key in object.as_object().unwrap().keys() {
                let field = if outer.is_empty() { key.clone() } else { format!("{outer}.{key}") };
                let mut changed = good.clone();
                let object = if outer.is_empty() { &mut changed } else { &mut changed[outer] };
                object.as_object_mut().unwrap().remove(key);
                let read = MailMessage::read(&changed);
                if optional.contains(&key.as_str()) {
                    assert!(read.is_ok(), "{name} without {field}");
                } else {
                    assert!(read.unwrap_err().field.starts_with(&field), "{name} without {field}");
                }
                let mut changed = good.clone();
                let object = if outer.is_empty() { &mut changed } else { &mut changed[outer] };
                object[key] = json!(5);
                assert!(
                    MailMessage::read(&changed).unwrap_err().field.starts_with(&field),
                    "{name} {field} = 5"
                );
                // The reference implementation writes null for absent optional fields.
                let mut changed = good.clone();
                let object = if outer.is_empty() { &mut changed } else { &mut changed[outer] };
                object[key] = Value::Null;
                assert_eq!(
                    MailMessage::read(&changed).is_ok(),
                    optional.contains(&key.as_str()),
                    "{name} {field} = null"
                );
            }
            let mut changed = good.clone();
            let object = if outer.is_empty() { &mut changed } else { &mut changed[outer] };
            object["surplus"] = json!(1);
            assert!(MailMessage::read(&changed).is_err(), "{name} takes a surplus field");
        }
    }
}

#[test]
fn schema_details_are_checked() {
    let mut request = example("mail_message_request");
    request["message"]["sender"]["address"] = json!("");
    assert_eq!(MailMessage::read(&request).unwrap_err().field, "message.sender.address");
    let mut request = example("mail_message_request");
    request["message"]["request_id"] = json!("seven");
    assert_eq!(MailMessage::read(&request).unwrap_err().field, "message.request_id");
    // The request id of a response need not be a UUID.
    let mut response = example("mail_message_response");
    response["message"]["request_id"] = json!("seven");
    assert!(MailMessage::read(&response).is_ok());
    let mut wrapper = example("interswarm_request");
    wrapper["msg_type"] = json!("broadcast_complete");
    assert_eq!(Interswarm::read(&wrapper).unwrap_err().field, "msg_type");
    let mut wrapper = example("interswarm_request");
    wrapper["task_owner"] = json!("not an owner");
    assert_eq!(Interswarm::read(&wrapper).unwrap_err().field, "task_owner");
    let mut wrapper = example("interswarm_request");
    wrapper["task_contributors"] = json!(["user:other@else"]);
    assert_eq!(Interswarm::read(&wrapper).unwrap_err().field, "task_contributors", "the owner is left out");
    wrapper["task_contributors"] = json!([]);
    assert!(Interswarm::read(&wrapper).is_ok(), "the schema allows none");
    let mut broadcast = example("mail_message_broadcast");
    broadcast["message"]["recipients"] = json!([]);
    assert_eq!(MailMessage::read(&broadcast).unwrap_err().field, "message.recipients");
}

#[test]
fn owners_and_addresses_are_parsed() {
    let owner = Owner::parse("user:ann:7@far.away").unwrap();
    assert_eq!(
        (owner.id.as_str(), owner.swarm.as_str(), owner.instance().as_str()),
        ("ann:7", "far.away", "user:ann:7")
    );
    assert_eq!(owner.to_string(), "user:ann:7@far.away");
    for bad in ["", "user", "user:@x", "user:x@", "agent:x@y", "x@y", "user:a"] {
        assert_eq!(Owner::parse(bad), None, "{bad}");
    }
    assert_eq!(split("worker@beta"), ("worker", Some("beta")));
    for plain in ["worker", "@beta", "worker@"] {
        assert_eq!(split(plain), (plain, None));
    }
}

#[test]
fn requests_accept_both_names_of_a_field() {
    assert_eq!(MessageRequest::read(&json!({ "message": "a" })).unwrap().body, "a");
    assert_eq!(MessageRequest::read(&json!({ "message": "a", "body": "b" })).unwrap().body, "b");
    let register = RegisterRequest::read(&json!({ "swarm_name": "s", "base_url": "u" })).unwrap();
    assert!(register.name == "s" && register.volatile);
    let direct = json!({ "user_token": "t", "message": "m", "target_agent": "a@b", "stream": true });
    let direct = DirectRequest::read(&direct).unwrap();
    assert_eq!((direct.body.as_str(), direct.targets[0].as_str()), ("m", "a@b"));
    assert_eq!(direct.routing_info["stream"], true);
}

#[test]
fn breakpoint_results_parse_in_every_form() {
    let read = |result: Value| {
        let body = json!({ "task_id": "00000000-0000-4000-8000-000000000001", "resume_from": "breakpoint_tool_call",
                           "kwargs": { "breakpoint_tool_call_result": result } });
        MessageRequest::read(&body).unwrap().breakpoint_results()
    };
    let plain = vec![(None, "yes".to_owned())];
    assert_eq!(read(json!("yes")).unwrap(), plain);
    assert_eq!(read(json!({ "content": "yes" })).unwrap(), plain);
    assert_eq!(read(json!("{\"content\": \"yes\"}")).unwrap(), plain);
    let listed =
        read(json!([{ "call_id": "a", "content": "yes" }, { "call_id": "b", "content": 5 }])).unwrap();
    assert_eq!(listed, [(Some("a".to_owned()), "yes".to_owned()), (Some("b".to_owned()), "5".to_owned())]);
    for bad in [json!(null), json!([]), json!([{ "call_id": "a" }]), json!({})] {
        assert!(read(bad.clone()).is_err(), "{bad}");
    }
}

fn text() -> impl Strategy<Value = String> {
    any::<String>()
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
        Just(json!("request")),
        Just(json!("00000000-0000-4000-8000-000000000001")),
    ];
    leaf.prop_recursive(4, 48, 8, |inner| {
        let key = prop_oneof![
            Just("body".to_owned()),
            Just("message".to_owned()),
            Just("payload".to_owned()),
            Just("sender".to_owned()),
            Just("msg_type".to_owned()),
            Just("task_id".to_owned()),
            Just("targets".to_owned()),
            Just("kwargs".to_owned()),
            text(),
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_parsed_or_refused(value in json_value(), tool in prop_oneof![Just("send_request"), Just("help"), Just("x")]) {
        let _ = MailMessage::read(&value);
        let _ = Interswarm::read(&value);
        let _ = MessageRequest::read(&value).map(|request| (request.max_steps(), request.timeout(), request.breakpoint_results()));
        let _ = DirectRequest::read(&value);
        let _ = RegisterRequest::read(&value);
        let _ = Call::read(tool, &value);
    }

    #[test]
    fn written_messages_parse_back(subject in text(), body in text(), name in "[a-z]{1,8}(@[a-z]{1,8})?", swarm in proptest::option::of("[a-z]{1,8}"), kind in 0..5_usize) {
        let msg_type = MsgType::ALL[kind];
        let message = MailMessage {
            id: "00000000-0000-4000-8000-000000000001".into(),
            timestamp: "2026-01-01T00:00:00.000Z".into(),
            msg_type,
            message: Payload {
                task_id: "00000000-0000-4000-8000-000000000002".into(),
                own_id: "00000000-0000-4000-8000-000000000003".into(),
                sender: MailAddress { address_type: AddressType::User, address: name.clone() },
                recipients: vec![MailAddress::agent(name)],
                subject,
                body,
                sender_swarm: swarm.clone(),
                recipient_swarms: swarm.map(|swarm| vec![swarm]),
                routing_info: None,
            },
        };
        let written = serde_json::to_value(&message).unwrap();
        prop_assert_eq!(MailMessage::read(&written).unwrap(), message);
    }
}
