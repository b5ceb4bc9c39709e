//! AIRC's requests and responses keep their members and their order: each text parses into its type and is written as
//! the same text.

use posthaste_wire::airc::{
    Accepted, AckPayload, AgentsAnswer, CapabilitiesAnswer, ChallengeAnswer, ChallengeRequest, ConsentAnswer,
    ConsentRequest, ConsentState, ContentPayload, DeletedAnswer, Delivery, Discovery, ErrorBody,
    FlatExchange, FlatInbox, Health, HeartbeatAnswer, HeartbeatRequest, IdentityAnswer, LeaveAnswer,
    MailboxPayload, MessagePage, PendingConsents, PresenceList, ReadAnswer, RefreshAnswer, RefreshRequest,
    RegisterRequest, ReservationPayload, RevokeAnswer, RotateAnswer, SignedEnvelope, UnsignedEnvelope,
    UnsignedMembers,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn keeps<T: Serialize + DeserializeOwned>(text: &str) {
    let value: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(serde_json::to_string(&value).unwrap(), text);
}

/// The members of an identity.
const IDENTITY: &str = concat!(
    r#""handle":"ann","username":"ann","display_name":null,"public_key":"ed25519:A","publicKey":"ed25519:A","#,
    r#""recovery_key":null,"capabilities":["text"],"registry":"http://h","status":"active","#,
    r#""created_at":"2026-01-01T00:00:00.000Z","createdAt":"2026-01-01T00:00:00.000Z","#,
    r#""updated_at":"2026-01-01T00:00:00.000Z","key_rotated_at":null,"revoked_at":null,"#,
    r#""previous_keys":[{"public_key":"ed25519:B","valid_until":"2026-01-01T00:00:00.000Z"}]"#,
);

/// The members of a session.
fn session() -> String {
    format!(
        r#""success":true,"handle":"ann","username":"ann","registry":"http://h","session_token":"t","token":"t","sessionId":"00","expires_at":"e","expiresAt":"e","identity":{{{IDENTITY}}}"#
    )
}

#[test]
fn identities_keep_their_form() {
    let session = session();
    keeps::<RegisterRequest>(
        r#"{"handle":"ann","display_name":null,"public_key":"k","recovery_key":"r","capabilities":["text"],"proof":"p"}"#,
    );
    keeps::<ChallengeRequest>(r#"{"handle":"ann"}"#);
    keeps::<ChallengeAnswer>(
        r#"{"success":true,"challenge":"c","handle":"ann","expiresAt":"e","expires_at":"e"}"#,
    );
    keeps::<RefreshRequest>(r#"{"handle":"ann","challenge":"c","signature":"s"}"#);
    keeps::<IdentityAnswer>(&format!(r#"{{{IDENTITY},"success":true}}"#));
    keeps::<CapabilitiesAnswer>(r#"{"success":true,"handle":"ann","capabilities":{"payloads":["x"]}}"#);
    keeps::<RefreshAnswer>(&format!(r#"{{{session},"accessToken":"t","refreshToken":"t"}}"#));
    keeps::<RotateAnswer>(&format!(r#"{{{session},"public_key":"k","key_rotated_at":"e"}}"#));
    keeps::<RevokeAnswer>(&format!(
        r#"{{"success":true,"handle":"ann","status":"revoked","revoked_at":"e","identity":{{{IDENTITY}}}}}"#
    ));
    keeps::<AgentsAnswer>(&format!(
        r#"{{"success":true,"count":1,"agents":[{{{IDENTITY},"available":false}}]}}"#
    ));
}

#[test]
fn presence_and_consent_keep_their_form() {
    let entry = r#"{"handle":"ann","username":"ann","display_name":"Ann","status":"away","context":null,"workingOn":"","last_seen":"e","lastSeen":"e","expires_at":"e","ago":"just now"}"#;
    keeps::<HeartbeatRequest>(r#"{"status":"available","privacy":"public"}"#);
    keeps::<HeartbeatAnswer>(
        r#"{"success":true,"handle":"ann","username":"ann","privacy":"public","last_seen":"e","expires_at":"e"}"#,
    );
    keeps::<LeaveAnswer>(r#"{"success":true,"username":"ann"}"#);
    keeps::<PresenceList>(&format!(
        r#"{{"success":true,"counts":{{"active":0,"away":1,"total":1}},"active":[],"away":[{entry}],"users":[{entry}],"presence":{entry}}}"#
    ));
    keeps::<PresenceList>(
        r#"{"success":true,"counts":{"active":0,"away":0,"total":0},"active":[],"away":[],"users":[],"presence":{"handle":"ann","username":"ann","status":"offline","workingOn":""}}"#,
    );
    keeps::<ConsentRequest>(r#"{"action":"request","handle":"bob","message":null}"#);
    keeps::<ConsentAnswer>(
        r#"{"success":true,"handle":"bob","from":"ann","to":"bob","state":"pending","status":"pending"}"#,
    );
    keeps::<PendingConsents>(
        r#"{"success":true,"user":"bob","count":1,"pending":[{"from":"ann","handle":"ann","to":"bob","message":null,"state":"pending","created_at":"e"}]}"#,
    );
    keeps::<ConsentState>(
        r#"{"success":true,"from":"ann","to":"bob","state":"none","status":"none","incoming":"accepted","updatedAt":null,"version":0}"#,
    );
}

#[test]
fn messages_keep_their_form() {
    keeps::<Accepted<'static>>(
        r#"{"success":true,"messageId":"m","id":"m","message":{"id":"m","from":"ann","to":"@public","thread_id":null,"created_at":"e"},"seq":7,"delivered":2,"status":"accepted"}"#,
    );
    keeps::<Accepted<'static>>(
        r#"{"success":true,"messageId":"m","id":"m","message":{"id":"m","from":"ann","to":"bob","thread_id":"t","created_at":"e"},"seq":7,"delivered":1,"status":"accepted","reservation":{"reservation_id":"r","owner":"ann","scope":"repo:x","status":"active","expires_ts":"e"},"conflicts":[{"reservation_id":"q","owner":"bob","scope":"repo:x","paths":["a"],"requested_paths":["b"],"expires_ts":"e","reason":null,"seq":3}],"warnings":[{"code":"unknown_scope","message":"w"}]}"#,
    );
    keeps::<MessagePage>(
        r#"{"success":true,"messages":[{ "to":"bob" , "n":1.0 }],"count":1,"nextCursor":null,"hasMore":false,"cursor":"c1"}"#,
    );
    keeps::<Delivery>(r#"{"seq":1,"received_at":"e","read":false,"acked":false,"to":"bob","id":"m"}"#);
    keeps::<UnsignedEnvelope>(
        r#"{"v":"0.2.0","id":"m","from":"ann","to":"bob","timestamp":1,"thread_id":"t","reply_to":"q","body":"b","payload":{"type":"text","content":"b"},"delivery":{"seq":1,"received_at":"e","read":true,"acked":true,"to":"bob","id":"m","door":"map","priority":"high","ack_required":true,"subject":"s","in_reply_to":"q","attachments":[{"name":"f"}]}}"#,
    );
    keeps::<UnsignedMembers>(
        r#"{"id":"m","to":"@bob","thread_id":"t","reply_to":"q","payload":{"type":"x"}}"#,
    );
    keeps::<UnsignedMembers>("{}");
    keeps::<ReadAnswer>(r#"{"success":true,"id":"m","status":"read","read_at":null}"#);
    keeps::<DeletedAnswer>(r#"{"success":true,"id":"m","status":"deleted"}"#);
    let flat = r#"{"id":"m","from":"ann","to":"bob","text":"b","body":"b","type":"text","payload":null,"thread_id":null,"reply_to":null,"timestamp":1,"created_at":"e","createdAt":"e","seq":1,"read":false,"signature":null}"#;
    keeps::<FlatInbox>(&format!(
        r#"{{"success":true,"user":"bob","count":1,"unread":1,"threads":[{{"id":"bob:ann","with":"ann","unread":1,"last_message":{flat},"updated_at":"e"}}],"inbox":[{flat}],"messages":[{flat}]}}"#
    ));
    keeps::<FlatExchange>(&format!(r#"{{"success":true,"user":"bob","count":1,"messages":[{flat}]}}"#));
}

#[test]
fn payloads_keep_their_form() {
    keeps::<ContentPayload>(r#"{"type":"text","content":"hello"}"#);
    keeps::<MailboxPayload>(
        r#"{"type":"context:mailbox","message_id":"m","subject":"s","body_md":"b","ack_required":false,"priority":"normal","kind":"x.poke","expires_ts":"e","thread_id":"t"}"#,
    );
    keeps::<AckPayload>(r#"{"type":"context:mailbox_ack","message_id":"m","ack_ts":"e","response":"yes"}"#);
    keeps::<ReservationPayload>(
        r#"{"type":"context:file_reservation","reservation_id":"r","scope":"repo:x","paths":["a"],"exclusive":true,"status":"active","ttl_seconds":60,"issued_ts":"e","expires_ts":"e","reason":"w","thread_id":"t"}"#,
    );
    keeps::<ReservationPayload>(
        r#"{"type":"context:file_reservation","reservation_id":"r","status":"released","released_ts":"e"}"#,
    );
    keeps::<SignedEnvelope>(
        r#"{"v":"0.2","id":"m","from":"ann","to":"bob","timestamp":1,"nonce":"n","payload":{"type":"text","content":"x"},"thread_id":"t","signature":"ed25519:A"}"#,
    );
}

#[test]
fn errors_and_descriptions_keep_their_form() {
    keeps::<ErrorBody>(r#"{"success":false,"error":"busy","code":"busy","message":"m","retry_after":1}"#);
    keeps::<ErrorBody>(
        r#"{"success":false,"error":"consent_required","code":"consent_required","message":"m","pendingConsent":true,"state":"pending"}"#,
    );
    keeps::<ErrorBody>(
        r#"{"success":false,"error":"invalid_payload","code":"invalid_payload","message":"m","field":"paths"}"#,
    );
    keeps::<Health>(
        r#"{"success":true,"status":"healthy","version":"0.1.0","protocol":"AIRC","protocol_version":"0.2.0","safe_mode":true,"reason":null}"#,
    );
    let version = r#"{"identity":"/identity","presence":"/presence","messages":"/messages","consent":"/consent","signing":"required"}"#;
    keeps::<Discovery>(&format!(
        r#"{{"protocol":"AIRC","protocol_version":"0.2.0","registry_name":"posthaste main","registry_id":"main","registry_url":"http://h","endpoints":{{"identity":"/identity","register":"/register","presence":"/presence","messages":"/messages","consent":"/consent","health":"/health"}},"versions":{{"0.2":{version},"0.1":{version}}},"safe_mode":true,"signing":{{"algorithm":"Ed25519","required":true,"canonicalization":"RFC 8785","clock_window_seconds":300}},"auth":{{"type":"bearer","required":true,"token_endpoint":"/auth/refresh"}},"rate_limits":{{"requests_per_minute":1,"messages_per_minute":1,"broadcasts_per_minute":1,"heartbeats_per_minute":1,"consent_requests_per_hour":1,"registrations_per_hour":1}},"limits":{{"max_payload_bytes":65536,"presence_ttl_seconds":90}},"capabilities":["text"],"extensions":[{{"name":"x","version":"0.1.0"}}],"broadcast_targets":["@contacts","@public"],"federation_enabled":false,"relay_endpoint":null,"federation":{{"enabled":false,"public":false,"relay_endpoint":null}}}}"#
    ));
}
