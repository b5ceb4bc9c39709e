//! Pins what every door answers to every refusal: codes, statuses and texts are part of each protocol.

use posthaste_engine::Refusal;
use posthaste_engine::nouns::{AgentId, ConversationId, IdError, JsonError, ScopeId, TaskId};

use super::{airc, control, map, mcp, swarm, web};

/// At least one refusal of each variant, and one for each value that a door treats by itself.
fn samples() -> Vec<Refusal> {
    let agent = || AgentId::new("anna").unwrap();
    let conversation = || ConversationId::new("c1").unwrap();
    let scope = || ScopeId::new("s1").unwrap();
    let task = || TaskId::new("t1").unwrap();
    let key = |key: &str| Refusal::KeyReused { key: key.to_owned() };
    vec![
        Refusal::NoSuchAgent { agent: "ana".to_owned(), near: Vec::new() },
        Refusal::NoSuchAgent { agent: "ana".to_owned(), near: vec![agent()] },
        Refusal::AgentExists { agent: agent() },
        Refusal::BadName { name: "a\tb".to_owned(), why: "it has a tab" },
        Refusal::LooksTaken { agent: agent() },
        Refusal::WrongState { agent: agent(), state: "suspended".to_owned() },
        Refusal::WrongState { agent: agent(), state: "stopped".to_owned() },
        Refusal::CircularParent { agent: agent() },
        Refusal::NotAllowed { need: "an administrator's token" },
        Refusal::ConsentPending { agent: agent() },
        Refusal::ConsentBlocked { agent: agent() },
        Refusal::TooManyRequests { agent: agent() },
        Refusal::NoSuchContact { from: agent(), to: AgentId::new("bert").unwrap() },
        Refusal::PrivacyMismatch,
        Refusal::NoRecipients,
        Refusal::TooMany { what: "paths", limit: 7 },
        Refusal::TooManyReservations { what: "reservations in this scope", limit: 7 },
        Refusal::TooManyParticipants { what: "participants", limit: 7 },
        Refusal::TooLarge { what: "the body", limit: 10, got: 11 },
        Refusal::TooMuchWork { what: "this pattern", instead: "name folders" },
        Refusal::QuotaExceeded { whose: "anna".to_owned(), limit: 9, rule: "bytes_per_account" },
        Refusal::DiskNearlyFull { free: 5 },
        Refusal::BadJson { field: "meta", why: JsonError::TooDeep },
        key("k"),
        key("id:1"),
        key("nonce:1"),
        key("mail:1"),
        key("rsv:1"),
        Refusal::NoSuchMessage,
        Refusal::NoSuchConversation { conversation: conversation() },
        Refusal::ConversationExists { conversation: conversation() },
        Refusal::ConversationClosed { conversation: conversation() },
        Refusal::NotAParticipant { conversation: conversation() },
        Refusal::ParticipantMayNot { conversation: conversation(), need: "to invite" },
        Refusal::AlreadyJoined { agent: agent() },
        Refusal::NoSuchParticipant { agent: agent() },
        Refusal::NoSuchTurn,
        Refusal::NoSuchThread,
        Refusal::BadContentType { content_type: "image".to_owned() },
        Refusal::ThreadTooDeep { limit: 3 },
        Refusal::NoSuchScope { scope: scope() },
        Refusal::ScopeExists { scope: scope() },
        Refusal::ScopeNotEmpty { scope: scope() },
        Refusal::NoSuchTask { task: task() },
        Refusal::TaskExists { task: task() },
        Refusal::TaskEnded { task: task() },
        Refusal::NoSuchReservation,
        Refusal::ReservationExists { key: "k".to_owned() },
        Refusal::BadPath { path: "/x".to_owned(), why: "it is not relative".to_owned() },
        Refusal::NoSuchToken,
        Refusal::NoSuchPeer { peer: "berlin".to_owned() },
        Refusal::BadId(IdError::Empty),
        Refusal::BadValue { field: "paths", why: "none are named" },
        Refusal::BadValue { field: "word", why: "1 to 128 bytes" },
        Refusal::AlreadyExpired { at: 4 },
        Refusal::BadQuery { why: "a quote is open".to_owned() },
        Refusal::StaleCursor,
        Refusal::TooCostly { hint: "ask for fewer" },
        Refusal::Busy,
    ]
}

#[test]
fn samples_cover_every_refusal() {
    let sampled: Vec<&str> = samples().iter().map(Refusal::word).collect();
    for word in Refusal::WORDS {
        assert!(sampled.contains(word), "{word}");
    }
}

#[test]
fn every_refusal_keeps_its_answer_at_every_door() {
    let mut answers = String::new();
    for refusal in samples() {
        answers.push_str(&format!("{}: {refusal}\n", refusal.word()));
        for (door, answer) in [
            ("web", web::refused(refusal.clone())),
            ("swarm", swarm::refused(refusal.clone())),
            ("airc", airc::refused(refusal.clone())),
            ("map", map::refused(refusal.clone())),
            ("mcp", mcp::refused(refusal.clone())),
            ("control", control::refused(refusal.clone())),
        ] {
            answers.push_str(&format!("    {door:<8}{answer}\n"));
        }
    }
    // Shown if the test fails: what the file would have to be.
    println!("{answers}");
    let pinned = include_str!("refusal_codes.txt");
    for (number, (now, before)) in answers.lines().zip(pinned.lines()).enumerate() {
        assert_eq!(now, before, "line {} of refusal_codes.txt", number + 1);
    }
    assert_eq!(answers.lines().count(), pinned.lines().count(), "refusal_codes.txt");
}
