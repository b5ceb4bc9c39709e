//! Confidentiality: a realm full of private items, read through every view and feed by callers that are party to none of
//! them.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use posthaste_engine::nouns::{
    Address, Audience, Caller, Event, MessageId, MessagesSeenBy, PeerKind, PermissionsPatch, Privacy,
    ScopeVisibility, Seq, ThreadId, TokenRole, TurnId, TurnVisibility, Visibility,
};
use posthaste_engine::verbs::agents::{Bearer, Register, SetState, Unregister};
use posthaste_engine::verbs::claims::Claim;
use posthaste_engine::verbs::contacts::Ask;
use posthaste_engine::verbs::conversations::{Create, Invitee};
use posthaste_engine::verbs::deliveries::{Acknowledge, MarkRead};
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::verbs::office::{Announce, Sweep};
use posthaste_engine::verbs::peers::PutPeer;
use posthaste_engine::verbs::reservations::Reserve;
use posthaste_engine::verbs::runs::{Advance, RunMessage};
use posthaste_engine::verbs::scopes::{CreateScope, JoinScope};
use posthaste_engine::verbs::seen_keys::SingleUseKey;
use posthaste_engine::verbs::signed::{SendSigned, SideEffect};
use posthaste_engine::verbs::tasks::{CreateTask, UpdateTask};
use posthaste_engine::verbs::tokens::CreateToken;
use posthaste_engine::verbs::turns::{KeepSummary, OpenThread, Say};
use posthaste_engine::views::{
    AgentQuery, ConversationQuery, InboxOrder, InboxQuery, Named, Part, ReservationQuery, ScopeQuery,
    SearchQuery, TaskQuery, TurnQuery, View, Viewed,
};
use posthaste_engine::{EngineError, Feed, Filter, Start, Test};

use crate::harness::{
    Realm, admin, conversation, conversation_id, id, invitee, json, later, member, message, observer,
    realm as named, say, say_to, scope, soon, to,
};
use crate::runs::{opening, run_message};

/// Every private item contains this word, so any output with it is a leak.
const SECRET: &str = "zebra";

/// Ids that an outsider could have learned and may ask for.
struct KnownIds {
    message: MessageId,
    at: Seq,
    turn: TurnId,
    thread: ThreadId,
}

/// Fills a realm with private items of every kind. Their only parties are `insider` and `zebra-…`.
async fn fill(realm: &Realm) -> KnownIds {
    let shown = Register { privacy: Some(Privacy::Contacts), ..Register::default() };
    let insider = realm.register("insider", shown).await;
    let boss = admin();
    realm.agent("boss").await;
    realm.scope(&insider, "square", CreateScope::default(), &[]).await;
    let hidden = |visibility| Register {
        visibility: Some(visibility),
        name: Some("zebra".into()),
        description: Some("zebra".into()),
        meta: Some(json(r#"{"zebra":1}"#)),
        parent: Some(id("insider")),
        ..Register::default()
    };
    let friend = realm.register("zebra-friend", hidden(Visibility::ParentOnly)).await;
    let shy = realm.register("zebra-system", hidden(Visibility::System)).await;
    let given = Register { scopes: vec![scope("square")], ..hidden(Visibility::Scope) };
    realm.register("zebra-scope", given).await;
    realm.ask(&shy, JoinScope { scope: scope("square"), agent: id("zebra-system") }).await;
    realm.ask(&shy, SetState { agent: id("zebra-system"), state: "zebra".into() }).await;
    // An agent that acts in public is visible, so the operator registers this public agent of a hidden owner.
    let owned = Register {
        id: Some(id("child")),
        owner: Some(id("zebra-friend")),
        parent: Some(id("zebra-friend")),
        ..Register::default()
    };
    realm.ask(&boss, owned).await;
    let request = Ask { to: id("insider"), reason: Some("zebra".into()), expires_at: None };
    realm.ask(&member("zebra-scope"), request).await;
    realm.befriend(&insider, &friend).await;
    realm.engine.presences().beat(id("insider"), "zebra", Some("zebra".into()), 600_000);

    let sent = realm
        .ask(
            &insider,
            SendMessage {
                subject: Some("zebra".into()),
                bcc: vec![to("boss")],
                key: Some("zebra-key".into()),
                correlation: Some("zebra".into()),
                ..message("zebra-friend", "zebra message")
            },
        )
        .await;
    let signed = SendSigned {
        message: message("zebra-friend", "zebra signed"),
        keys: vec![SingleUseKey { label: "zebra-label".into(), until: None, digest: None }],
        side_effect: Some(SideEffect::Reserve(Reserve {
            key: Some("zebra-told".into()),
            scope: "repo".into(),
            paths: vec!["zebra/told".into()],
            exclusive: true,
            reason: Some("zebra".into()),
            issued_at: None,
            expires_at: later(),
            audience: Audience::Parties,
            meta: None,
        })),
    };
    realm.ask(&insider, signed).await;
    let sent_id = sent.message.id;
    realm.ask(&friend, MarkRead { agent: id("zebra-friend"), message: sent_id, unread: false }).await;
    let response = Some("zebra".into());
    realm.ask(&friend, Acknowledge { agent: id("zebra-friend"), message: sent_id, response }).await;
    let brief = soon();
    realm.ask(&insider, SendMessage { expires_at: Some(brief), ..message("boss", "zebra brief") }).await;

    let participants = vec![
        Invitee { role: Some("zebra".into()), ..invitee("zebra-friend") },
        Invitee {
            permissions: PermissionsPatch { can_see_internal: Some(true), ..PermissionsPatch::default() },
            ..invitee("boss")
        },
    ];
    realm
        .ask(
            &insider,
            Create { participants, subject: Some("zebra".into()), ..conversation("zebra-chat", &[]) },
        )
        .await;
    let turn = realm.say(&insider, "zebra-chat", "zebra said").await.id;
    for visibility in [
        TurnVisibility::Agents(vec![id("boss")]),
        TurnVisibility::Roles(vec!["zebra".into()]),
        TurnVisibility::Internal,
        TurnVisibility::Private,
    ] {
        realm.ask(&insider, say_to("zebra-chat", "zebra said", visibility)).await;
    }
    let open = OpenThread {
        conversation: conversation_id("zebra-chat"),
        root: turn,
        parent: None,
        subject: Some("zebra".into()),
    };
    let thread = realm.ask(&insider, open).await.id;
    realm.ask(&insider, Say { thread: Some(thread), ..say("zebra-chat", "zebra in the thread") }).await;
    let within = ConversationRef {
        conversation: conversation_id("zebra-chat"),
        thread: None,
        reply_to: None,
        visibility: None,
        join: JoinMode::Open { kind: "thread".into() },
    };
    let recorded =
        SendMessage { within: Some(within), ack_required: true, ..message("zebra-friend", "zebra recorded") };
    realm.ask(&insider, recorded).await;
    let gist =
        realm.see(|view| view.summary(&insider, &conversation_id("zebra-chat"), &Part::default(), false));
    let keep = KeepSummary {
        conversation: conversation_id("zebra-chat"),
        part: gist.part,
        summary: gist.summary,
        up_to: gist.up_to,
        announce: true,
    };
    realm.ask(&insider, keep).await;
    // Open to observers, but with turns that are not for them.
    let open = Create { audience: Audience::Observers, ..conversation("open-chat", &["boss"]) };
    realm.ask(&insider, open).await;
    for visibility in [
        TurnVisibility::Agents(vec![id("boss")]),
        TurnVisibility::Roles(vec!["assistant".into()]),
        TurnVisibility::Internal,
        TurnVisibility::Private,
    ] {
        realm.ask(&insider, say_to("open-chat", "zebra aside", visibility)).await;
    }
    let members = CreateScope {
        name: Some("zebra".into()),
        visibility: Some(ScopeVisibility::Members),
        ..CreateScope::default()
    };
    realm.scope(&insider, "zebra-club", members, &["insider"]).await;
    // Open to observers, but addressed to scopes that restrict who sees their messages.
    for (name, seen_by) in [("den", MessagesSeenBy::Members), ("office", MessagesSeenBy::System)] {
        let made = CreateScope { messages_seen_by: Some(seen_by), ..CreateScope::default() };
        realm.scope(&insider, name, made, &["insider", "boss"]).await;
        let message = SendMessage::text(vec![Address::Scope(scope(name))], "zebra among us");
        realm.ask(&insider, SendMessage { audience: Audience::Observers, ..message }).await;
    }
    let task = CreateTask {
        id: Some(conversation_id("zebra-task")),
        title: Some("zebra".into()),
        description: Some("zebra".into()),
        status: None,
        owner: None,
        assignee: Some(id("boss")),
        participants: Vec::new(),
        audience: Audience::Parties,
        meta: None,
    };
    realm.ask(&insider, task).await;
    realm
        .ask(
            &insider,
            UpdateTask { result: Some(json("\"zebra\"")), ..UpdateTask::of(conversation_id("zebra-task")) },
        )
        .await;
    let reserve = Reserve {
        key: Some("zebra".into()),
        scope: "repo".into(),
        paths: vec!["zebra.rs".into()],
        exclusive: true,
        reason: Some("zebra".into()),
        issued_at: None,
        expires_at: later(),
        audience: Audience::Parties,
        meta: None,
    };
    realm.ask(&insider, reserve.clone()).await;
    realm.ask(&friend, reserve).await;
    let token = CreateToken {
        hash: vec![7; 32],
        role: TokenRole::User,
        name: "zebra".into(),
        door: None,
        observe: false,
        expires_at: None,
    };
    realm.ask(&boss, token).await;
    let claim = Claim {
        alias: "/srv/zebra".into(),
        realm: named("main"),
        by: None,
        instead_of: None,
        project: None,
        covers: false,
    };
    realm.ask(&boss, claim).await;
    let peer = PutPeer {
        name: named("north"),
        kind: PeerKind::Office,
        url: None,
        token_ref: Some("zebra".into()),
        reachable: true,
        volatile: false,
        meta: None,
        seen_at: None,
    };
    realm.ask(&boss, peer).await;
    let abroad =
        vec![posthaste_engine::nouns::Address::Remote { agent: "zebra".into(), realm: named("north") }];
    realm.ask(&insider, SendMessage::text(abroad, "zebra")).await;
    let secret = |n: u128| RunMessage {
        away: vec![(named("north"), id("zebra@north"))],
        ..run_message(n, "insider", "zebra-friend", "zebra")
    };
    let run = Advance { messages: vec![secret(7)], note: Some(json("\"zebra\"")), ..opening("zebra-run") };
    realm.ask(&boss, run).await;
    let told = Announce { word: "zebra".into(), data: json("\"zebra\""), to: Some(vec![id("insider")]) };
    realm.ask(&insider, told).await;
    realm.passed(brief).await;
    realm.ask(&boss, Sweep {}).await;
    realm
        .ask(&shy, Unregister { agent: id("zebra-system"), reason: Some("zebra".into()), cause: None })
        .await;
    KnownIds { message: sent_id, at: sent.message.seq, turn, thread }
}

/// Callers that are party to nothing: a stranger that claims a name, a member, and an observer.
fn outsiders() -> [(&'static str, Caller); 3] {
    [
        ("a stranger", Caller::stranger(id("insider"), "test")),
        ("a member", Caller::member(id("out"), "test")),
        ("an observer", observer("out")),
    ]
}

/// A view: its name, and a call that shows a private item to its parties.
type Row = (&'static str, Box<dyn Fn(&View<'_>, &Caller, &KnownIds) -> Viewed<String>>);

/// Every public function of the views, some several times.
fn rows() -> Vec<Row> {
    fn told<T: Debug>(found: Viewed<T>) -> Viewed<String> {
        found.map(|found| format!("{found:?}"))
    }
    let mut rows: Vec<Row> = Vec::new();
    macro_rules! row {
        ($name:ident, |$view:ident, $caller:ident, $heard:ident| $call:expr) => {
            rows.push((stringify!($name), Box::new(move |$view, $caller, $heard| told($call))));
        };
    }
    let inbox = || InboxQuery { limit: 99, ..InboxQuery::default() };
    row!(inbox, |view, caller, _heard| view.inbox(caller, &id("insider"), &inbox()));
    row!(inbox, |view, caller, _heard| view.inbox(caller, &id("zebra-friend"), &inbox()));
    row!(inbox, |view, caller, _heard| view.inbox(
        caller,
        &id("boss"),
        &InboxQuery { order: InboxOrder::Priority, ..inbox() }
    ));
    row!(mail_counts, |view, caller, _heard| view.mail_counts(caller, &id("zebra-friend")));
    row!(unread_up_to, |view, caller, _heard| view.unread_up_to(caller, &id("zebra-friend"), 9));
    row!(waiting, |view, caller, _heard| view.waiting(caller, &id("zebra-friend"), 0, 99));
    for agent in ["zebra-friend", "boss"] {
        rows.push((
            "unacknowledged",
            Box::new(move |view, caller, _| told(view.unacknowledged(caller, &id(agent), None, None, 99))),
        ));
    }
    row!(failed_deliveries, |view, caller, _heard| view.failed_deliveries(caller, None, 99));
    row!(delivery_index, |view, caller, _heard| view.delivery_index(caller, &id("zebra-friend"), 0, 99));
    row!(deliveries_of, |view, caller, heard| view.deliveries_of(caller, heard.at, None, 99));
    row!(message, |view, caller, heard| view.message(caller, heard.message));
    row!(message_at, |view, caller, heard| view.message_at(caller, heard.at));
    row!(message_by_key, |view, caller, _heard| view.message_by_key(caller, &id("insider"), "zebra-key"));
    // The result is an id; outsiders must not learn that it exists.
    let found = |named: Named| if named == Named::None { "nothing" } else { SECRET };
    row!(message_named, |view, caller, heard| view.message_named(caller, &heard.at.to_string()).map(found));
    row!(message_named, |view, caller, heard| view
        .message_named(caller, &heard.message.0.to_string()[..35])
        .map(found));
    row!(sent, |view, caller, _heard| view.sent(caller, &id("insider"), None, 99));
    row!(latest_correspondence, |view, caller, _heard| view.latest_correspondence(
        caller,
        &conversation_id("zebra-chat"),
        99
    ));
    row!(latest_exchange, |view, caller, _heard| view.latest_exchange(
        caller,
        &id("insider"),
        &id("zebra-friend"),
        0,
        99
    ));
    row!(correspondence, |view, caller, _heard| view.correspondence(
        caller,
        &conversation_id("zebra-chat"),
        0,
        99
    ));
    for agent in ["zebra-friend", "zebra-scope", "zebra-system", "child", "insider"] {
        rows.push(("agent", Box::new(move |view, caller, _| told(view.agent(caller, &id(agent))))));
        rows.push((
            "recent_activity",
            Box::new(move |view, caller, _| told(view.recent_activity(caller, &id(agent)))),
        ));
        rows.push((
            "relatives",
            Box::new(move |view, caller, _| told(view.relatives(caller, &id(agent), 9))),
        ));
    }
    let agents = || AgentQuery { retired: true, limit: 99, ..AgentQuery::default() };
    for agent in ["zebra-friend", "zebra-scope", "zebra-system"] {
        rows.push(("entry", Box::new(move |view, caller, _| told(view.entry(caller, &id(agent))))));
    }
    row!(messages_with_label, |view, caller, _heard| view.messages_with_label(
        caller,
        &id("zebra-friend"),
        "zebra-label"
    ));
    row!(exchange, |view, caller, _heard| view.exchange(caller, &id("insider"), &id("zebra-friend"), 0, 99));
    row!(reservations_called, |view, caller, _heard| view.reservations_called(caller, "zebra-told"));
    row!(agents, |view, caller, _heard| view.agents(caller, &agents()));
    row!(agents, |view, caller, _heard| view
        .agents(caller, &AgentQuery { scope: Some(scope("zebra-club")), ..agents() }));
    row!(agents, |view, caller, _heard| view
        .agents(caller, &AgentQuery { parent: Some(id("zebra-friend")), ..agents() }));
    row!(agents, |view, caller, _heard| view
        .agents(caller, &AgentQuery { owner: Some(id("zebra-friend")), ..agents() }));
    row!(scope, |view, caller, _heard| view.scope(caller, &scope("zebra-club")));
    row!(scopes, |view, caller, _heard| view
        .scopes(caller, &ScopeQuery { limit: 99, ..ScopeQuery::default() }));
    row!(members, |view, caller, _heard| view.members(caller, &scope("zebra-club"), true, None, 99));
    row!(members, |view, caller, _heard| view.members(caller, &scope("square"), true, None, 99));
    row!(writable_scopes, |view, caller, _heard| view.writable_scopes(caller, &scope("zebra-club")));
    row!(writable_scopes, |view, caller, _heard| view.writable_scopes(caller, &scope("square")));
    let conversations = || ConversationQuery { limit: 99, ..ConversationQuery::default() };
    row!(conversations, |view, caller, _heard| view.conversations(caller, &conversations()));
    row!(conversations, |view, caller, _heard| view.conversations(
        caller,
        &ConversationQuery { participant: Some(id("zebra-friend")), newest_first: true, ..conversations() }
    ));
    for name in ["zebra-chat", "zebra-task", "open-chat"] {
        let turns = || TurnQuery { limit: 99, ..TurnQuery::default() };
        rows.push((
            "conversation",
            Box::new(move |view, caller, _| told(view.conversation(caller, &conversation_id(name)))),
        ));
        rows.push((
            "participants",
            Box::new(move |view, caller, _| {
                told(view.participants(caller, &conversation_id(name), true, None, 99))
            }),
        ));
        rows.push((
            "own_part",
            Box::new(move |view, caller, _| told(view.own_part(caller, &conversation_id(name)))),
        ));
        rows.push((
            "threads",
            Box::new(move |view, caller, _| told(view.threads(caller, &conversation_id(name), None, 0, 9))),
        ));
        rows.push((
            "thread",
            Box::new(move |view, caller, h| told(view.thread(caller, &conversation_id(name), h.thread))),
        ));
        rows.push((
            "turns",
            Box::new(move |view, caller, _| told(view.turns(caller, &conversation_id(name), &turns()))),
        ));
        rows.push((
            "count_turns",
            Box::new(move |view, caller, _| told(view.count_turns(caller, &conversation_id(name), &turns()))),
        ));
        rows.push((
            "turn",
            Box::new(move |view, caller, h| told(view.turn(caller, &conversation_id(name), h.turn))),
        ));
        rows.push((
            "conversation_stats",
            Box::new(move |view, caller, _| told(view.conversation_stats(caller, &conversation_id(name)))),
        ));
        rows.push((
            "summary",
            Box::new(move |view, caller, _| {
                told(
                    view.summary(caller, &conversation_id(name), &Part::default(), false)
                        .map(|gist| gist.summary),
                )
            }),
        ));
        rows.push((
            "course",
            Box::new(move |view, caller, _| {
                told(
                    view.course(caller, &conversation_id(name), 0, 99)
                        .map(|events| events.iter().map(|event| shown(event)).collect::<Vec<_>>()),
                )
            }),
        ));
        rows.push(("task", Box::new(move |view, caller, _| told(view.task(caller, &conversation_id(name))))));
    }
    row!(tasks, |view, caller, _heard| view.tasks(caller, &TaskQuery { limit: 99, ..TaskQuery::default() }));
    row!(tasks, |view, caller, _heard| view
        .tasks(caller, &TaskQuery { assignee: Some(id("boss")), limit: 99, ..TaskQuery::default() }));
    row!(run, |view, caller, _heard| view.run(caller, "user:insider", "zebra-run"));
    row!(run_of_task, |view, caller, _heard| view.run_of_task(caller, &conversation_id("zebra-run")));
    row!(runs, |view, caller, _heard| view.runs(caller, "user:insider", "", 99));
    row!(live_runs, |view, caller, _heard| view.live_runs(caller, 0, 99));
    row!(run_record, |view, caller, _heard| view.run_record(caller, &conversation_id("zebra-run"), 0, 99));
    row!(instances, |view, caller, _heard| view.instances(caller, "user:"));
    row!(outbound_to, |view, caller, _heard| view.outbound_to(caller, &named("north"), 99));
    row!(awaited_peers, |view, caller, _heard| view.awaited_peers(caller));
    row!(reservations, |view, caller, _heard| view
        .reservations(caller, &ReservationQuery { ended: true, limit: 99, ..ReservationQuery::default() }));
    row!(in_force, |view, caller, _heard| view.in_force(caller, 99));
    row!(clashes, |view, caller, _heard| view.clashes(caller, 99));
    row!(links, |view, caller, _heard| view.links(caller, 99));
    row!(would_conflict, |view, caller, _heard| view.would_conflict(caller, "repo", &["**".into()], true));
    row!(contacts, |view, caller, _heard| view.contacts(caller, &id("insider")));
    row!(contact_requests, |view, caller, _heard| view.contact_requests(caller, &id("insider")));
    row!(contact, |view, caller, _heard| view.contact(caller, &id("insider"), &id("zebra-friend")));
    row!(search, |view, caller, _heard| view
        .search(caller, &SearchQuery { text: SECRET.into(), limit: 99, ..SearchQuery::default() }));
    row!(search, |view, caller, _heard| view.search(
        caller,
        &SearchQuery {
            text: "z*".into(),
            conversation: Some(conversation_id("zebra-chat")),
            limit: 99,
            ..SearchQuery::default()
        }
    ));
    row!(events, |view, caller, _heard| view
        .events(caller, 0, &Filter::everything(), 999)
        .map(|replay| replay.events.iter().map(|event| shown(event)).collect::<Vec<_>>()));
    row!(events_for_any, |view, caller, _heard| view
        .events_for_any(&[caller.clone(), caller.clone()], 0, &Filter::everything(), 999)
        .map(|replay| replay.events.iter().map(|event| shown(event)).collect::<Vec<_>>()));
    row!(earlier, |view, caller, _heard| view
        .earlier(caller, Seq::MAX, &Filter::everything(), 999)
        .map(|replay| replay.events.iter().map(|event| shown(event)).collect::<Vec<_>>()));
    row!(tokens, |view, caller, _heard| view.tokens(caller));
    row!(may_take, |view, caller, _heard| {
        let bearer = Bearer { name: caller.agent.clone(), admin: false };
        view.may_take(&posthaste_engine::nouns::RealmName::main(), &bearer, &id("zebra-system"))
    });
    row!(may_claim, |view, caller, _heard| {
        let bearer = Bearer { name: caller.agent.clone(), admin: false };
        view.may_claim(&posthaste_engine::nouns::RealmName::main(), &bearer, &id("zebra-system"))
    });
    row!(returning, |view, caller, _heard| {
        let bearer = Bearer { name: id("zebra-scope"), admin: false };
        view.returning(caller, &bearer, "zebra-scope")
    });
    row!(similar_names, |view, caller, _heard| view.similar_names(caller, "zebra-scopes"));
    row!(bearer_of, |view, caller, _heard| view.bearer_of(caller, &id("ann")));
    row!(claims, |view, caller, _heard| view.claims(caller));
    row!(token_by_hash, |view, _caller, _heard| view.token_by_hash(&[8; 32]));
    row!(token_by_id, |view, _caller, _heard| view.token_by_id("x"));
    row!(token_has_lapsed, |view, _caller, _heard| view.token_has_lapsed(&[8; 32]));
    row!(peers, |view, caller, _heard| view.peers(caller));
    row!(peer, |view, caller, _heard| view.peer(caller, &named("north")));
    row!(outbound, |view, caller, _heard| view.outbound(caller, 99));
    row!(stats, |view, caller, _heard| view.stats(caller));
    row!(agent_count, |view, caller, _heard| view.agent_count(caller));
    row!(message_count, |view, caller, _heard| view.message_count(caller));
    row!(rate, |view, caller, _heard| view.rate(caller, 60));
    row!(agent_groups, |view, caller, _heard| view.agent_groups(caller));
    // Numbers and limits that reveal nothing about an agent.
    row!(rules, |view, _caller, _heard| view.rules());
    row!(structure, |view, caller, _heard| view.structure(caller));
    row!(head, |view, _caller, _heard| view.head());
    row!(history, |view, _caller, _heard| view.history());
    row!(time_of, |view, _caller, heard| view.time_of(heard.at));
    row!(last_seq_at, |view, _caller, _heard| view.last_seq_at(later()));
    rows
}

/// The content of an event, without the engine's visibility data.
fn shown(event: &Event) -> String {
    format!("{:?} {:?} {:?} {:?}", event.actor, event.fact, event.message, event.turn)
}

fn has_secret(text: &str) -> bool {
    text.to_lowercase().contains(SECRET)
}

#[tokio::test]
async fn no_view_shows_an_outsider_anything_private() {
    let realm = Realm::new();
    realm.agent("out").await;
    let heard = fill(&realm).await;
    for (who, caller) in outsiders() {
        for (name, look) in rows() {
            match realm.engine.read_blocking(|view| look(view, &caller, &heard)) {
                Ok(text) => assert!(!has_secret(&text), "{who} through {name}: {text}"),
                // A refusal must be the same as for an item that does not exist.
                Err(EngineError::Refused(why)) => {
                    let why = format!("{why:?}");
                    assert!(
                        why.starts_with("NoSuch") || why.starts_with("NotAllowed"),
                        "{who}, {name}: {why}"
                    );
                }
                Err(fault) => panic!("{who} through {name}: {fault}"),
            }
        }
    }
}

#[tokio::test]
async fn same_views_show_private_items_to_permitted_callers() {
    let realm = Realm::new();
    realm.agent("out").await;
    let heard = fill(&realm).await;
    // A row that shows nothing even to an administrator proves nothing about outsiders.
    let silent = [
        "may_take",
        "may_claim",
        "bearer_of",
        "mail_counts",
        "token_by_hash",
        "token_by_id",
        "token_has_lapsed",
        "stats",
        "agent_count",
        "message_count",
        "rules",
        "head",
        "history",
    ];
    let silent: BTreeSet<&str> = silent
        .into_iter()
        .chain([
            "structure",
            "time_of",
            "last_seq_at",
            "count_turns",
            "conversation_stats",
            "instances",
            "rate",
            "agent_groups",
            "unread_up_to",
        ])
        .collect();
    let mut telling = BTreeSet::new();
    for (name, look) in rows() {
        let found = realm.engine.read_blocking(|view| look(view, &admin(), &heard));
        if found.is_ok_and(|text| has_secret(&text)) {
            telling.insert(name);
        }
    }
    let names: BTreeSet<&str> =
        rows().iter().map(|row| row.0).filter(|name| !silent.contains(name)).collect();
    assert_eq!(telling, names);
}

#[test]
fn every_view_has_a_row() {
    let mut found = BTreeSet::new();
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/views");
    for file in std::fs::read_dir(directory).expect("the views") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("source text");
        for line in text.lines() {
            let Some(rest) = line.trim_start().strip_prefix("pub fn ") else { continue };
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            found.insert(name);
        }
    }
    for name in ["is_last", "has_enough"] {
        assert!(found.remove(name), "{name} reads nothing");
    }
    let covered: BTreeSet<String> = rows().iter().map(|row| row.0.to_owned()).collect();
    assert_eq!(found, covered, "a view without a row is not checked");
}

/// A feed, and the last seq that it has examined.
async fn traced(realm: &Realm, caller: &Caller, start: Start) -> (Feed, Arc<AtomicI64>) {
    let looked = Arc::new(AtomicI64::new(0));
    let seen = looked.clone();
    let test = Test(Arc::new(move |event: &Event| {
        seen.fetch_max(event.seq, Ordering::Relaxed);
        true
    }));
    let feed = realm.engine.follow(caller, Filter::Test(test), start, 64).await.expect("a feed");
    (feed, looked)
}

/// Follows to the end of the event log and returns everything that was shown.
async fn shown_by(realm: &Realm, caller: &Caller, (mut feed, looked): (Feed, Arc<AtomicI64>)) -> Vec<String> {
    if caller.rights.member {
        return realm.drain(&mut feed, caller).await.iter().map(|event| shown(event)).collect();
    }
    // A stranger is shown nothing, not even the end, so wait until its feed has examined two more events.
    let task = tokio::spawn(async move { feed.next().await });
    for _ in 0..2 {
        let tick = Announce { word: "tick".into(), data: json("{}"), to: Some(Vec::new()) };
        let end = realm.ask(&admin(), tick).await;
        while looked.load(Ordering::Relaxed) < end && !task.is_finished() {
            tokio::task::yield_now().await;
        }
    }
    assert!(!task.is_finished(), "a stranger was shown something");
    task.abort();
    Vec::new()
}

#[tokio::test]
async fn no_feed_shows_an_outsider_anything_private() {
    let realm = Realm::new();
    realm.agent("out").await;
    let mut live = Vec::new();
    for (who, caller) in outsiders() {
        live.push((who, caller.clone(), traced(&realm, &caller, Start::Now).await));
    }
    fill(&realm).await;
    for (who, caller, feed) in live {
        for event in shown_by(&realm, &caller, feed).await {
            assert!(!has_secret(&event), "{who}, live: {event}");
        }
    }
    let realm = realm.reopened();
    for (who, caller) in outsiders() {
        let feed = traced(&realm, &caller, Start::After(0)).await;
        for event in shown_by(&realm, &caller, feed).await {
            assert!(!has_secret(&event), "{who}, from the db: {event}");
        }
    }
}

#[tokio::test]
async fn mailboxes_and_presence_are_closed_to_outsiders() {
    let realm = Realm::new();
    realm.agent("out").await;
    fill(&realm).await;
    for (who, caller) in outsiders() {
        for box_of in ["insider", "zebra-friend", "boss", "child"] {
            assert!(realm.engine.attach(&caller, &id(box_of)).await.is_err(), "{who}: {box_of}'s mailbox");
            assert!(!realm.engine.is_attached(&id(box_of)));
        }
        let seen = realm.see(|view| {
            let agent = view.agent(&admin(), &id("insider"))?;
            realm.engine.presences().of(view, &caller, &agent)
        });
        assert_eq!(seen, None, "{who}: presence");
    }
}

#[tokio::test]
async fn live_feed_and_replay_show_the_same_events() {
    let realm = Realm::new();
    realm.agent("out").await;
    let watchers = [member("insider"), member("out"), observer("out"), admin()];
    let mut live = Vec::new();
    for caller in &watchers {
        live.push(traced(&realm, caller, Start::Now).await);
    }
    let start = realm.see(|view| view.head());
    fill(&realm).await;
    let mut shown_live = Vec::new();
    for (caller, feed) in watchers.iter().zip(live) {
        shown_live.push(shown_by(&realm, caller, feed).await);
    }
    for (caller, shown_live) in watchers.iter().zip(shown_live) {
        let replay = realm.see(|view| view.events(caller, start, &Filter::everything(), 999));
        let kept = |event: &&Arc<Event>| !shown(event).contains("\"end\"");
        let replayed: Vec<String> = replay.events.iter().filter(kept).map(|event| shown(event)).collect();
        assert_eq!(shown_live, replayed, "{caller:?}");
    }
}
