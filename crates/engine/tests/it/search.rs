//! Search: terms, phrases and operators over what the caller may see, and refusals of malformed queries.

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::AgentId;
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::views::{Found, SearchOrder, SearchQuery};
use posthaste_engine::{EngineError, Refusal};

use crate::harness::{Realm, conversation_id, id, member, message};

fn query(text: &str) -> SearchQuery {
    SearchQuery { text: text.into(), order: SearchOrder::Newest, limit: 100, ..SearchQuery::default() }
}

fn find(realm: &Realm, who: &str, query: &SearchQuery) -> Found {
    realm.see(|view| view.search(&member(who), query))
}

fn bodies(found: &Found) -> Vec<&str> {
    found.hits.iter().filter_map(|hit| hit.message.as_ref()).map(|message| message.body.as_str()).collect()
}

async fn library() -> Realm {
    let realm = Realm::new();
    let [anna, bert, carl] = realm.agents(["anna", "bert", "carl"]).await;
    for text in
        ["the quick brown fox", "a slow red fox", "release-candidate 1.2 is out", "Zoë schrieb dem Büro"]
    {
        realm.send(&anna, "bert", text).await;
    }
    realm.send(&bert, "anna", "no foxes here").await;
    realm.send(&carl, "carl", "fox in carl's own notes").await;
    realm
}

#[tokio::test]
async fn terms_phrases_prefixes_and_operators_work() {
    let realm = library().await;
    let table: [(&str, &[&str]); 10] = [
        ("fox", &["a slow red fox", "the quick brown fox"]),
        ("FOX quick", &["the quick brown fox"]),
        ("\"brown fox\"", &["the quick brown fox"]),
        ("fox NOT quick", &["a slow red fox"]),
        ("quick OR slow", &["a slow red fox", "the quick brown fox"]),
        ("(quick OR slow) AND brown", &["the quick brown fox"]),
        ("fox*", &["no foxes here", "a slow red fox", "the quick brown fox"]),
        ("release-candidate", &["release-candidate 1.2 is out"]),
        ("1.2", &["release-candidate 1.2 is out"]),
        ("buro", &["Zoë schrieb dem Büro"]),
    ];
    for (text, expected) in table {
        assert_eq!(bodies(&find(&realm, "bert", &query(text))), expected, "{text}");
    }
}

// F50
#[tokio::test]
async fn terms_can_be_excluded_or_limited_to_sender_or_subject() {
    let realm = library().await;
    let build = SendMessage { subject: Some("build fox".into()), ..message("bert", "all green") };
    realm.ask(&member("anna"), build).await;
    let table: [(&str, &[&str]); 5] = [
        ("fox -quick", &["all green", "a slow red fox"]),
        ("fox -quick -slow -build", &[]),
        ("fox -\"slow red\"", &["all green", "the quick brown fox"]),
        ("subject:fox", &["all green"]),
        ("fo* from:bert", &["no foxes here"]),
    ];
    for (text, expected) in table {
        assert_eq!(bodies(&find(&realm, "bert", &query(text))), expected, "{text}");
    }
    let why = realm.hidden(|view| view.search(&member("bert"), &query("AND")));
    assert!(!why.to_string().contains("fts5"), "{why}");
}

#[tokio::test]
async fn search_finds_only_visible_items() {
    let realm = library().await;
    assert_eq!(bodies(&find(&realm, "carl", &query("fox"))), ["fox in carl's own notes"]);
    realm.agent("dora").await;
    assert_eq!(find(&realm, "dora", &query("fox")), Found::default());
}

#[tokio::test]
async fn snippet_highlights_the_match() {
    let realm = library().await;
    assert_eq!(find(&realm, "bert", &query("brown")).hits[0].snippet, "the quick [brown] fox");
}

#[tokio::test]
async fn malformed_query_is_refused_without_a_fault() {
    let realm = library().await;
    let refused = ["", "   ", "\"", "AND", "NOT", "fox AND", "(fox", "\"a\" OR", "nope:(fox)", "NEAR("];
    for text in refused {
        let why = realm.hidden(|view| view.search(&member("bert"), &query(text)));
        assert!(matches!(why, Refusal::BadQuery { .. }), "{text:?}: {why:?}");
    }
    let long = "x".repeat(1_025);
    assert!(matches!(
        realm.hidden(|view| view.search(&member("bert"), &query(&long))),
        Refusal::BadQuery { .. }
    ));
    let odd = [
        "*",
        "**",
        "-",
        "--x",
        "a:b",
        "subject:fox",
        "{a}",
        "a^b",
        "'; DROP TABLE found; --",
        "fox'",
        "a+b",
        "\0",
        "x\0y",
        "\"\"",
        "()",
        "(\"\")",
        "😀",
        "col1 : x",
        "(^ \"a\")",
        "* *",
        "fox**",
        "NEAR(fox, 2)",
        "((((((((((((((((((((fox))))))))))))))))))))",
    ];
    for text in odd {
        match realm.engine.read_blocking(|view| view.search(&member("bert"), &query(text))) {
            Ok(_) | Err(EngineError::Refused(Refusal::BadQuery { .. })) => {}
            Err(error) => panic!("{text:?}: {error}"),
        }
    }
}

#[tokio::test]
async fn search_can_be_limited_to_conversation_and_sender() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let within = ConversationRef {
        conversation: conversation_id("c"),
        thread: None,
        reply_to: None,
        visibility: None,
        join: JoinMode::Open { kind: "thread".into() },
    };
    realm.ask(&anna, SendMessage { within: Some(within), ..message("bert", "word inside") }).await;
    realm.say(&bert, "c", "word said").await;
    realm.send(&bert, "anna", "word outside").await;
    let inside = SearchQuery { conversation: Some(conversation_id("c")), ..query("word") };
    let found = find(&realm, "anna", &inside);
    assert_eq!((found.hits.len(), found.hits[0].turn.is_some()), (2, true));
    let from = |who: AgentId| SearchQuery { from: Some(who), ..query("word") };
    assert_eq!(bodies(&find(&realm, "anna", &from(id("bert")))), ["word outside"]);
    assert_eq!(bodies(&find(&realm, "anna", &from(id("anna")))), ["word inside"]);
}

#[tokio::test]
async fn best_order_prefers_subjects_and_newest_order_is_by_time() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    realm.ask(&anna, SendMessage { subject: Some("budget".into()), ..message("bert", "first") }).await;
    realm.send(&anna, "bert", "second, which is about the budget too, at some length").await;
    let best = SearchQuery { order: SearchOrder::Best, ..query("budget") };
    assert_eq!(bodies(&find(&realm, "bert", &best))[0], "first");
    assert!(bodies(&find(&realm, "bert", &query("budget")))[0].starts_with("second"));
}

#[tokio::test]
async fn search_pages_backwards_and_reports_a_partial_result() {
    let realm = Realm::with(Limits { search_rows: 10, ..Limits::default() });
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    for n in 0..9 {
        realm.send(&anna, "bert", &format!("word {n}")).await;
    }
    let mut page = SearchQuery { limit: 4, ..query("word") };
    let mut seen = Vec::new();
    loop {
        let found = find(&realm, "bert", &page);
        seen.extend(found.hits.iter().map(|hit| hit.seq));
        page.before = found.hits.last().map(|hit| hit.seq);
        if !found.partial {
            break;
        }
    }
    assert_eq!(seen.len(), 9);
    assert!(seen.is_sorted_by(|a, b| a > b));
    for n in 9..20 {
        realm.send(&anna, "bert", &format!("word {n}")).await;
    }
    assert!(find(&realm, "bert", &query("word")).partial, "more matches than one search examines");
}

/// The index is updated in batches of a few hundred messages; results must not depend on which ones are indexed.
#[tokio::test]
async fn messages_are_found_before_during_and_after_indexing() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    realm.conversation(&anna, "plans", &["bert"]).await;
    for round in 0..1_500_u32 {
        match round % 3 {
            0 => drop(realm.say(&anna, "plans", &format!("turn number{round} heron")).await),
            _ => drop(realm.send(&anna, "bert", &format!("message number{round} heron")).await),
        }
        // Just written, around the first index update, and at the end.
        if round < 3 || (250..260).contains(&round) || round == 1_499 {
            let found = find(&realm, "bert", &query(&format!("number{round}")));
            assert_eq!(found.hits.len(), 1, "{round} is found at once");
            assert!(found.hits[0].snippet.contains(&format!("[number{round}]")), "{}", found.hits[0].snippet);
        }
    }
    let everything = |realm: &Realm, order| {
        let mut wanted = SearchQuery { order, limit: 1_000, ..query("heron") };
        let mut seqs = Vec::new();
        loop {
            let found = find(realm, "bert", &wanted);
            seqs.extend(found.hits.iter().map(|hit| hit.seq));
            match seqs.last() {
                Some(last) if found.partial => wanted.before = Some(*last),
                _ => return seqs,
            }
        }
    };
    let before = everything(&realm, SearchOrder::Newest);
    assert_eq!(before.len(), 1_500, "each once, in index and tail");
    assert!(before.is_sorted_by(|a, b| a > b), "newest first across index and tail");
    let held = |realm: &Realm| {
        let db = posthaste_engine::store::open_reader(realm.engine.path()).expect("db");
        let count = "SELECT count(*) FROM fulltext WHERE fulltext MATCH 'heron'";
        db.query_row(count, [], |row| row.get::<_, i64>(0)).expect("a count")
    };
    assert!(
        (1_000..1_500).contains(&held(&realm)),
        "an index update was made and a tail is left: {}",
        held(&realm)
    );

    let realm = realm.reopened();
    assert_eq!(everything(&realm, SearchOrder::Newest), before, "a restart changes nothing");
    realm.ask(&crate::harness::admin(), posthaste_engine::verbs::office::Sweep {}).await;
    assert_eq!(held(&realm), 1_500, "a sweep brings the index up to date");
    assert_eq!(everything(&realm, SearchOrder::Newest), before, "and changes no result");
    let db = posthaste_engine::store::open_writer(realm.engine.path()).expect("db");
    db.execute("INSERT INTO fulltext(fulltext, rank) VALUES('integrity-check', 1)", [])
        .expect("a sound index");
}

/// A message that repeats one word must not slow down a search.
#[tokio::test]
async fn word_repeated_100000_times_is_found_quickly() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    realm.send(&anna, "bert", &"lapwing ".repeat(100_000)).await;
    let found = find(&realm, "bert", &query("lapwing"));
    assert!(found.hits[0].snippet.starts_with("[lapwing] [lapwing]"), "{}", found.hits[0].snippet);
}

/// A few large messages must not leave a large unindexed tail.
#[tokio::test]
async fn large_messages_are_indexed_sooner() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    let large = format!("lapwing {}", "reed ".repeat(150_000));
    realm.send(&anna, "bert", &large).await;
    realm.send(&anna, "bert", &large).await;
    let db = posthaste_engine::store::open_reader(realm.engine.path()).expect("db");
    let count = "SELECT count(*) FROM fulltext WHERE fulltext MATCH 'lapwing'";
    assert_eq!(db.query_row(count, [], |row| row.get::<_, i64>(0)).expect("a count"), 2);
    assert_eq!(find(&realm, "bert", &query("lapwing")).hits.len(), 2);
}

/// Each reader caches the unindexed tail. The cache must be dropped after an index update and grow with new messages, on
/// every reader.
#[tokio::test]
async fn readers_with_a_cached_tail_find_newer_messages() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    for round in 0..600_u32 {
        realm.send(&anna, "bert", &format!("plover number{round}")).await;
        if round % 7 != 0 {
            continue;
        }
        // Two at once, so that more than one connection takes part; the inner one has the same or a newer snapshot.
        let wanted = query(&format!("number{round}"));
        realm.see(|view| {
            let inner = find(&realm, "bert", &wanted);
            let outer = view.search(&member("bert"), &wanted)?;
            assert_eq!((inner.hits.len(), outer.hits.len()), (1, 1), "{round}");
            Ok(())
        });
        let all = find(&realm, "bert", &SearchQuery { limit: 1_000, ..query("plover") });
        assert_eq!(all.hits.len(), round as usize + 1, "each once");
    }
    // A malformed query leaves no partly built cache.
    realm.send(&anna, "bert", "plover last").await;
    realm.hidden(|view| view.search(&member("bert"), &query("\"")));
    assert_eq!(find(&realm, "bert", &query("last")).hits.len(), 1);
}

/// Search decides visibility from a few columns; the result must equal the rules for single messages and turns.
#[tokio::test]
async fn search_result_matches_what_can_be_read_individually() {
    use posthaste_engine::nouns::{Audience, Caller};
    let realm = Realm::new();
    let names = ["anna", "bert", "carl", "dora"];
    let agents = realm.agents(names).await;
    let mut items = Vec::new();
    for round in 0..320_usize {
        let (from, to) = (&agents[round % 4], names[(round / 4) % 4]);
        let mut send = message(to, &format!("dunlin {round}"));
        if round % 5 == 0 {
            send.audience = Audience::Observers;
        }
        // Recorded messages are turns as well, for participants; bert and carl never take part.
        let conversation = conversation_id("notes");
        if round % 3 == 0 && [round % 4, (round / 4) % 4].iter().all(|agent| [0, 3].contains(agent)) {
            let join = JoinMode::NameOnly { kind: "thread".into() };
            let conversation = conversation.clone();
            send.within =
                Some(ConversationRef { conversation, thread: None, reply_to: None, visibility: None, join });
        }
        let sent = realm.ask(from, send).await;
        items.push((sent.message.seq, sent.turn.map(|turn| (conversation, turn))));
    }
    // A reused name has no earlier messages.
    let gone = posthaste_engine::verbs::agents::Unregister { agent: id("dora"), reason: None, cause: None };
    realm.ask(&agents[3], gone).await;
    realm.agent("dora").await;
    items.push((realm.send(&agents[0], "dora", "dunlin for the new one").await.message.seq, None));
    assert!(items.iter().filter(|(_, turn)| turn.is_some()).count() > 10);
    let admin = crate::harness::admin();
    let callers = names.map(|name| Caller::member(id(name), "test"));
    let observers = names.map(|name| Caller::observer(id(name), "test"));
    for caller in callers.iter().chain(&observers).chain([&admin]) {
        let readable = |item: &(i64, Option<_>)| {
            realm.engine.read_blocking(|view| view.message_at(caller, item.0)).is_ok()
                || item.1.as_ref().is_some_and(|(conversation, turn)| {
                    realm.engine.read_blocking(|view| view.turn(caller, conversation, *turn)).is_ok()
                })
        };
        let individually: Vec<i64> =
            items.iter().rev().filter(|item| readable(item)).map(|item| item.0).collect();
        for order in [SearchOrder::Newest, SearchOrder::Best] {
            let wanted = SearchQuery { limit: 1_000, order, ..query("dunlin") };
            let found = realm.see(|view| view.search(caller, &wanted));
            let mut found: Vec<i64> = found.hits.iter().map(|hit| hit.seq).collect();
            found.sort_by_key(|seq| std::cmp::Reverse(*seq));
            assert_eq!(found, individually, "{caller:?}");
        }
    }
}
