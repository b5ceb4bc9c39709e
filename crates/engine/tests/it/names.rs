//! Whose names are whose: tokens own the names they carry, reserved names and look-alikes are refused, and a bearer that
//! takes its name shuts out an agent that another token entered under it.

use posthaste_engine::Refusal;
use posthaste_engine::nouns::{Address, AgentKind, AgentSet, Bounds, Caller, TokenRole};
use posthaste_engine::verbs::agents::{Bearer, Existing, Register, SetState, Unregister};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::tokens::{CreateToken, RevokeToken};

use crate::harness::{Realm, admin, id, json, letter, member, named, soon};

fn token(name: &str, number: u8) -> CreateToken {
    CreateToken {
        hash: vec![number; 32],
        role: TokenRole::Agent,
        name: name.to_owned(),
        door: None,
        observe: false,
        expires_at: None,
    }
}

/// What the bearer of a token asks for when it registers a name.
fn by(token: &str, name: &str) -> Register {
    let bearer = Bearer { name: id(token), admin: false };
    Register { existing: Existing::TakeOver, bearer: Some(bearer), ..named(name) }
}

#[tokio::test]
async fn a_tokens_name_is_its_bearers_whether_or_not_it_has_come() {
    let realm = Realm::new();
    let carl = realm.ask(&admin(), token("carl", 1)).await;
    realm.ask(&admin(), token("mallory", 2)).await;
    let taken = |refusal: &Refusal| matches!(refusal, Refusal::AgentExists { .. });
    assert!(taken(&realm.refused(&member("mallory"), by("mallory", "carl")).await));
    // A door that has no token to show claims nothing by calling itself so.
    assert!(taken(&realm.refused(&member("carl"), named("carl")).await));
    for alike in ["Carl", "cArl", "car1", "carI"] {
        let refused = realm.refused(&member("mallory"), by("mallory", alike)).await;
        assert!(matches!(refused, Refusal::LooksTaken { .. }), "{alike}: {refused:?}");
    }
    realm.ask(&member("carl"), by("carl", "carl")).await;
    // A name that is made from what an agent is called gets round the token's.
    let made = Register { id: None, name: Some("Mallory".to_owned()), ..by("dora", "-") };
    assert!(realm.ask(&member("dora"), made).await.agent.id.as_str().starts_with("mallory-"));
    // With the token its claim ends.
    realm.ask(&member("carl"), Unregister { agent: id("carl"), reason: None, cause: None }).await;
    realm.ask(&admin(), RevokeToken { id: carl.id }).await;
    realm.ask(&member("mallory"), by("mallory", "carl")).await;
}

#[tokio::test]
async fn a_lapsed_token_owns_no_name() {
    let realm = Realm::new();
    let lapsing = CreateToken { expires_at: Some(soon()), ..token("carl", 1) };
    let end = lapsing.expires_at.expect("an end");
    realm.ask(&admin(), lapsing).await;
    assert!(matches!(realm.refused(&member("m"), by("m", "carl")).await, Refusal::AgentExists { .. }));
    realm.passed(end).await;
    realm.ask(&member("m"), by("m", "carl")).await;
}

#[tokio::test]
async fn reserved_names_address_words_and_misleading_characters_are_refused() {
    let realm = Realm::new();
    let bad = [
        "admin",
        "Admin",
        "adm1n",
        "system",
        "SYSTEM",
        "Posthaste",
        "p0sthaste",
        "all",
        "All",
        "parent",
        "children",
        "siblings",
        "ancestors",
        "descendants",
        "agent:carl",
        "scope:team",
        "role:cook",
        "user:carl",
        "admin:x",
        "boss@shop",
        "x@y",
        "@contacts",
        "carl@",
        "carl\u{200b}",
        "c\u{430}rl",
        "carl\u{202e}",
        "carl\u{e000}",
        "\u{ff50}osthaste",
        "carl\u{fe0f}",
        "carl\u{378}",
    ];
    for name in bad {
        let refused = realm.refused(&member("mallory"), by("mallory", name)).await;
        assert!(matches!(refused, Refusal::BadName { .. }), "{name:?}: {refused:?}");
        let refused = realm.refused(&admin(), token(name, 9)).await;
        assert!(matches!(refused, Refusal::BadName { .. }), "token {name:?}: {refused:?}");
    }
    let refused = realm.refused(&member("mallory"), by("mallory", "posthaste")).await;
    assert!(matches!(refused, Refusal::AgentExists { .. }), "{refused:?}");
    realm.refused(&admin(), token("posthaste", 9)).await;
    for name in ["supervisor", "user", "alliance", "иван", "Zoë Müller", "日本-1", "a/b", "x:y"] {
        realm.ask(&member("mallory"), by("mallory", name)).await;
    }
    // An administrator goes by its own name; the server makes stand-ins.
    let operator = Bearer { name: id("admin"), admin: true };
    let entry = Register { bearer: Some(operator), kind: Some(AgentKind::Admin), ..named("admin") };
    realm.ask(&Caller::admin(id("admin"), "test"), entry).await;
    realm.ask(&Caller::admin(id("admin"), "test"), token("admin", 3)).await;
    realm.ask(&Caller::office(), Register { kind: Some(AgentKind::System), ..named("system@far") }).await;
}

#[tokio::test]
async fn a_name_that_looks_like_another_tokens_agent_is_refused() {
    let realm = Realm::new();
    realm.ask(&member("one"), by("one", "BlueLake")).await;
    for alike in ["bluelake", "BIueLake", "B1ueLake"] {
        let refused = realm.refused(&member("two"), by("two", alike)).await;
        assert!(matches!(refused, Refusal::LooksTaken { .. }), "{alike}: {refused:?}");
        // One's own names may be as alike as one likes.
        realm.ask(&member("one"), by("one", alike)).await;
    }
    // Once it has left, the name is free.
    for name in ["BlueLake", "bluelake", "BIueLake", "B1ueLake"] {
        realm.ask(&member("one"), Unregister { agent: id(name), reason: None, cause: None }).await;
    }
    realm.ask(&member("two"), by("two", "bluelake")).await;
}

#[tokio::test]
async fn tokens_that_look_alike_are_refused_and_equal_ones_are_not() {
    let realm = Realm::new();
    realm.ask(&admin(), token("carl", 1)).await;
    realm.ask(&admin(), token("carl", 2)).await;
    assert!(matches!(realm.refused(&admin(), token("Carl", 3)).await, Refusal::LooksTaken { .. }));
    realm.ask(&admin(), token("karl", 4)).await;
}

#[tokio::test]
async fn a_new_token_shuts_out_the_agent_that_another_token_entered_under_its_name() {
    let realm = Realm::new();
    realm.agent("ann").await;
    realm.agent("boss").await;
    let squat = Register {
        parent: Some(id("boss")),
        bounds: Some(Bounds { takes_from_agents: Some(AgentSet::Empty), ..Bounds::default() }),
        keys: Some(json(r#"{"public_key":"mallory's"}"#)),
        ..by("mallory", "carl")
    };
    let squatted = realm.ask(&member("mallory"), squat).await.agent;
    realm.ask(&member("mallory"), SetState::suspend(id("carl"))).await;
    let mut stream = realm.engine.attach(&member("carl"), &id("carl")).await.expect("its own mail");
    let reassigned = realm.engine.names_reassigned();

    realm.ask(&admin(), token("carl", 1)).await;
    assert!(stream.next().await.is_err(), "a stream that was open goes on");
    assert!(realm.engine.names_reassigned() > reassigned);
    let carl = realm.see(|view| view.agent(&admin(), &id("carl")));
    assert_ne!(carl.created_at, squatted.created_at, "secrets are derived from it");
    assert_eq!((&carl.owner, &carl.parent, &carl.keys, &carl.bounds), (&None, &None, &None, &None));
    for former in ["mallory", "boss"] {
        let refused = realm.refused(&member(former), SetState::suspend(id("carl"))).await;
        assert!(matches!(refused, Refusal::NotAllowed { .. }), "{former}: {refused:?}");
    }
    assert!(matches!(
        realm.refused(&member("mallory"), by("mallory", "carl")).await,
        Refusal::AgentExists { .. }
    ));
    // Mail for the name is its bearer's, and the bearer's own coming changes nothing any more.
    realm.ask(&member("ann"), letter("carl", "welcome")).await;
    let come = realm.ask(&member("carl"), by("carl", "carl")).await;
    assert!(come.resumed);
    assert_eq!(come.agent.created_at, carl.created_at);
    assert_eq!(realm.mail("carl"), ["welcome"]);
    // Nor does another token of the same name.
    realm.ask(&admin(), token("carl", 2)).await;
    assert_eq!(realm.see(|view| view.agent(&admin(), &id("carl"))).created_at, carl.created_at);
}

#[tokio::test]
async fn a_bearer_that_is_in_no_table_takes_its_name_when_it_comes() {
    // Signed tokens are not in the database, so their names cannot be kept for them; they are given back.
    let realm = Realm::new();
    let squatted = realm.ask(&member("mallory"), by("mallory", "carl")).await.agent;
    let come = realm.ask(&member("carl"), by("carl", "carl")).await.agent;
    assert_eq!(come.owner, None);
    assert_ne!(come.created_at, squatted.created_at);
    let refused = realm.refused(&member("mallory"), SetState::suspend(id("carl"))).await;
    assert!(matches!(refused, Refusal::NotAllowed { .. }), "{refused:?}");
}

#[tokio::test]
async fn kinds_of_the_server_and_its_administrators_are_not_for_others() {
    let realm = Realm::new();
    for kind in [AgentKind::System, AgentKind::Admin] {
        let entry = Register { kind: Some(kind), ..by("mallory", "mallory") };
        let refused = realm.refused(&member("mallory"), entry).await;
        assert!(matches!(refused, Refusal::NotAllowed { .. }), "{refused:?}");
    }
    // What an administrator enters as a part of the system asks for consent like any other.
    let closed = Bounds {
        takes_from_agents: Some(AgentSet::Empty),
        takes_from_clients: Some(AgentSet::Empty),
        takes_from_systems: Some(AgentSet::Empty),
        ..Bounds::default()
    };
    realm.ask(&member("ann"), Register { bounds: Some(closed), ..named("ann") }).await;
    for (name, kind) in [("part", AgentKind::System), ("gate", AgentKind::Gateway)] {
        realm.ask(&admin(), Register { kind: Some(kind), ..named(name) }).await;
        let refused = realm.refused(&member(name), letter("ann", "let me in")).await;
        assert!(matches!(refused, Refusal::ConsentBlocked { .. }), "{refused:?}");
    }
    let notice = SendMessage::text(vec![Address::Agent(id("ann"))], "from the server");
    realm.ask(&Caller::office(), notice).await;
    assert_eq!(realm.mail("ann"), ["from the server"]);
}
