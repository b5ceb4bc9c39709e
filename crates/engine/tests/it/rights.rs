//! Authorisation of changes: every verb, tried on the same items by their owner, a participant, an observer, another
//! member, a stranger and an administrator.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;

use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{
    Audience, Caller, ContactState, MessageId, PeerKind, Seq, Summary, TokenRole, TurnId,
};
use posthaste_engine::testing::record_delivered;
use posthaste_engine::verbs::Command;
use posthaste_engine::verbs::agents::{Existing, Orphan, Register, SetState, Unregister, Update};
use posthaste_engine::verbs::claims::{Claim, MoveClaim, ReleaseClaim};
use posthaste_engine::verbs::contacts::{Answer, Ask, EndContact};
use posthaste_engine::verbs::conversations::{Close, Create, Invite, Join, Leave, Remove, Reopen};
use posthaste_engine::verbs::deliveries::{
    Acknowledge, Discard, Dispatched, MarkDelivered, MarkFailed, MarkRead,
};
use posthaste_engine::verbs::keys::ChangeKeys;
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::office::{Announce, SetRules, Sweep};
use posthaste_engine::verbs::peers::{PutPeer, RemovePeer};
use posthaste_engine::verbs::reservations::ReserveEach;
use posthaste_engine::verbs::reservations::{Release, Renew, Reserve, Which};
use posthaste_engine::verbs::scopes::{CreateScope, DeleteScope, JoinScope, LeaveScope};
use posthaste_engine::verbs::signed::SendSigned;
use posthaste_engine::verbs::tasks::{AddContributor, CreateTask, UpdateTask};
use posthaste_engine::verbs::tokens::{CreateToken, RenewToken, RevokeToken};
use posthaste_engine::verbs::turns::{KeepSummary, OpenThread};
use posthaste_engine::{EngineError, Refusal};

use crate::harness::{
    Realm, admin, conversation, conversation_id, id, invitee, json, later, member, message, observer,
    realm as named, say, scope,
};
use crate::runs::opening;

/// The callers, in the order of the columns.
const CALLERS: [&str; 6] = ["owner", "participant", "observer", "member", "stranger", "admin"];

fn caller(column: usize) -> Caller {
    match CALLERS[column] {
        "owner" => member("anna"),
        "participant" => member("bert"),
        "observer" => observer("eye"),
        "member" => member("out"),
        "stranger" => Caller::stranger(id("anna"), "test"),
        _ => admin(),
    }
}

/// Items of anna, in which bert takes part and which observers may read.
struct Items {
    realm: Realm,
    message: MessageId,
    turn: TurnId,
    reservation: Seq,
    token: String,
}

async fn items() -> Items {
    let realm = Realm::new();
    let [anna, bert, ..] = realm.agents(["anna", "bert", "eye", "out", "boss"]).await;
    for pet in ["pet", "pup"] {
        realm.ask(&anna, Register { id: Some(id(pet)), ..Register::default() }).await;
    }
    let open = Create { audience: Audience::Observers, ..conversation("c", &["bert"]) };
    realm.ask(&anna, open).await;
    let turn = realm.say(&anna, "c", "root").await.id;
    realm.ask(&anna, task("t", Some("bert"))).await;
    realm.scope(&anna, "s", CreateScope::default(), &["anna", "bert", "pet"]).await;
    let sent =
        realm.ask(&anna, SendMessage { audience: Audience::Observers, ..message("bert", "open") }).await;
    let held = realm.ask(&anna, reserve("src/**")).await;
    realm.ask(&anna, Ask { to: id("bert"), reason: None, expires_at: None }).await;
    let token = realm.ask(&admin(), token(1)).await;
    realm.ask(&admin(), peer()).await;
    assert_eq!(bert.agent, id("bert"));
    Items { message: sent.message.id, turn, reservation: held.reservation.seq, token: token.id, realm }
}

fn task(name: &str, assignee: Option<&str>) -> CreateTask {
    CreateTask {
        id: Some(conversation_id(name)),
        title: None,
        description: None,
        status: None,
        owner: None,
        assignee: assignee.map(id),
        participants: Vec::new(),
        audience: Audience::Observers,
        meta: None,
    }
}

fn reserve(path: &str) -> Reserve {
    Reserve {
        key: None,
        scope: "repo".into(),
        paths: vec![path.into()],
        exclusive: false,
        reason: None,
        issued_at: None,
        expires_at: later(),
        audience: Audience::Observers,
        meta: None,
    }
}

fn token(n: u8) -> CreateToken {
    CreateToken {
        hash: vec![n; 32],
        role: TokenRole::Agent,
        name: "out".into(),
        door: None,
        observe: false,
        expires_at: None,
    }
}

fn peer() -> PutPeer {
    PutPeer {
        name: named("north"),
        kind: PeerKind::Office,
        url: None,
        token_ref: None,
        reachable: true,
        volatile: false,
        meta: None,
        seen_at: None,
    }
}

type Tried<'t> = Pin<Box<dyn Future<Output = Result<(), EngineError>> + 't>>;

/// The word of a verb, who may (one character per column), and the attempt.
type Row = (&'static str, &'static str, Box<dyn for<'t> Fn(&'t Items, Caller) -> Tried<'t>>);

/// Every verb, and who may apply it to the items above: `x` if the caller of the column may, `.` if not.
fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    macro_rules! row {
        ($word:literal, $may:literal, |$at:ident| $verb:expr) => {
            rows.push((
                $word,
                $may,
                Box::new(|$at, caller| {
                    let verb = $verb;
                    Box::pin(async move { $at.realm.engine.submit(&caller, verb).await.map(drop) })
                }),
            ));
        };
    }
    // Agents: themselves, their owner, administrators.
    row!("register", "xxxx.x", |_at| Register { id: Some(id("newcomer")), ..Register::default() });
    row!("register", "x....x", |_at| Register {
        id: Some(id("pet")),
        existing: Existing::TakeOver,
        ..Register::default()
    });
    row!("update", "x....x", |_at| Update { name: Some("x".into()), ..Update::of(id("pet")) });
    row!("set_state", "x....x", |_at| SetState { agent: id("pet"), state: "busy".into() });
    row!("orphan", "x....x", |_at| Orphan { agent: id("pet"), cause: None });
    row!("unregister", "x....x", |_at| Unregister { agent: id("pet"), reason: None, cause: None });
    row!("change_keys", ".....x", |_at| ChangeKeys {
        agent: id("pet"),
        before: None,
        keys: json("{}"),
        proof_keys: Vec::new(),
        token: None,
        token_door: None,
        token_ends: None,
        revoke: false,
    });
    // Messages belong to their senders, delivery states to the recipients.
    row!("send", "xxxx.x", |_at| message("anna", "hello"));
    // Only the engine makes this command, and only after it has checked the recipients.
    row!("record_delivered", "xxxx.x", |_at| record_delivered(message("anna", "hello"), vec![id("anna")]));
    row!("send_sealed", "xxxx.x", |_at| SendSigned {
        message: message("anna", "hello"),
        keys: Vec::new(),
        side_effect: None
    });
    row!("mark_delivered", ".x...x", |at| MarkDelivered { agent: id("bert"), messages: vec![at.message] });
    row!("mark_read", ".x...x", |at| MarkRead { agent: id("bert"), message: at.message, unread: false });
    row!("acknowledge", ".x...x", |at| Acknowledge {
        agent: id("bert"),
        message: at.message,
        response: None
    });
    row!("discard", ".x...x", |at| Discard { agent: id("bert"), message: at.message });
    row!("mark_failed", ".....x", |at| MarkFailed {
        agent: id("bert"),
        message: at.message,
        reason: "x".into()
    });
    row!("dispatched", ".....x", |at| Dispatched {
        peer: named("north"),
        agent: id("bert"),
        message: at.message,
        failure: None,
    });
    // Conversations: participants. An observer may join and speak, and change nothing else.
    row!("create_conversation", "xxxx.x", |_at| conversation("new", &[]));
    row!("close_conversation", "xx...x", |_at| Close {
        conversation: conversation_id("c"),
        status: None,
        reason: None
    });
    row!("reopen_conversation", "xx...x", |_at| Reopen { conversation: conversation_id("c") });
    row!("join_conversation", ".xx..x", |_at| Join { conversation: conversation_id("c"), role: None });
    row!("leave_conversation", "xx....", |_at| Leave { conversation: conversation_id("c"), reason: None });
    row!("invite", "x....x", |_at| Invite { conversation: conversation_id("c"), invitee: invitee("pet") });
    row!("remove_participant", "x....x", |_at| Remove {
        conversation: conversation_id("c"),
        agent: id("bert"),
        reason: None
    });
    row!("say", "xx...x", |_at| say("c", "a word"));
    row!("open_thread", "xx...x", |at| OpenThread {
        conversation: conversation_id("c"),
        root: at.turn,
        parent: None,
        subject: None
    });
    row!("keep_summary", "xx...x", |_at| KeepSummary {
        conversation: conversation_id("c"),
        part: "all".into(),
        summary: Summary { text: "forged".into(), ..Summary::default() },
        up_to: 1,
        announce: true,
    });
    // Scopes: their creator; members may add agents that they see.
    row!("create_scope", "xxxx.x", |_at| CreateScope { id: Some(scope("new")), ..CreateScope::default() });
    row!("join_scope", "xx...x", |_at| JoinScope { scope: scope("s"), agent: id("pup") });
    row!("leave_scope", "x....x", |_at| LeaveScope { scope: scope("s"), agent: id("pet") });
    row!("delete_scope", "x....x", |_at| DeleteScope { scope: scope("s"), with_descendants: true });
    // Tasks: participants.
    row!("create_task", "xxxx.x", |_at| task("new", None));
    row!("create_task", "xx...x", |_at| task("c", None));
    row!("update_task", "xx...x", |_at| UpdateTask {
        result: Some(json("\"forged\"")),
        ..UpdateTask::of(conversation_id("t"))
    });
    row!("update_task", "xx...x", |_at| UpdateTask {
        assignee: Some(id("out")),
        ..UpdateTask::of(conversation_id("t"))
    });
    row!("add_contributor", "xx...x", |_at| AddContributor {
        task: conversation_id("t"),
        contributor: "out".into()
    });
    row!("advance_run", ".....x", |_at| opening("r"));
    // Reservations: their holder.
    row!("reserve", "xxxx.x", |_at| reserve("docs/**"));
    row!("reserve_each", "xxxx.x", |_at| ReserveEach {
        scope: "repo".into(),
        paths: vec!["docs/**".into()],
        exclusive: false,
        reason: None,
        expires_at: later(),
        audience: Audience::Observers,
        only_if_free: false,
        meta: None,
    });
    row!("renew", "x.....", |at| Renew { which: Which::Number(at.reservation), expires_at: later() });
    row!("release", "x....x", |at| Release {
        which: vec![Which::Number(at.reservation)],
        owner: Some(id("anna"))
    });
    row!("release", "x.....", |at| Release { which: vec![Which::Number(at.reservation)], owner: None });
    // Contacts: the two agents.
    row!("ask_contact", "xxxx.x", |_at| Ask { to: id("pet"), reason: None, expires_at: None });
    row!("answer_contact", ".x....", |_at| Answer {
        from: id("anna"),
        state: ContactState::Accepted,
        expires_at: None
    });
    row!("end_contact", ".x....", |_at| EndContact { with: id("anna") });
    // Administration of the realm.
    row!("create_token", ".....x", |_at| token(2));
    row!("renew_token", ".....x", |_at| RenewToken { old: vec![1; 32], hash: vec![3; 32], expires_at: None });
    row!("revoke_token", ".....x", |at| RevokeToken { id: at.token.clone() });
    row!("put_peer", ".....x", |_at| peer());
    row!("remove_peer", ".....x", |_at| RemovePeer { name: named("north") });
    row!("announce", "xxxx.x", |_at| Announce { word: "x".into(), data: json("{}"), to: None });
    row!("set_rules", ".....x", |_at| SetRules { rules: Rules::default() });
    row!("claim", ".....x", |_at| Claim {
        alias: "/srv".into(),
        realm: named("main"),
        by: None,
        instead_of: None,
        project: None,
        covers: false,
    });
    row!("move_claim", ".....x", |_at| MoveClaim {
        alias: "/srv".into(),
        realm: named("main"),
        by: None,
        project: None,
    });
    row!("release_claim", ".....x", |_at| ReleaseClaim { alias: "/srv".into() });
    row!("sweep", ".....x", |_at| Sweep {});
    rows
}

#[test]
fn every_verb_has_a_row() {
    let covered: BTreeSet<&str> = rows().iter().map(|row| row.0).collect();
    let all: BTreeSet<&str> = Command::WORDS.iter().copied().collect();
    assert_eq!(covered, all, "a verb without a row is not checked");
}

#[tokio::test]
async fn only_permitted_callers_may_change_items() {
    let mut wrong = Vec::new();
    // A refusal changes nothing, so one realm is enough for all refusals.
    let untouched = items().await;
    for (row, (word, may, attempt)) in rows().iter().enumerate() {
        assert_eq!(may.len(), CALLERS.len(), "{word}");
        for (column, expected) in may.chars().enumerate() {
            let fresh = if expected == 'x' { Some(items().await) } else { None };
            let at = fresh.as_ref().unwrap_or(&untouched);
            let done = match attempt(at, caller(column)).await {
                Ok(()) => Ok(()),
                Err(EngineError::Refused(why)) => Err(why),
                Err(fault) => panic!("{word} by the {}: {fault}", CALLERS[column]),
            };
            if done.is_ok() != (expected == 'x') {
                wrong.push(format!("row {row}, {word} by the {}: {done:?}", CALLERS[column]));
            }
            // A refusal must not reveal more than the caller may know: strangers and other members learn nothing.
            if let (Err(Refusal::NotAParticipant { .. } | Refusal::ParticipantMayNot { .. }), 3 | 4) =
                (&done, column)
            {
                wrong.push(format!("row {row}, {word} tells the {} of a conversation", CALLERS[column]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
