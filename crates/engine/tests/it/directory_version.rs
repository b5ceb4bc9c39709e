//! The directory version rises before a change to the directory is answered, and only then.

use posthaste_engine::limits::Rules;
use posthaste_engine::nouns::{Caller, ContactPolicy, ContactState, PeerKind, TokenRole};
use posthaste_engine::verbs::Verb;
use posthaste_engine::verbs::agents::{Existing, Register, SetState, Unregister, Update};
use posthaste_engine::verbs::contacts::{Ask, EndContact};
use posthaste_engine::verbs::keys::ChangeKeys;
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::office::SetRules;
use posthaste_engine::verbs::peers::{PutPeer, RemovePeer};
use posthaste_engine::verbs::scopes::{CreateScope, DeleteScope, JoinScope, LeaveScope};
use posthaste_engine::verbs::tokens::{CreateToken, RenewToken, RevokeToken};

use crate::harness::{Realm, admin, answer, id, json, member, message, realm as named, scope};

/// Asks for a change to the directory, after whose answer the version must be another.
async fn changes<V: Verb>(realm: &Realm, caller: &Caller, verb: V) -> V::Outcome {
    let before = realm.engine.directory_version();
    let outcome = realm.ask(caller, verb).await;
    let after = realm.engine.directory_version();
    assert!(after > before, "{} left the version at {before}", std::any::type_name::<V>());
    outcome
}

fn token(name: &str, fill: u8) -> CreateToken {
    CreateToken {
        hash: vec![fill; 32],
        role: TokenRole::Agent,
        name: name.into(),
        door: None,
        observe: false,
        expires_at: None,
    }
}

#[tokio::test]
async fn every_change_to_a_token_raises_the_version() {
    let realm = Realm::new();
    realm.agent("anna").await;
    let made = changes(&realm, &admin(), token("anna", 1)).await;
    changes(&realm, &admin(), RevokeToken { id: made.id }).await;
    changes(&realm, &admin(), token("anna", 2)).await;
    let renew = RenewToken { old: vec![2; 32], hash: vec![3; 32], expires_at: None };
    changes(&realm, &admin(), renew).await;
    let keys = ChangeKeys {
        agent: id("anna"),
        before: None,
        keys: json("{}"),
        proof_keys: Vec::new(),
        token: None,
        token_door: None,
        token_ends: None,
        revoke: false,
    };
    changes(&realm, &admin(), keys).await;
}

#[tokio::test]
async fn every_change_to_an_agent_raises_the_version() {
    let realm = Realm::new();
    let anna = member("anna");
    changes(&realm, &anna, Register { id: Some(id("anna")), ..Register::default() }).await;
    let role = Update { role: Some("judge".into()), ..Update::of(id("anna")) };
    changes(&realm, &anna, role).await;
    changes(&realm, &anna, SetState::suspend(id("anna"))).await;
    // The state stays, and the agent can no longer end the pause by itself. There is no event for that.
    changes(&realm, &admin(), SetState::suspend(id("anna"))).await;
    let resume = Register { id: Some(id("anna")), existing: Existing::TakeOver, ..Register::default() };
    changes(&realm, &admin(), resume).await;
    changes(&realm, &admin(), Unregister { agent: id("anna"), reason: None, cause: None }).await;
}

#[tokio::test]
async fn scopes_contacts_peers_and_rules_raise_the_version() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    let asked = Register { contact_policy: Some(ContactPolicy::Contacts), ..Register::default() };
    let bert = realm.register("bert", asked).await;
    changes(&realm, &anna, CreateScope { id: Some(scope("s")), ..CreateScope::default() }).await;
    changes(&realm, &bert, JoinScope { scope: scope("s"), agent: id("bert") }).await;
    changes(&realm, &bert, LeaveScope { scope: scope("s"), agent: id("bert") }).await;
    changes(&realm, &anna, DeleteScope { scope: scope("s"), with_descendants: false }).await;
    changes(&realm, &anna, Ask { to: id("bert"), reason: None, expires_at: None }).await;
    changes(&realm, &bert, answer(&id("anna"), ContactState::Accepted)).await;
    changes(&realm, &bert, EndContact { with: id("anna") }).await;
    // A refused first message leaves a contact request.
    let before = realm.engine.directory_version();
    realm.refused(&anna, message("bert", "hello")).await;
    assert!(realm.engine.directory_version() > before);
    let peer = PutPeer {
        name: named("north"),
        kind: PeerKind::Office,
        url: None,
        token_ref: None,
        reachable: true,
        volatile: false,
        meta: None,
        seen_at: None,
    };
    changes(&realm, &admin(), peer).await;
    changes(&realm, &admin(), RemovePeer { name: named("north") }).await;
    changes(&realm, &admin(), SetRules { rules: Rules::default() }).await;
}

#[tokio::test]
async fn messages_leave_the_version_as_it_is() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    let before = realm.engine.directory_version();
    realm.send(&anna, "bert", "hello").await;
    realm.ask(&anna, SendMessage { key: Some("k".into()), ..message("bert", "again") }).await;
    assert_eq!(realm.engine.directory_version(), before);
}

#[tokio::test]
async fn openings_of_a_realm_share_no_versions() {
    let realm = Realm::new();
    let first = (realm.engine.directory_version(), realm.engine.names_reassigned());
    realm.agent("anna").await;
    let last = realm.engine.directory_version();
    let realm = realm.reopened();
    for version in [realm.engine.directory_version(), realm.engine.names_reassigned()] {
        assert!(version > last && version != first.0 && version != first.1);
    }
}
