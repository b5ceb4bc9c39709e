//! Search: words, phrases and operators over what the caller may see, and refusals for what cannot be read.

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::AgentId;
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::views::{Found, SearchOrder, SearchQuery};
use posthaste_engine::{EngineError, Refusal};

use crate::harness::{Realm, id, letter, member, talk};

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
async fn words_phrases_prefixes_and_operators_are_understood() {
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
async fn words_can_be_excluded_and_kept_to_a_sender_or_subject() {
    let realm = library().await;
    let build = SendMessage { subject: Some("build fox".into()), ..letter("bert", "all green") };
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
async fn nobody_finds_what_is_not_theirs() {
    let realm = library().await;
    assert_eq!(bodies(&find(&realm, "carl", &query("fox"))), ["fox in carl's own notes"]);
    realm.agent("dora").await;
    assert_eq!(find(&realm, "dora", &query("fox")), Found::default());
}

#[tokio::test]
async fn a_snippet_marks_the_match() {
    let realm = library().await;
    assert_eq!(find(&realm, "bert", &query("brown")).hits[0].snippet, "the quick [brown] fox");
}

#[tokio::test]
async fn a_query_that_cannot_be_read_is_refused_and_breaks_nothing() {
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
async fn conversation_and_sender_narrow_a_search() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let place = ConversationRef {
        conversation: talk("c"),
        thread: None,
        reply_to: None,
        visibility: None,
        join: JoinMode::Open { kind: "thread".into() },
    };
    realm.ask(&anna, SendMessage { within: Some(place), ..letter("bert", "word inside") }).await;
    realm.say(&bert, "c", "word said").await;
    realm.send(&bert, "anna", "word outside").await;
    let inside = SearchQuery { conversation: Some(talk("c")), ..query("word") };
    let found = find(&realm, "anna", &inside);
    assert_eq!((found.hits.len(), found.hits[0].turn.is_some()), (2, true));
    let from = |who: AgentId| SearchQuery { from: Some(who), ..query("word") };
    assert_eq!(bodies(&find(&realm, "anna", &from(id("bert")))), ["word outside"]);
    assert_eq!(bodies(&find(&realm, "anna", &from(id("anna")))), ["word inside"]);
}

#[tokio::test]
async fn subjects_weigh_more_and_the_newest_comes_first_when_asked() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    realm.ask(&anna, SendMessage { subject: Some("budget".into()), ..letter("bert", "first") }).await;
    realm.send(&anna, "bert", "second, which is about the budget too, at some length").await;
    let best = SearchQuery { order: SearchOrder::Best, ..query("budget") };
    assert_eq!(bodies(&find(&realm, "bert", &best))[0], "first");
    assert!(bodies(&find(&realm, "bert", &query("budget")))[0].starts_with("second"));
}

#[tokio::test]
async fn a_search_pages_backwards_and_says_when_it_stopped_early() {
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
    assert!(find(&realm, "bert", &query("word")).partial, "more matches than one search looks at");
}

/// The index follows in pieces of some hundred letters; which of them are in it must not show.
#[tokio::test]
async fn letters_are_found_before_while_and_after_the_index_takes_them_up() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    realm.talk(&anna, "plans", &["bert"]).await;
    for round in 0..1_500_u32 {
        match round % 3 {
            0 => drop(realm.say(&anna, "plans", &format!("turn number{round} heron")).await),
            _ => drop(realm.send(&anna, "bert", &format!("letter number{round} heron")).await),
        }
        // Just written, around the place where a pass is made, and at the end.
        if round < 3 || (250..260).contains(&round) || round == 1_499 {
            let found = find(&realm, "bert", &query(&format!("number{round}")));
            assert_eq!(found.hits.len(), 1, "{round} is found at once");
            assert!(found.hits[0].snippet.contains(&format!("[number{round}]")), "{}", found.hits[0].snippet);
        }
    }
    let everything = |realm: &Realm, order| {
        let mut wanted = SearchQuery { order, limit: 1_000, ..query("heron") };
        let mut places = Vec::new();
        loop {
            let found = find(realm, "bert", &wanted);
            places.extend(found.hits.iter().map(|hit| hit.seq));
            match places.last() {
                Some(last) if found.partial => wanted.before = Some(*last),
                _ => return places,
            }
        }
    };
    let before = everything(&realm, SearchOrder::Newest);
    assert_eq!(before.len(), 1_500, "each once, across both parts");
    assert!(before.is_sorted_by(|a, b| a > b), "newest first across both parts");
    let held = |realm: &Realm| {
        let db = posthaste_engine::store::open_reader(realm.engine.path()).expect("db");
        let count = "SELECT count(*) FROM fulltext WHERE fulltext MATCH 'heron'";
        db.query_row(count, [], |row| row.get::<_, i64>(0)).expect("a count")
    };
    assert!((1_000..1_500).contains(&held(&realm)), "a pass was made and a tail is left: {}", held(&realm));

    let realm = realm.reopened();
    assert_eq!(everything(&realm, SearchOrder::Newest), before, "a restart changes nothing");
    realm.ask(&crate::harness::admin(), posthaste_engine::verbs::office::Sweep {}).await;
    assert_eq!(held(&realm), 1_500, "a sweep brings the index up to date");
    assert_eq!(everything(&realm, SearchOrder::Newest), before, "and changes no answer");
    let db = posthaste_engine::store::open_writer(realm.engine.path()).expect("db");
    db.execute("INSERT INTO fulltext(fulltext, rank) VALUES('integrity-check', 1)", [])
        .expect("a sound index");
}

/// A letter that says one word over and over must not hold a search up.
#[tokio::test]
async fn a_word_repeated_a_hundred_thousand_times_is_found_at_once() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    realm.send(&anna, "bert", &"lapwing ".repeat(100_000)).await;
    let found = find(&realm, "bert", &query("lapwing"));
    assert!(found.hits[0].snippet.starts_with("[lapwing] [lapwing]"), "{}", found.hits[0].snippet);
}

/// A few large letters must not leave a search with a large tail to lay out.
#[tokio::test]
async fn large_letters_are_indexed_sooner() {
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

/// Readers keep what they laid out for a search. It must be forgotten when the index has taken it up, and grow with what
/// comes after, whichever reader is asked.
#[tokio::test]
async fn readers_that_searched_before_find_what_came_since() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    for round in 0..600_u32 {
        realm.send(&anna, "bert", &format!("plover number{round}")).await;
        if round % 7 != 0 {
            continue;
        }
        // Two at once, so that more than one connection takes part; the inner one sees the same moment or a later one.
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
    // A query that cannot be read leaves nothing half laid out.
    realm.send(&anna, "bert", "plover last").await;
    realm.hidden(|view| view.search(&member("bert"), &query("\"")));
    assert_eq!(find(&realm, "bert", &query("last")).hits.len(), 1);
}

/// A search looks at little before it decides who sees what; it must come to the same as the rules for single letters
/// and turns.
#[tokio::test]
async fn a_search_sees_exactly_what_can_be_read_one_by_one() {
    use posthaste_engine::nouns::{Audience, Caller};
    let realm = Realm::new();
    let names = ["anna", "bert", "carl", "dora"];
    let agents = realm.agents(names).await;
    let mut places = Vec::new();
    for round in 0..320_usize {
        let (from, to) = (&agents[round % 4], names[(round / 4) % 4]);
        let mut send = letter(to, &format!("dunlin {round}"));
        if round % 5 == 0 {
            send.audience = Audience::Observers;
        }
        // Letters that are recorded are turns as well, for those who take part; bert and carl never do.
        let conversation = talk("notes");
        if round % 3 == 0 && [round % 4, (round / 4) % 4].iter().all(|agent| [0, 3].contains(agent)) {
            let join = JoinMode::NameOnly { kind: "thread".into() };
            let conversation = conversation.clone();
            send.within =
                Some(ConversationRef { conversation, thread: None, reply_to: None, visibility: None, join });
        }
        let sent = realm.ask(from, send).await;
        places.push((sent.message.seq, sent.turn.map(|turn| (conversation, turn))));
    }
    // A name given up and taken again has no mail from before.
    let gone = posthaste_engine::verbs::agents::Unregister { agent: id("dora"), reason: None, cause: None };
    realm.ask(&agents[3], gone).await;
    realm.agent("dora").await;
    places.push((realm.send(&agents[0], "dora", "dunlin for the new one").await.message.seq, None));
    assert!(places.iter().filter(|(_, turn)| turn.is_some()).count() > 10);
    let admin = crate::harness::admin();
    let callers = names.map(|name| Caller::member(id(name), "test"));
    let observers = names.map(|name| Caller::observer(id(name), "test"));
    for caller in callers.iter().chain(&observers).chain([&admin]) {
        let readable = |place: &(i64, Option<_>)| {
            realm.engine.read_blocking(|view| view.message_at(caller, place.0)).is_ok()
                || place.1.as_ref().is_some_and(|(conversation, turn)| {
                    realm.engine.read_blocking(|view| view.turn(caller, conversation, *turn)).is_ok()
                })
        };
        let one_by_one: Vec<i64> =
            places.iter().rev().filter(|place| readable(place)).map(|place| place.0).collect();
        for order in [SearchOrder::Newest, SearchOrder::Best] {
            let wanted = SearchQuery { limit: 1_000, order, ..query("dunlin") };
            let found = realm.see(|view| view.search(caller, &wanted));
            let mut found: Vec<i64> = found.hits.iter().map(|hit| hit.seq).collect();
            found.sort_by_key(|seq| std::cmp::Reverse(*seq));
            assert_eq!(found, one_by_one, "{caller:?}");
        }
    }
}
