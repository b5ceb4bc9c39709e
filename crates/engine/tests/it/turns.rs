//! Turns: visibility, history access, threads, pages and summaries.

use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{
    Audience, Caller, HistoryAccess, Millis, PermissionsPatch, ThreadId, Turn, TurnId, TurnVisibility,
};
use posthaste_engine::store::short;
use posthaste_engine::verbs::conversations::{Create, Invite, Invitee, Join, Leave};
use posthaste_engine::verbs::turns::{KeepSummary, OpenThread, Say};
use posthaste_engine::views::{Part, SearchQuery, TurnQuery};
use posthaste_engine::{Filter, Refusal, Start, Step};

use crate::harness::{Realm, conversation, conversation_id, id, invitee, member, observer, say, say_to};

fn text(turn: &Turn) -> String {
    turn.content.value()["text"].as_str().unwrap_or_default().to_owned()
}

fn all() -> TurnQuery {
    TurnQuery { limit: 100, ..TurnQuery::default() }
}

fn read(realm: &Realm, caller: &Caller) -> Vec<String> {
    realm.see(|view| view.turns(caller, &conversation_id("c"), &all())).items.iter().map(text).collect()
}

fn history(access: HistoryAccess) -> PermissionsPatch {
    PermissionsPatch { history: Some(access), ..PermissionsPatch::default() }
}

/// A conversation open to observers in which anna, its creator, adds one turn of each visibility.
async fn with_every_visibility(realm: &Realm) -> Caller {
    let [anna, ..] = realm.agents(["anna", "bert", "carl", "dora", "eye"]).await;
    let inner = PermissionsPatch { can_see_internal: Some(true), ..PermissionsPatch::default() };
    let participants = vec![
        invitee("bert"),
        Invitee { role: Some("worker".into()), ..invitee("carl") },
        Invitee { permissions: inner, ..invitee("dora") },
    ];
    realm.ask(&anna, Create { participants, audience: Audience::Observers, ..conversation("c", &[]) }).await;
    for (line, visibility) in [
        ("public", TurnVisibility::All),
        ("bertonly", TurnVisibility::Agents(vec![id("bert")])),
        ("workers", TurnVisibility::Roles(vec!["worker".into()])),
        ("internal", TurnVisibility::Internal),
        ("private", TurnVisibility::Private),
    ] {
        realm.ask(&anna, say_to("c", line, visibility)).await;
    }
    anna
}

#[tokio::test]
async fn turn_visibility_is_the_same_on_every_path() {
    let realm = Realm::new();
    let mut feeds = Vec::new();
    let anna_feed =
        realm.engine.follow(&member("anna"), Filter::everything(), Start::Now, 64).await.expect("a feed");
    feeds.push((member("anna"), anna_feed));
    for name in ["bert", "carl", "dora"] {
        let caller = member(name);
        feeds.push((
            caller.clone(),
            realm.engine.follow(&caller, Filter::everything(), Start::Now, 64).await.expect("a feed"),
        ));
    }
    let eye = observer("eye");
    feeds.push((
        eye.clone(),
        realm.engine.follow(&eye, Filter::everything(), Start::Now, 64).await.expect("a feed"),
    ));
    with_every_visibility(&realm).await;
    for (caller, mut feed) in feeds {
        let expected: &[&str] = match caller.agent.as_str() {
            "anna" => &["public", "bertonly", "workers", "internal", "private"],
            "bert" => &["public", "bertonly"],
            "carl" => &["public", "workers"],
            "dora" => &["public", "internal"],
            _ => &["public"],
        };
        let who = caller.agent.as_str();
        assert_eq!(read(&realm, &caller), expected, "{who}: turns");
        assert_eq!(
            realm.see(|view| view.count_turns(&caller, &conversation_id("c"), &all())),
            expected.len() as i64,
            "{who}: count"
        );
        let live = realm.drain(&mut feed, &caller).await;
        let live: Vec<String> = live.iter().filter_map(|event| event.turn.as_deref()).map(text).collect();
        assert_eq!(live, expected, "{who}: live");
        let replay = realm.see(|view| view.events(&caller, 0, &Filter::Kinds(vec!["turn.added".into()]), 99));
        let replayed: Vec<String> =
            replay.events.iter().filter_map(|event| event.turn.as_deref()).map(text).collect();
        assert_eq!(replayed, expected, "{who}: replay");
        let gist = realm.see(|view| view.summary(&caller, &conversation_id("c"), &Part::default(), false));
        assert_eq!(gist.summary.lines, expected.len(), "{who}: summary");
        for line in ["public", "bertonly", "workers", "internal", "private"] {
            let query = SearchQuery { text: line.into(), limit: 9, ..SearchQuery::default() };
            let found = realm.see(|view| view.search(&caller, &query)).hits.len();
            assert_eq!(found == 1, expected.contains(&line), "{who}: search for {line}");
        }
    }
}

#[tokio::test]
async fn live_visibility_works_with_many_participants() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    let many: Vec<String> = (0..80).map(|n| format!("p{n:02}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    realm.conversation(&anna, "c", &many).await;
    let (inside, outside) = (member("p79"), member("q"));
    let mut feeds = Vec::new();
    for caller in [&inside, &outside] {
        feeds.push(realm.engine.follow(caller, Filter::everything(), Start::Now, 64).await.expect("a feed"));
    }
    realm.say(&anna, "c", "open").await;
    realm.ask(&anna, say_to("c", "closed", TurnVisibility::Agents(vec![id("p01")]))).await;
    let seen = realm.drain(&mut feeds[0], &inside).await;
    assert_eq!(seen.iter().filter_map(|event| event.turn.as_deref()).map(text).collect::<Vec<_>>(), ["open"]);
    assert!(realm.drain(&mut feeds[1], &outside).await.is_empty());
}

#[tokio::test]
async fn history_access_limits_how_far_back_a_participant_reads() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "full", "late", "none"]).await;
    realm.conversation(&anna, "c", &[]).await;
    let root = realm.say(&anna, "c", "before").await.id;
    let early = realm
        .ask(&anna, OpenThread { conversation: conversation_id("c"), root, parent: None, subject: None })
        .await;
    for (name, access) in
        [("full", HistoryAccess::Full), ("late", HistoryAccess::FromJoin), ("none", HistoryAccess::None)]
    {
        let invitee = Invitee { permissions: history(access), ..invitee(name) };
        realm.ask(&anna, Invite { conversation: conversation_id("c"), invitee }).await;
    }
    let after = realm.say(&anna, "c", "after").await;
    assert_eq!(read(&realm, &member("full")), ["before", "after"]);
    let late = member("late");
    assert_eq!(read(&realm, &late), ["after"]);
    assert_eq!(realm.see(|view| view.count_turns(&late, &conversation_id("c"), &all())), 1);
    assert_eq!(realm.hidden(|view| view.turn(&late, &conversation_id("c"), root)), Refusal::NoSuchTurn);
    assert!(realm.see(|view| view.threads(&late, &conversation_id("c"), None, 0, 9)).items.is_empty());
    assert_eq!(
        realm.hidden(|view| view.thread(&late, &conversation_id("c"), early.id)),
        Refusal::NoSuchThread
    );
    let none = member("none");
    let may_not = Refusal::ParticipantMayNot { conversation: conversation_id("c"), need: "historyAccess" };
    assert_eq!(realm.hidden(|view| view.turns(&none, &conversation_id("c"), &all())), may_not);
    assert_eq!(
        realm.hidden(|view| view.summary(&none, &conversation_id("c"), &Part::default(), false)),
        may_not
    );
    let query = SearchQuery { text: "after".into(), limit: 9, ..SearchQuery::default() };
    assert!(realm.see(|view| view.search(&none, &query)).hits.is_empty());
    // Turns added while the agent takes part can be followed and answered.
    let replay = realm.see(|view| view.events(&none, 0, &Filter::Kinds(vec!["turn.added".into()]), 9));
    assert_eq!(replay.events.len(), 1);
    realm.ask(&none, Say { in_reply_to: Some(after.id), ..say("c", "heard") }).await;
    let blind = Say { in_reply_to: Some(root), ..say("c", "x") };
    assert_eq!(realm.refused(&none, blind).await, Refusal::NoSuchTurn);
}

#[tokio::test]
async fn hidden_turn_cannot_be_used_as_a_cursor() {
    let realm = Realm::new();
    let anna = with_every_visibility(&realm).await;
    let late = Invitee { permissions: history(HistoryAccess::FromJoin), ..invitee("eye") };
    realm.ask(&anna, Invite { conversation: conversation_id("c"), invitee: late }).await;
    let turns = realm.see(|view| view.turns(&anna, &conversation_id("c"), &all())).items;
    for (who, may) in [
        (anna, &["public", "bertonly", "workers", "internal", "private"][..]),
        (member("carl"), &["public", "workers"]),
        (observer("out"), &["public"]),
        (member("eye"), &[]),
    ] {
        for turn in &turns {
            let (line, cursor) = (text(turn), Some(turn.id));
            for query in [TurnQuery { after: cursor, ..all() }, TurnQuery { before: cursor, ..all() }] {
                if may.contains(&line.as_str()) {
                    realm.see(|view| view.turns(&who, &conversation_id("c"), &query));
                    continue;
                }
                let why = realm.hidden(|view| view.turns(&who, &conversation_id("c"), &query));
                assert_eq!(why, Refusal::NoSuchTurn, "{}: {line}", who.agent);
                let why = realm.hidden(|view| view.count_turns(&who, &conversation_id("c"), &query));
                assert_eq!(why, Refusal::NoSuchTurn, "{}: {line}, counted", who.agent);
            }
        }
    }
}

#[tokio::test]
async fn missing_thread_is_reported_before_a_missing_turn() {
    let realm = Realm::new();
    let anna = with_every_visibility(&realm).await;
    let (thread, turn) = (Some(ThreadId(uuid::Uuid::nil())), TurnId(uuid::Uuid::nil()));
    let open = OpenThread { conversation: conversation_id("c"), root: turn, parent: thread, subject: None };
    assert_eq!(realm.refused(&anna, open.clone()).await, Refusal::NoSuchThread);
    assert_eq!(realm.refused(&anna, OpenThread { parent: None, ..open }).await, Refusal::NoSuchTurn);
    let both = Say { thread, in_reply_to: Some(turn), ..say("c", "x") };
    assert_eq!(realm.refused(&anna, both).await, Refusal::NoSuchThread);
    let query = TurnQuery { thread, after: Some(turn), ..all() };
    assert_eq!(realm.hidden(|view| view.turns(&anna, &conversation_id("c"), &query)), Refusal::NoSuchThread);
    let part = Part { thread, from: Some(turn), to: None };
    assert_eq!(
        realm.hidden(|view| view.summary(&anna, &conversation_id("c"), &part, false)),
        Refusal::NoSuchThread
    );
}

#[tokio::test]
async fn late_participant_sees_its_own_join_event_and_none_before() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "early"]).await;
    realm.conversation(&anna, "c", &["early"]).await;
    let joined = Filter::Kinds(vec!["participant.joined".into()]);
    for (name, access) in [("late", HistoryAccess::FromJoin), ("none", HistoryAccess::None)] {
        let who = realm.agent(name).await;
        let mut feed = realm.engine.follow(&who, joined.clone(), Start::Now, 9).await.expect("a feed");
        let invitee = Invitee { permissions: history(access), ..invitee(name) };
        let part = realm.ask(&anna, Invite { conversation: conversation_id("c"), invitee }).await;
        let Ok(Step::Event { event, .. }) = feed.next().await else { panic!("the event comes live") };
        let replay = realm.see(|view| view.events(&who, 0, &joined, 9));
        let seqs: Vec<_> = replay.events.iter().map(|event| event.seq).collect();
        assert_eq!((seqs, event.seq), (vec![part.joined], part.joined), "{name}");
    }
}

#[tokio::test]
async fn participant_that_left_reads_like_an_outsider() {
    let realm = Realm::new();
    with_every_visibility(&realm).await;
    realm.ask(&member("bert"), Leave { conversation: conversation_id("c"), reason: None }).await;
    assert_eq!(read(&realm, &observer("bert")), ["public"]);
    let refused = realm.hidden(|view| view.turns(&member("bert"), &conversation_id("c"), &all()));
    assert_eq!(refused, Refusal::NoSuchConversation { conversation: conversation_id("c") });
}

#[tokio::test]
async fn stored_summary_is_shown_only_to_readers_of_the_same_turns() {
    let realm = Realm::new();
    with_every_visibility(&realm).await;
    let carl = observer("carl");
    let gist = realm.see(|view| view.summary(&carl, &conversation_id("c"), &Part::default(), false));
    assert_eq!((gist.kept_at, gist.for_all, gist.summary.lines), (None, false, 2));
    let keep = KeepSummary {
        conversation: conversation_id("c"),
        part: gist.part,
        summary: gist.summary,
        up_to: gist.up_to,
        announce: false,
    };
    realm.ask(&carl, keep).await;
    let kept = realm.see(|view| view.summary(&carl, &conversation_id("c"), &Part::default(), false));
    assert!(kept.kept_at.is_some());
    assert!(
        realm
            .see(|view| view.summary(&carl, &conversation_id("c"), &Part::default(), true))
            .kept_at
            .is_none()
    );
    realm.ask(&carl, Leave { conversation: conversation_id("c"), reason: None }).await;
    let outside = realm.see(|view| view.summary(&carl, &conversation_id("c"), &Part::default(), false));
    assert_eq!((outside.kept_at, outside.summary.lines), (None, 1), "now it reads as an outsider");
    realm.ask(&carl, Join { conversation: conversation_id("c"), role: Some("assistant".into()) }).await;
    let back = realm.see(|view| view.summary(&carl, &conversation_id("c"), &Part::default(), false));
    assert_eq!((back.kept_at, back.summary.lines), (None, 1), "and as an assistant reads less than a worker");
}

#[tokio::test]
async fn summary_of_restricted_turns_is_not_for_all() {
    let realm = Realm::new();
    let [anna, ..] = realm.agents(["anna", "late"]).await;
    realm.conversation(&anna, "c", &[]).await;
    realm.say(&anna, "c", "We decided to ship.").await;
    let gist = || realm.see(|view| view.summary(&anna, &conversation_id("c"), &Part::default(), false));
    assert!(gist().for_all);
    let late = Invitee { permissions: history(HistoryAccess::FromJoin), ..invitee("late") };
    realm.ask(&anna, Invite { conversation: conversation_id("c"), invitee: late }).await;
    assert!(!gist().for_all);
}

#[tokio::test]
async fn turns_page_both_ways_through_every_filter() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.conversation(&anna, "c", &["bert"]).await;
    let root = realm.say(&anna, "c", "00").await.id;
    let thread = realm
        .ask(&anna, OpenThread { conversation: conversation_id("c"), root, parent: None, subject: None })
        .await
        .id;
    for n in 1..40 {
        let turn = Say {
            content_type: ["text", "data", "x-note"][n % 3].into(),
            thread: (n % 4 == 0).then_some(thread),
            visibility: (n % 5 == 0).then_some(TurnVisibility::Private),
            ..say("c", &format!("{n:02}"))
        };
        realm.ask(if n % 2 == 0 { &anna } else { &bert }, turn).await;
    }
    // Every fifth turn is private; bert reads only its own of these.
    let seen = |n: usize| n == 0 || !n.is_multiple_of(5) || !n.is_multiple_of(2);
    type Fits = fn(usize) -> bool;
    let cases: Vec<(TurnQuery, Fits)> = vec![
        (all(), |_| true),
        (TurnQuery { thread: Some(thread), ..all() }, |n| n % 4 == 0 && n > 0),
        (TurnQuery { author: Some(id("anna")), ..all() }, |n| n % 2 == 0),
        (TurnQuery { content_types: vec!["data".into()], ..all() }, |n| n % 3 == 1),
        (TurnQuery { content_types: vec!["x-note".into(), "data".into(), "data".into()], ..all() }, |n| {
            n % 3 != 0
        }),
        (TurnQuery { author: Some(id("anna")), content_types: vec!["data".into()], ..all() }, |n| n % 6 == 4),
        (TurnQuery { thread: Some(thread), author: Some(id("bert")), ..all() }, |_| false),
        (TurnQuery { thread: Some(thread), author: Some(id("anna")), ..all() }, |n| n % 4 == 0 && n > 0),
        (TurnQuery { thread: Some(thread), content_types: vec!["data".into()], ..all() }, |n| n % 12 == 4),
        (
            TurnQuery {
                thread: Some(thread),
                author: Some(id("anna")),
                content_types: vec!["x-note".into(), "data".into()],
                ..all()
            },
            |n| n % 4 == 0 && n % 3 != 0,
        ),
    ];
    for (query, fits) in cases {
        let expected: Vec<String> =
            (0..40).filter(|n| seen(*n) && fits(*n)).map(|n| format!("{n:02}")).collect();
        let count = realm.see(|view| view.count_turns(&bert, &conversation_id("c"), &query));
        assert_eq!(count, expected.len() as i64, "{query:?}");
        for newest_first in [false, true] {
            let mut query = TurnQuery { newest_first, limit: 3, ..query.clone() };
            let mut found = Vec::new();
            loop {
                let page = realm.see(|view| view.turns(&bert, &conversation_id("c"), &query));
                found.extend(page.items.iter().map(text));
                let Some(next) = page.next else { break };
                *(if newest_first { &mut query.before } else { &mut query.after }) = Some(next);
            }
            if newest_first {
                found.reverse();
            }
            assert_eq!(found, expected, "{query:?}");
        }
    }
}

#[tokio::test]
async fn authors_with_the_same_name_hash_are_distinguished() {
    let names = ["costarring", "liquid"];
    assert_eq!(short(names[0]), short(names[1]), "otherwise this test proves nothing");
    let realm = Realm::new();
    let callers = realm.agents(names).await;
    realm.conversation(&callers[0], "c", &[names[1]]).await;
    for (n, text) in ["one", "two", "three", "four"].into_iter().enumerate() {
        realm.say(&callers[n % 2], "c", text).await;
    }
    for (name, expected) in names.into_iter().zip([["one", "three"], ["two", "four"]]) {
        for content_types in [vec![], vec!["text".into()]] {
            let query = TurnQuery { author: Some(id(name)), content_types, ..all() };
            let found = realm.see(|view| view.turns(&callers[0], &conversation_id("c"), &query));
            assert_eq!(found.items.iter().map(text).collect::<Vec<_>>(), expected);
            assert_eq!(realm.see(|view| view.count_turns(&callers[0], &conversation_id("c"), &query)), 2);
        }
    }
}

#[tokio::test]
async fn turns_can_be_limited_by_time_on_both_sides() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    realm.conversation(&anna, "c", &[]).await;
    let first = realm.say(&anna, "c", "first").await;
    realm.passed(first.at).await;
    realm.say(&anna, "c", "second").await;
    let between = |after: Option<Millis>, before: Option<Millis>| -> Vec<String> {
        let query = TurnQuery { after_time: after, before_time: before, ..all() };
        realm.see(|view| view.turns(&anna, &conversation_id("c"), &query)).items.iter().map(text).collect()
    };
    assert_eq!(between(Some(first.at), None), ["second"]);
    assert_eq!(between(None, Some(first.at + 1)), ["first"]);
    assert!(between(None, Some(first.at)).is_empty());
    assert!(between(None, Some(Millis::MIN)).is_empty());
    assert_eq!(between(Some(Millis::MIN), Some(Millis::MAX)).len(), 2);
}

#[tokio::test]
async fn content_type_must_be_known_or_an_extension() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    realm.conversation(&anna, "c", &[]).await;
    for good in ["text", "data", "event", "reference", "x-a"] {
        realm.ask(&anna, Say { content_type: good.into(), ..say("c", "x") }).await;
    }
    for bad in ["", "x-", "Text", "text/plain", "image"] {
        let refused = realm.refused(&anna, Say { content_type: bad.into(), ..say("c", "x") }).await;
        assert_eq!(refused, Refusal::BadContentType { content_type: bad.into() });
    }
}

#[tokio::test]
async fn turn_can_refer_only_to_visible_turns_and_participants() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.conversation(&anna, "c", &["bert"]).await;
    realm.conversation(&anna, "d", &["bert"]).await;
    let elsewhere = realm.say(&anna, "d", "x").await.id;
    let secret = realm.ask(&anna, say_to("c", "x", TurnVisibility::Private)).await.id;
    for turn in [elsewhere, secret] {
        let reply = Say { in_reply_to: Some(turn), ..say("c", "re") };
        assert_eq!(realm.refused(&bert, reply).await, Refusal::NoSuchTurn);
    }
    let lost = Say { thread: Some(ThreadId(Default::default())), ..say("c", "x") };
    assert_eq!(realm.refused(&bert, lost).await, Refusal::NoSuchThread);
    let to_carl = say_to("c", "x", TurnVisibility::Agents(vec![id("carl")]));
    assert_eq!(realm.refused(&bert, to_carl).await, Refusal::NoSuchParticipant { agent: id("carl") });
}

#[tokio::test]
async fn thread_depth_is_limited_and_thread_turns_are_counted() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.rules(Rules { thread_depth: 2, ..Rules::default() }).await;
    realm.conversation(&anna, "c", &["bert"]).await;
    let root = realm.say(&anna, "c", "root").await.id;
    let open = |parent| OpenThread { conversation: conversation_id("c"), root, parent, subject: None };
    let first = realm.ask(&anna, open(None)).await;
    let second = realm.ask(&bert, open(Some(first.id))).await;
    assert_eq!((first.depth, second.depth), (1, 2));
    assert_eq!(realm.refused(&anna, open(Some(second.id))).await, Refusal::ThreadTooDeep { limit: 2 });
    let lost = ThreadId(Default::default());
    assert_eq!(realm.refused(&anna, open(Some(lost))).await, Refusal::NoSuchThread);
    for who in [&anna, &bert, &anna] {
        realm.ask(who, Say { thread: Some(first.id), ..say("c", "in") }).await;
    }
    let thread = realm.see(|view| view.thread(&anna, &conversation_id("c"), first.id));
    assert_eq!((thread.turn_count, thread.participant_count), (3, 2), "the root is not counted");
    let below = realm.see(|view| view.threads(&anna, &conversation_id("c"), Some(first.id), 0, 9));
    assert_eq!(below.items.iter().map(|t| t.id).collect::<Vec<_>>(), [second.id]);
    let page = realm.see(|view| view.threads(&anna, &conversation_id("c"), None, 0, 1));
    assert_eq!(page.next, Some(first.seq));
    let rest = realm.see(|view| view.threads(&anna, &conversation_id("c"), None, first.seq, 1));
    assert_eq!((rest.items.len(), rest.next), (1, None));
}
