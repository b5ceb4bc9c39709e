//! Work limits of commands: a command that is too expensive is refused, whatever its size in bytes.

use posthaste_engine::Refusal;
use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{Address, AgentKind, AgentSet, Audience, Bounds};
use posthaste_engine::verbs::agents::{Bearer, Existing, Register};
use posthaste_engine::verbs::conversations::{Create, Invitee};
use posthaste_engine::verbs::mail::{ConversationRef, JoinMode, SendMessage};
use posthaste_engine::verbs::reservations::ReserveEach;
use posthaste_engine::verbs::reservations::{Release, Renew, Reserve, Which};
use posthaste_engine::verbs::scopes::{CreateScope, DeleteScope, JoinScope};

use crate::harness::{Realm, admin, conversation, id, later, member, scope};

fn reserve(paths: Vec<String>) -> Reserve {
    Reserve {
        key: None,
        scope: "repo".into(),
        paths,
        exclusive: true,
        reason: None,
        issued_at: None,
        expires_at: later(),
        audience: Audience::Observers,
        meta: None,
    }
}

/// A pattern that is as expensive to compare as allowed.
fn expensive_pattern(n: usize) -> String {
    let middle = "a".repeat(28);
    let mut path = format!("*{middle}").repeat(8);
    path.push_str(&n.to_string());
    path
}

fn is_too_much(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::TooMuchWork { .. })
}

#[tokio::test]
async fn path_length_and_wildcards_are_limited() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    let refused =
        ["*a".repeat(9), "x".repeat(257), format!("{{{}}}", "a*,".repeat(9)), "{aaaa,bbbb}".repeat(6)];
    for path in refused {
        let why = realm.refused(&anna, reserve(vec![path.clone()])).await;
        assert!(matches!(why, Refusal::BadPath { .. }), "{path}: {why}");
        let why = realm.hidden(|view| view.would_conflict(&anna, "repo", std::slice::from_ref(&path), true));
        assert!(matches!(why, Refusal::BadPath { .. }), "{path}: {why}");
    }
    for path in
        ["**/*test*/**/*_{a,b}*.{py,rs}".to_owned(), r"\*\*\*\*\*\*\*\*\*\*".to_owned(), "x".repeat(256)]
    {
        realm.ask(&anna, reserve(vec![path])).await;
    }
}

#[tokio::test]
async fn expensive_comparisons_are_refused_and_cheap_ones_still_work() {
    let realm = Realm::new();
    // A full scope: 5,000 of the most expensive patterns, held by five owners.
    for holder in ["h1", "h2", "h3", "h4", "h5"] {
        let holder = realm.agent(holder).await;
        for n in 0..10 {
            let paths = (0..100).map(|path| expensive_pattern(100 * n + path)).collect();
            // Shared reservations do not conflict with each other, so making them is cheap.
            realm.ask(&holder, Reserve { exclusive: false, ..reserve(paths) }).await;
        }
    }
    let mallory = realm.agent("mallory").await;
    let full = realm.refused(&mallory, reserve(vec!["src/app.rs".into()])).await;
    assert!(matches!(full, Refusal::TooManyReservations { limit: 5_000, .. }), "{full}");
    let h5 = member("h5");
    realm.ask(&h5, Release { which: Vec::new(), owner: None }).await;
    // Within the limits of paths and bytes, but expensive.
    let asked: Vec<String> = (0..100).map(expensive_pattern).collect();
    let each = ReserveEach {
        scope: "repo".into(),
        paths: asked.clone(),
        exclusive: true,
        reason: None,
        expires_at: later(),
        audience: Audience::Observers,
        only_if_free: false,
        meta: None,
    };
    let before = realm.see(|view| view.head());
    let why = realm.refused(&mallory, each).await;
    assert!(is_too_much(&why), "{why}");
    let why = realm.refused(&mallory, reserve(asked.clone())).await;
    assert!(is_too_much(&why), "{why}");
    let why = realm.hidden(|view| view.would_conflict(&mallory, "repo", &asked, true));
    assert!(is_too_much(&why), "{why}");
    assert_eq!(realm.see(|view| view.head()), before, "a refusal leaves nothing behind");
    // Ordinary reservations and views still work.
    let anna = realm.agent("anna").await;
    let made = realm.ask(&anna, reserve(vec!["src/app.rs".into(), "docs/*.md".into()])).await;
    assert_eq!(made.conflicts, []);
    realm.ask(&anna, Renew { which: Which::Number(made.reservation.seq), expires_at: later() }).await;
    realm.see(|view| view.clashes(&anna, 99));
}

#[tokio::test]
async fn agents_of_one_owner_may_hold_only_half_of_a_scope() {
    let realm = Realm::new();
    realm.rules(Rules { paths_per_scope: 20, ..Rules::default() }).await;
    let owner = realm.agent("owner").await;
    let mut given = Vec::new();
    for name in ["one", "two", "three"] {
        realm.ask(&owner, Register { id: Some(id(name)), ..Register::default() }).await;
        let paths = (0..5).map(|n| format!("{name}/{n}")).collect();
        given.push(realm.engine.submit(&member(name), reserve(paths)).await.is_ok());
    }
    assert_eq!(given, [true, true, false]);
    let anna = realm.agent("anna").await;
    realm.ask(&anna, reserve((0..10).map(|n| format!("anna/{n}")).collect())).await;
}

#[tokio::test]
async fn number_of_reported_conflicts_is_limited() {
    let realm = Realm::new();
    realm.rules(Rules { conflicts: 3, ..Rules::default() }).await;
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.ask(&anna, reserve((0..9).map(|n| format!("src/{n}")).collect())).await;
    assert_eq!(realm.ask(&bert, reserve(vec!["src".into(), "**".into()])).await.conflicts.len(), 3);
}

fn is_too_many(refusal: &Refusal, most: u64) -> bool {
    let (Refusal::TooMany { limit, .. } | Refusal::TooManyParticipants { limit, .. }) = refusal else {
        return false;
    };
    *limit == most
}

#[tokio::test]
async fn repeated_group_is_resolved_once_and_groups_are_limited() {
    let realm = Realm::new();
    // The limit is low enough that resolving all agents twice would be refused.
    realm.rules(Rules { recipients: 4, ..Rules::default() }).await;
    let [anna, ..] = realm.agents(["anna", "bert", "carl", "dora", "emil"]).await;
    let sent = realm.ask(&anna, SendMessage::text(vec![Address::All; 1_000], "x")).await;
    assert_eq!(sent.receipts.len(), 4);
    let twice = vec![Address::All, Address::Kind(AgentKind::Agent)];
    assert!(is_too_many(&realm.refused(&anna, SendMessage::text(twice, "x")).await, 4));
    let roles = |n: usize| {
        let role = |n: usize| Address::Role { role: format!("role-{n}"), within: None };
        SendMessage { allow_no_recipients: true, ..SendMessage::text((0..n).map(role).collect(), "x") }
    };
    realm.ask(&anna, roles(16)).await;
    assert!(is_too_many(&realm.refused(&anna, roles(17)).await, 16));
    realm.agent("fred").await;
    let why = realm.refused(&anna, SendMessage::text(vec![Address::All], "x")).await;
    assert!(is_too_many(&why, 4) && why.to_string().contains("operator"), "{why}");
}

#[tokio::test]
async fn agents_and_scopes_per_owner_are_limited_including_its_agents() {
    let realm = Realm::new();
    realm.rules(Rules { agents_per_owner: 3, scopes_per_owner: 2, ..Rules::default() }).await;
    let owner = realm.agent("owner").await;
    let entry = |name: &str| Register { id: Some(id(name)), ..Register::default() };
    realm.ask(&owner, entry("one")).await;
    realm.ask(&owner, entry("two")).await;
    realm.ask(&member("two"), entry("three")).await;
    for by in ["owner", "two", "three"] {
        assert!(is_too_many(&realm.refused(&member(by), entry("four")).await, 3), "{by}");
    }
    let gone = posthaste_engine::verbs::agents::Unregister { agent: id("one"), reason: None, cause: None };
    realm.ask(&owner, gone).await;
    realm.ask(&owner, entry("four")).await;
    // The limit is per token, because each session of a token may own the agents that it registers.
    let bearer = Some(Bearer { name: id("owner"), admin: false });
    let session = Register { owner: Some(id("session-2")), bearer, ..entry("six") };
    assert!(is_too_many(&realm.refused(&member("session-2"), session).await, 3));
    realm.ask(&admin(), entry("five")).await;
    realm.ask(&owner, CreateScope::default()).await;
    realm.ask(&member("three"), CreateScope::default()).await;
    assert!(is_too_many(&realm.refused(&member("four"), CreateScope::default()).await, 2));
}

#[tokio::test]
async fn scopes_that_one_registration_creates_count_against_the_owner() {
    let realm = Realm::new();
    realm.rules(Rules { scopes_per_owner: 2, ..Rules::default() }).await;
    let owner = realm.agent("owner").await;
    let entry = |name: &str, scopes: &[&str]| Register {
        id: Some(id(name)),
        scopes: scopes.iter().copied().map(scope).collect(),
        ..Register::default()
    };
    let before = realm.replayed(&admin()).len();
    assert!(is_too_many(&realm.refused(&owner, entry("one", &["a", "b", "c"])).await, 2));
    assert_eq!(realm.replayed(&admin()).len(), before, "a refused registration emits nothing");
    // A scope that is named twice is created once.
    let entered = realm.ask(&owner, entry("one", &["a", "b", "a"])).await;
    assert_eq!(entered.agent.scopes, [scope("a"), scope("b")]);
    assert!(is_too_many(&realm.refused(&owner, entry("two", &["c"])).await, 2));
    realm.ask(&owner, entry("two", &["b"])).await;
}

#[tokio::test]
async fn refused_take_over_changes_nothing() {
    let realm = Realm::new();
    realm.rules(Rules { scopes_per_agent: 1, ..Rules::default() }).await;
    let owner = realm.agent("owner").await;
    let scopes = vec![scope("a")];
    realm.ask(&owner, Register { id: Some(id("one")), scopes, ..Register::default() }).await;
    let again = Register {
        id: Some(id("one")),
        name: Some("One".into()),
        state: Some("busy".into()),
        scopes: vec![scope("b")],
        existing: Existing::TakeOver,
        ..Register::default()
    };
    let before = realm.replayed(&admin()).len();
    assert!(is_too_many(&realm.refused(&owner, again.clone()).await, 1));
    assert_eq!(realm.replayed(&admin()).len(), before);
    let taken = realm.ask(&owner, Register { scopes: vec![scope("a")], ..again }).await;
    assert_eq!(
        (taken.resumed, taken.agent.name.as_deref(), taken.agent.state.as_str()),
        (true, Some("One"), "busy")
    );
}

#[tokio::test]
async fn agents_that_an_agent_registered_count_against_its_new_account() {
    let realm = Realm::new();
    realm.rules(Rules { agents_per_owner: 3, ..Rules::default() }).await;
    let owner = realm.agent("owner").await;
    let child = realm.agent("child").await;
    let entry = |name: &str| Register { id: Some(id(name)), ..Register::default() };
    for name in ["one", "two"] {
        realm.ask(&child, entry(name)).await;
    }
    let gone = posthaste_engine::verbs::agents::Unregister { agent: id("child"), reason: None, cause: None };
    realm.ask(&child, gone).await;
    // The count of the owner's agents is cached here, and changes by three with the next registration.
    realm.ask(&owner, entry("three")).await;
    let bearer = Some(Bearer { name: id("owner"), admin: false });
    realm.ask(&child, Register { bearer, ..entry("child") }).await;
    assert!(is_too_many(&realm.refused(&owner, entry("four")).await, 3));
}

#[tokio::test]
async fn changes_per_command_are_limited() {
    let realm = Realm::new();
    realm.rules(Rules { changes_per_command: 3, bounds_names: 3, ..Rules::default() }).await;
    let [anna, ..] = realm.agents(["anna", "bert", "carl", "dora", "emil"]).await;
    let invitee =
        |n: usize| Invitee { agent: id(&format!("x{n}")), role: None, permissions: Default::default() };
    let create = |n| Create { participants: (0..n).map(invitee).collect(), ..conversation("chat", &[]) };
    assert!(is_too_many(&realm.refused(&anna, create(4)).await, 3));
    realm.ask(&anna, create(3)).await;
    let within = ConversationRef {
        conversation: posthaste_engine::nouns::ConversationId::new("all").expect("a name"),
        thread: None,
        reply_to: None,
        visibility: None,
        join: JoinMode::Open { kind: "thread".into() },
    };
    let to_all = SendMessage { within: Some(within), ..SendMessage::text(vec![Address::All], "x") };
    assert!(is_too_many(&realm.refused(&anna, to_all).await, 3));
    let only = |n: usize| Bounds {
        writes_to: Some(AgentSet::Only((0..n).map(|n| id(&format!("x{n}"))).collect())),
        ..Bounds::default()
    };
    let bound = |n| Register { id: Some(id("bound")), bounds: Some(only(n)), ..Register::default() };
    assert!(is_too_many(&realm.refused(&anna, bound(4)).await, 3));
    realm.ask(&anna, bound(3)).await;
    realm.scope(&anna, "room", CreateScope::default(), &["anna", "bert", "carl"]).await;
    realm.ask(&anna, JoinScope { scope: scope("room"), agent: id("dora") }).await;
    let delete = DeleteScope { scope: scope("room"), with_descendants: true };
    assert!(is_too_many(&realm.refused(&anna, delete.clone()).await, 3));
    realm.ask(&admin(), delete).await;
}
