//! No one sees mail that is not theirs: a realm full of private things, and every way of reading it tried by people
//! who have no part in any of them.

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
    Realm, admin, conversation, id, invitee, json, later, letter, member, observer, realm as named, say,
    say_to, scope, soon, talk, to,
};
use crate::runs::{opening, run_letter};

/// Everything private in the realm carries this word, so whatever shows it has shown something.
const SECRET: &str = "zebra";

/// What an outsider could have overheard: names to ask by.
struct Overheard {
    letter: MessageId,
    at: Seq,
    turn: TurnId,
    thread: ThreadId,
}

/// Fills a realm with private things of every kind. Only `insider` and `zebra-…` take part in them.
async fn fill(realm: &Realm) -> Overheard {
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
    // Whoever acts in public shows itself, so this public agent of a hidden owner is entered by the office.
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
                ..letter("zebra-friend", "zebra letter")
            },
        )
        .await;
    let under_seal = SendSigned {
        message: letter("zebra-friend", "zebra under seal"),
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
    realm.ask(&insider, under_seal).await;
    let message = sent.message.id;
    realm.ask(&friend, MarkRead { agent: id("zebra-friend"), message, unread: false }).await;
    let response = Some("zebra".into());
    realm.ask(&friend, Acknowledge { agent: id("zebra-friend"), message, response }).await;
    let brief = soon();
    realm.ask(&insider, SendMessage { expires_at: Some(brief), ..letter("boss", "zebra brief") }).await;

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
            Create { participants, subject: Some("zebra".into()), ..conversation("zebra-talk", &[]) },
        )
        .await;
    let turn = realm.say(&insider, "zebra-talk", "zebra said").await.id;
    for visibility in [
        TurnVisibility::Agents(vec![id("boss")]),
        TurnVisibility::Roles(vec!["zebra".into()]),
        TurnVisibility::Internal,
        TurnVisibility::Private,
    ] {
        realm.ask(&insider, say_to("zebra-talk", "zebra said", visibility)).await;
    }
    let open = OpenThread {
        conversation: talk("zebra-talk"),
        root: turn,
        parent: None,
        subject: Some("zebra".into()),
    };
    let thread = realm.ask(&insider, open).await.id;
    realm.ask(&insider, Say { thread: Some(thread), ..say("zebra-talk", "zebra in the thread") }).await;
    let place = ConversationRef {
        conversation: talk("zebra-talk"),
        thread: None,
        reply_to: None,
        visibility: None,
        join: JoinMode::Open { kind: "thread".into() },
    };
    let recorded =
        SendMessage { within: Some(place), ack_required: true, ..letter("zebra-friend", "zebra recorded") };
    realm.ask(&insider, recorded).await;
    let gist = realm.see(|view| view.summary(&insider, &talk("zebra-talk"), &Part::default(), false));
    let keep = KeepSummary {
        conversation: talk("zebra-talk"),
        part: gist.part,
        summary: gist.summary,
        up_to: gist.up_to,
        announce: true,
    };
    realm.ask(&insider, keep).await;
    // Open to onlookers, but with things said that are not for them.
    let open = Create { audience: Audience::Observers, ..conversation("open-talk", &["boss"]) };
    realm.ask(&insider, open).await;
    for visibility in [
        TurnVisibility::Agents(vec![id("boss")]),
        TurnVisibility::Roles(vec!["assistant".into()]),
        TurnVisibility::Internal,
        TurnVisibility::Private,
    ] {
        realm.ask(&insider, say_to("open-talk", "zebra aside", visibility)).await;
    }
    let members = CreateScope {
        name: Some("zebra".into()),
        visibility: Some(ScopeVisibility::Members),
        ..CreateScope::default()
    };
    realm.scope(&insider, "zebra-club", members, &["insider"]).await;
    // Onlookers may see the letter, but not what goes to scopes that keep it to themselves.
    for (name, letters) in [("den", MessagesSeenBy::Members), ("office", MessagesSeenBy::System)] {
        let made = CreateScope { letters: Some(letters), ..CreateScope::default() };
        realm.scope(&insider, name, made, &["insider", "boss"]).await;
        let letter = SendMessage::text(vec![Address::Scope(scope(name))], "zebra among us");
        realm.ask(&insider, SendMessage { audience: Audience::Observers, ..letter }).await;
    }
    let task = CreateTask {
        id: Some(talk("zebra-task")),
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
        .ask(&insider, UpdateTask { result: Some(json("\"zebra\"")), ..UpdateTask::of(talk("zebra-task")) })
        .await;
    let lease = Reserve {
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
    realm.ask(&insider, lease.clone()).await;
    realm.ask(&friend, lease).await;
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
        ..run_letter(n, "insider", "zebra-friend", "zebra")
    };
    let run = Advance { letters: vec![secret(7)], note: Some(json("\"zebra\"")), ..opening("zebra-run") };
    realm.ask(&boss, run).await;
    let told = Announce { word: "zebra".into(), data: json("\"zebra\""), to: Some(vec![id("insider")]) };
    realm.ask(&insider, told).await;
    realm.passed(brief).await;
    realm.ask(&boss, Sweep {}).await;
    realm
        .ask(&shy, Unregister { agent: id("zebra-system"), reason: Some("zebra".into()), cause: None })
        .await;
    Overheard { letter: message, at: sent.message.seq, turn, thread }
}

/// Who has no part in anything: somebody unknown who claims a name, a member, and one who may observe.
fn outsiders() -> [(&'static str, Caller); 3] {
    [
        ("a stranger", Caller::stranger(id("insider"), "test")),
        ("a member", Caller::member(id("out"), "test")),
        ("an observer", observer("out")),
    ]
}

/// One way of reading: its name in the views, and a call that would show something private to those it belongs to.
type Row = (&'static str, Box<dyn Fn(&View<'_>, &Caller, &Overheard) -> Viewed<String>>);

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
    row!(dead_letters, |view, caller, _heard| view.dead_letters(caller, None, 99));
    row!(ledger, |view, caller, _heard| view.ledger(caller, &id("zebra-friend"), 0, 99));
    row!(copies, |view, caller, heard| view.copies(caller, heard.at, None, 99));
    row!(message, |view, caller, heard| view.message(caller, heard.letter));
    row!(message_at, |view, caller, heard| view.message_at(caller, heard.at));
    row!(message_by_key, |view, caller, _heard| view.message_by_key(caller, &id("insider"), "zebra-key"));
    // What a name means is an id; that it means something is what outsiders must not learn.
    let found = |named: Named| if named == Named::None { "nothing" } else { SECRET };
    row!(message_named, |view, caller, heard| view.message_named(caller, &heard.at.to_string()).map(found));
    row!(message_named, |view, caller, heard| view
        .message_named(caller, &heard.letter.0.to_string()[..35])
        .map(found));
    row!(sent, |view, caller, _heard| view.sent(caller, &id("insider"), None, 99));
    row!(latest_correspondence, |view, caller, _heard| view.latest_correspondence(
        caller,
        &talk("zebra-talk"),
        99
    ));
    row!(latest_exchange, |view, caller, _heard| view.latest_exchange(
        caller,
        &id("insider"),
        &id("zebra-friend"),
        0,
        99
    ));
    row!(correspondence, |view, caller, _heard| view.correspondence(caller, &talk("zebra-talk"), 0, 99));
    for agent in ["zebra-friend", "zebra-scope", "zebra-system", "child", "insider"] {
        rows.push(("agent", Box::new(move |view, caller, _| told(view.agent(caller, &id(agent))))));
        rows.push(("traces", Box::new(move |view, caller, _| told(view.traces(caller, &id(agent))))));
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
    for name in ["zebra-talk", "zebra-task", "open-talk"] {
        let turns = || TurnQuery { limit: 99, ..TurnQuery::default() };
        rows.push((
            "conversation",
            Box::new(move |view, caller, _| told(view.conversation(caller, &talk(name)))),
        ));
        rows.push((
            "participants",
            Box::new(move |view, caller, _| told(view.participants(caller, &talk(name), true, None, 99))),
        ));
        rows.push(("own_part", Box::new(move |view, caller, _| told(view.own_part(caller, &talk(name))))));
        rows.push((
            "threads",
            Box::new(move |view, caller, _| told(view.threads(caller, &talk(name), None, 0, 9))),
        ));
        rows.push((
            "thread",
            Box::new(move |view, caller, h| told(view.thread(caller, &talk(name), h.thread))),
        ));
        rows.push((
            "turns",
            Box::new(move |view, caller, _| told(view.turns(caller, &talk(name), &turns()))),
        ));
        rows.push((
            "count_turns",
            Box::new(move |view, caller, _| told(view.count_turns(caller, &talk(name), &turns()))),
        ));
        rows.push(("turn", Box::new(move |view, caller, h| told(view.turn(caller, &talk(name), h.turn)))));
        rows.push((
            "conversation_stats",
            Box::new(move |view, caller, _| told(view.conversation_stats(caller, &talk(name)))),
        ));
        rows.push((
            "summary",
            Box::new(move |view, caller, _| {
                told(view.summary(caller, &talk(name), &Part::default(), false).map(|gist| gist.summary))
            }),
        ));
        rows.push((
            "course",
            Box::new(move |view, caller, _| {
                told(
                    view.course(caller, &talk(name), 0, 99)
                        .map(|events| events.iter().map(|event| shown(event)).collect::<Vec<_>>()),
                )
            }),
        ));
        rows.push(("task", Box::new(move |view, caller, _| told(view.task(caller, &talk(name))))));
    }
    row!(tasks, |view, caller, _heard| view.tasks(caller, &TaskQuery { limit: 99, ..TaskQuery::default() }));
    row!(tasks, |view, caller, _heard| view
        .tasks(caller, &TaskQuery { assignee: Some(id("boss")), limit: 99, ..TaskQuery::default() }));
    row!(run, |view, caller, _heard| view.run(caller, "user:insider", "zebra-run"));
    row!(run_of_task, |view, caller, _heard| view.run_of_task(caller, &talk("zebra-run")));
    row!(runs, |view, caller, _heard| view.runs(caller, "user:insider", "", 99));
    row!(live_runs, |view, caller, _heard| view.live_runs(caller, 0, 99));
    row!(run_record, |view, caller, _heard| view.run_record(caller, &talk("zebra-run"), 0, 99));
    row!(instances, |view, caller, _heard| view.instances(caller, "user:"));
    row!(outbound_to, |view, caller, _heard| view.outbound_to(caller, &named("north"), 99));
    row!(awaited_peers, |view, caller, _heard| view.awaited_peers(caller));
    row!(reservations, |view, caller, _heard| view
        .reservations(caller, &ReservationQuery { ended: true, limit: 99, ..ReservationQuery::default() }));
    row!(in_force, |view, caller, _heard| view.in_force(caller, 99));
    row!(clashes, |view, caller, _heard| view.clashes(caller, 99));
    row!(ties, |view, caller, _heard| view.ties(caller, 99));
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
            conversation: Some(talk("zebra-talk")),
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
    row!(near, |view, caller, _heard| view.near(caller, "zebra-scopes"));
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
    row!(muster, |view, caller, _heard| view.muster(caller));
    // Numbers and limits that say nothing about anybody.
    row!(rules, |view, _caller, _heard| view.rules());
    row!(structure, |view, caller, _heard| view.structure(caller));
    row!(head, |view, _caller, _heard| view.head());
    row!(history, |view, _caller, _heard| view.history());
    row!(time_of, |view, _caller, heard| view.time_of(heard.at));
    row!(last_seq_at, |view, _caller, _heard| view.last_seq_at(later()));
    rows
}

/// What an event says, without the engine's own note of who may see it.
fn shown(event: &Event) -> String {
    format!("{:?} {:?} {:?} {:?}", event.actor, event.fact, event.message, event.turn)
}

fn says_secret(text: &str) -> bool {
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
                Ok(text) => assert!(!says_secret(&text), "{who} through {name}: {text}"),
                // A refusal may only say what it would say if the thing did not exist.
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
async fn the_same_views_show_those_whom_it_concerns() {
    let realm = Realm::new();
    realm.agent("out").await;
    let heard = fill(&realm).await;
    // Whatever no row shows even to those who run the office would prove nothing about outsiders.
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
            "muster",
            "unread_up_to",
        ])
        .collect();
    let mut telling = BTreeSet::new();
    for (name, look) in rows() {
        let found = realm.engine.read_blocking(|view| look(view, &admin(), &heard));
        if found.is_ok_and(|text| says_secret(&text)) {
            telling.insert(name);
        }
    }
    let names: BTreeSet<&str> =
        rows().iter().map(|row| row.0).filter(|name| !silent.contains(name)).collect();
    assert_eq!(telling, names);
}

#[test]
fn every_view_has_its_row() {
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
    assert_eq!(found, covered, "a view without a row here could show anybody anything");
}

/// A feed, and how far it has looked.
async fn watched(realm: &Realm, caller: &Caller, start: Start) -> (Feed, Arc<AtomicI64>) {
    let looked = Arc::new(AtomicI64::new(0));
    let seen = looked.clone();
    let test = Test(Arc::new(move |event: &Event| {
        seen.fetch_max(event.seq, Ordering::Relaxed);
        true
    }));
    let feed = realm.engine.follow(caller, Filter::Test(test), start, 64).await.expect("a feed");
    (feed, looked)
}

/// Follows up to the end of the history and hands back all that was shown.
async fn shown_by(realm: &Realm, caller: &Caller, (mut feed, looked): (Feed, Arc<AtomicI64>)) -> Vec<String> {
    if caller.rights.member {
        return realm.drain(&mut feed, caller).await.iter().map(|event| shown(event)).collect();
    }
    // A stranger is shown nothing, not even the end, so it is watched until it has looked at two further events.
    let task = tokio::spawn(async move { feed.next().await });
    for _ in 0..2 {
        let mark = Announce { word: "mark".into(), data: json("{}"), to: Some(Vec::new()) };
        let end = realm.ask(&admin(), mark).await;
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
        live.push((who, caller.clone(), watched(&realm, &caller, Start::Now).await));
    }
    fill(&realm).await;
    for (who, caller, feed) in live {
        for event in shown_by(&realm, &caller, feed).await {
            assert!(!says_secret(&event), "{who}, live: {event}");
        }
    }
    let realm = realm.reopened();
    for (who, caller) in outsiders() {
        let feed = watched(&realm, &caller, Start::After(0)).await;
        for event in shown_by(&realm, &caller, feed).await {
            assert!(!says_secret(&event), "{who}, from the db: {event}");
        }
    }
}

#[tokio::test]
async fn no_mailslot_and_no_presence_is_open_to_outsiders() {
    let realm = Realm::new();
    realm.agent("out").await;
    fill(&realm).await;
    for (who, caller) in outsiders() {
        for box_of in ["insider", "zebra-friend", "boss", "child"] {
            assert!(realm.engine.attach(&caller, &id(box_of)).await.is_err(), "{who}: {box_of}'s slot");
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
async fn what_was_shown_live_is_what_the_books_show() {
    let realm = Realm::new();
    realm.agent("out").await;
    let watchers = [member("insider"), member("out"), observer("out"), admin()];
    let mut live = Vec::new();
    for caller in &watchers {
        live.push(watched(&realm, caller, Start::Now).await);
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
