//! Name ownership: tokens own their names, reserved names and look-alikes are refused, and a token bearer that registers
//! its name replaces an agent that another token registered under it.

use posthaste_engine::Refusal;
use posthaste_engine::nouns::{Address, AgentKind, AgentSet, Bounds, Caller, TokenRole};
use posthaste_engine::verbs::agents::{Bearer, Existing, Register, SetState, Unregister};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::tokens::{CreateToken, RevokeToken};

use crate::harness::{Realm, admin, id, json, member, message, named, soon};

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

/// The registration of a name by the bearer of a token.
fn by(token: &str, name: &str) -> Register {
    let bearer = Bearer { name: id(token), admin: false };
    Register { existing: Existing::TakeOver, bearer: Some(bearer), ..named(name) }
}

#[tokio::test]
async fn token_name_is_reserved_for_its_bearer_before_registration() {
    let realm = Realm::new();
    let carl = realm.ask(&admin(), token("carl", 1)).await;
    realm.ask(&admin(), token("mallory", 2)).await;
    let taken = |refusal: &Refusal| matches!(refusal, Refusal::AgentExists { .. });
    assert!(taken(&realm.refused(&member("mallory"), by("mallory", "carl")).await));
    // A caller without a token cannot claim the name either.
    assert!(taken(&realm.refused(&member("carl"), named("carl")).await));
    for alike in ["Carl", "cArl", "car1", "carI"] {
        let refused = realm.refused(&member("mallory"), by("mallory", alike)).await;
        assert!(matches!(refused, Refusal::LooksTaken { .. }), "{alike}: {refused:?}");
    }
    realm.ask(&member("carl"), by("carl", "carl")).await;
    // An id derived from a display name avoids the token's name.
    let made = Register { id: None, name: Some("Mallory".to_owned()), ..by("dora", "-") };
    assert!(realm.ask(&member("dora"), made).await.agent.id.as_str().starts_with("mallory-"));
    // The claim ends with the token.
    realm.ask(&member("carl"), Unregister { agent: id("carl"), reason: None, cause: None }).await;
    realm.ask(&admin(), RevokeToken { id: carl.id }).await;
    realm.ask(&member("mallory"), by("mallory", "carl")).await;
}

#[tokio::test]
async fn expired_token_owns_no_name() {
    let realm = Realm::new();
    let expiring = CreateToken { expires_at: Some(soon()), ..token("carl", 1) };
    let end = expiring.expires_at.expect("an end");
    realm.ask(&admin(), expiring).await;
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
    // An administrator may use its own name; the server registers stand-ins for remote agents.
    let operator = Bearer { name: id("admin"), admin: true };
    let entry = Register { bearer: Some(operator), kind: Some(AgentKind::Admin), ..named("admin") };
    realm.ask(&Caller::admin(id("admin"), "test"), entry).await;
    realm.ask(&Caller::admin(id("admin"), "test"), token("admin", 3)).await;
    realm.ask(&Caller::office(), Register { kind: Some(AgentKind::System), ..named("system@far") }).await;
}

#[tokio::test]
async fn look_alike_of_another_tokens_agent_is_refused() {
    let realm = Realm::new();
    realm.ask(&member("one"), by("one", "BlueLake")).await;
    for alike in ["bluelake", "BIueLake", "B1ueLake"] {
        let refused = realm.refused(&member("two"), by("two", alike)).await;
        assert!(matches!(refused, Refusal::LooksTaken { .. }), "{alike}: {refused:?}");
        // Names of the same token may look alike.
        realm.ask(&member("one"), by("one", alike)).await;
    }
    // After unregistration the name is free.
    for name in ["BlueLake", "bluelake", "BIueLake", "B1ueLake"] {
        realm.ask(&member("one"), Unregister { agent: id(name), reason: None, cause: None }).await;
    }
    realm.ask(&member("two"), by("two", "bluelake")).await;
}

#[tokio::test]
async fn look_alike_token_names_are_refused_and_equal_ones_are_not() {
    let realm = Realm::new();
    realm.ask(&admin(), token("carl", 1)).await;
    realm.ask(&admin(), token("carl", 2)).await;
    assert!(matches!(realm.refused(&admin(), token("Carl", 3)).await, Refusal::LooksTaken { .. }));
    realm.ask(&admin(), token("karl", 4)).await;
}

#[tokio::test]
async fn new_token_replaces_an_agent_registered_by_another_token() {
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
    assert!(stream.next().await.is_err(), "an open stream was not ended");
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
    // Messages to the name belong to the bearer, and its own registration changes nothing more.
    realm.ask(&member("ann"), message("carl", "welcome")).await;
    let registered = realm.ask(&member("carl"), by("carl", "carl")).await;
    assert!(registered.resumed);
    assert_eq!(registered.agent.created_at, carl.created_at);
    assert_eq!(realm.mail("carl"), ["welcome"]);
    // Another token of the same name changes nothing either.
    realm.ask(&admin(), token("carl", 2)).await;
    assert_eq!(realm.see(|view| view.agent(&admin(), &id("carl"))).created_at, carl.created_at);
}

#[tokio::test]
async fn bearer_of_a_signed_token_gets_its_name_on_registration() {
    // Signed tokens are not in the database, so their names cannot be reserved; they are reassigned on registration.
    let realm = Realm::new();
    let squatted = realm.ask(&member("mallory"), by("mallory", "carl")).await.agent;
    let registered = realm.ask(&member("carl"), by("carl", "carl")).await.agent;
    assert_eq!(registered.owner, None);
    assert_ne!(registered.created_at, squatted.created_at);
    let refused = realm.refused(&member("mallory"), SetState::suspend(id("carl"))).await;
    assert!(matches!(refused, Refusal::NotAllowed { .. }), "{refused:?}");
}

#[tokio::test]
async fn system_and_admin_kinds_are_reserved() {
    let realm = Realm::new();
    for kind in [AgentKind::System, AgentKind::Admin] {
        let entry = Register { kind: Some(kind), ..by("mallory", "mallory") };
        let refused = realm.refused(&member("mallory"), entry).await;
        assert!(matches!(refused, Refusal::NotAllowed { .. }), "{refused:?}");
    }
    // An agent that an administrator registers as a system part needs consent like any other.
    let closed = Bounds {
        takes_from_agents: Some(AgentSet::Empty),
        takes_from_clients: Some(AgentSet::Empty),
        takes_from_systems: Some(AgentSet::Empty),
        ..Bounds::default()
    };
    realm.ask(&member("ann"), Register { bounds: Some(closed), ..named("ann") }).await;
    for (name, kind) in [("part", AgentKind::System), ("gate", AgentKind::Gateway)] {
        realm.ask(&admin(), Register { kind: Some(kind), ..named(name) }).await;
        let refused = realm.refused(&member(name), message("ann", "let me in")).await;
        assert!(matches!(refused, Refusal::ConsentBlocked { .. }), "{refused:?}");
    }
    let notice = SendMessage::text(vec![Address::Agent(id("ann"))], "from the server");
    realm.ask(&Caller::office(), notice).await;
    assert_eq!(realm.mail("ann"), ["from the server"]);
}
