//! Scopes: who may join, who sees them, and how they are deleted.

use posthaste_engine::nouns::{
    Address, Audience, Caller, Fact, JoinPolicy, Message, MessagesSeenBy, ScopeVisibility, SendPolicy,
    Visibility,
};
use posthaste_engine::verbs::agents::{Register, Unregister, Update};
use posthaste_engine::verbs::mail::SendMessage;
use posthaste_engine::verbs::scopes::{CreateScope, DeleteScope, JoinScope, LeaveScope};
use posthaste_engine::views::{AgentQuery, ScopeQuery, SearchQuery};
use posthaste_engine::{Filter, Refusal, Start};

use crate::harness::{Realm, admin, id, member, names, observer, scope};

fn join(name: &str, agent: &str) -> JoinScope {
    JoinScope { scope: scope(name), agent: id(agent) }
}

fn policy(policy: JoinPolicy) -> CreateScope {
    CreateScope { join_policy: Some(policy), ..CreateScope::default() }
}

fn secret() -> CreateScope {
    CreateScope { visibility: Some(ScopeVisibility::Members), ..CreateScope::default() }
}

fn below(parent: &str) -> CreateScope {
    CreateScope { parent: Some(scope(parent)), ..CreateScope::default() }
}

fn none(name: &str) -> Refusal {
    Refusal::NoSuchScope { scope: scope(name) }
}

fn members(realm: &Realm, name: &str, with_descendants: bool) -> Vec<String> {
    let page = realm.see(|view| view.members(&member("bert"), &scope(name), with_descendants, None, 100));
    page.items.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn join_policy_decides_who_may_join() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let judge = realm.register("judge", Register { role: Some("judge".into()), ..Register::default() }).await;
    realm.scope(&anna, "open", policy(JoinPolicy::Open), &[]).await;
    realm.scope(&anna, "invite", policy(JoinPolicy::Invite), &[]).await;
    realm
        .scope(&anna, "role", CreateScope { roles: vec!["judge".into()], ..policy(JoinPolicy::Role) }, &[])
        .await;
    realm.scope(&anna, "system", policy(JoinPolicy::System), &[]).await;
    let need = "to be let in by the scope's join policy";
    realm.ask(&bert, join("open", "bert")).await;
    for name in ["invite", "role", "system"] {
        assert_eq!(realm.refused(&bert, join(name, "bert")).await, Refusal::NotAllowed { need }, "{name}");
    }
    realm.ask(&judge, join("role", "judge")).await;
    realm.ask(&anna, join("invite", "bert")).await;
    realm.ask(&bert, join("invite", "judge")).await;
    assert_eq!(realm.refused(&anna, join("system", "anna")).await, Refusal::NotAllowed { need });
    realm.ask(&admin(), join("system", "anna")).await;
    assert_eq!(members(&realm, "invite", false), ["bert", "judge"]);
}

#[tokio::test]
async fn role_scope_is_joined_on_registration_and_role_change() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm
        .scope(&anna, "court", CreateScope { roles: vec!["judge".into()], ..policy(JoinPolicy::Role) }, &[])
        .await;
    realm.register("carl", Register { role: Some("judge".into()), ..Register::default() }).await;
    realm.ask(&bert, Update { role: Some("judge".into()), ..Update::of(id("bert")) }).await;
    assert_eq!(members(&realm, "court", false), ["bert", "carl"]);
}

#[tokio::test]
async fn scope_named_on_registration_is_created_or_joined_if_allowed() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    realm.scope(&anna, "shut", policy(JoinPolicy::Invite), &[]).await;
    let given = Register { scopes: vec![scope("new"), scope("shut")], ..Register::default() };
    realm.register("bert", given).await;
    let agent = realm.see(|view| view.agent(&member("bert"), &id("bert")));
    assert_eq!(agent.scopes, [scope("new")]);
    assert_eq!(realm.see(|view| view.scope(&anna, &scope("new"))).created_by, id("bert"));
}

#[tokio::test]
async fn hidden_scope_does_not_exist_for_outsiders() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.scope(&anna, "den", secret(), &["anna"]).await;
    assert_eq!(
        realm.refused(&bert, join("den", "bert")).await,
        none("den"),
        "knowing its name is not enough"
    );
    let named = Register { scopes: vec![scope("den")], ..Register::default() };
    let carl = realm.register("carl", named).await;
    assert_eq!(
        realm.hidden(|view| view.scope(&carl, &scope("den"))),
        none("den"),
        "also not on registration"
    );
    assert_eq!(
        realm.refused(&bert, LeaveScope { scope: scope("den"), agent: id("anna") }).await,
        none("den")
    );
    let delete = DeleteScope { scope: scope("den"), with_descendants: false };
    assert_eq!(realm.refused(&bert, delete).await, none("den"));
    let child = CreateScope { id: Some(scope("child")), ..below("den") };
    assert_eq!(realm.refused(&bert, child).await, none("den"));
    assert_eq!(realm.hidden(|view| view.members(&bert, &scope("den"), false, None, 9)), none("den"));
    let inside = AgentQuery { scope: Some(scope("den")), limit: 9, ..AgentQuery::default() };
    assert!(realm.see(|view| view.agents(&bert, &inside)).items.is_empty(), "also not its members");
    assert_eq!(realm.see(|view| view.agents(&anna, &inside)).items.len(), 1);
    assert!(realm.see(|view| view.agent(&bert, &id("anna"))).scopes.is_empty());
    realm.ask(&anna, join("den", "bert")).await;
    realm.see(|view| view.scope(&bert, &scope("den")));
}

#[tokio::test]
async fn agent_can_be_added_only_by_callers_that_see_it() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    realm.register("shy", Register { visibility: Some(Visibility::Scope), ..Register::default() }).await;
    realm.scope(&anna, "trap", CreateScope::default(), &["anna"]).await;
    let unknown = |name: &str| Refusal::NoSuchAgent { agent: name.into(), near: Vec::new() };
    for name in ["shy", "missing"] {
        assert_eq!(realm.refused(&anna, join("trap", name)).await, unknown(name));
        let leave = LeaveScope { scope: scope("trap"), agent: id(name) };
        assert_eq!(realm.refused(&anna, leave).await, unknown(name));
    }
    assert_eq!(realm.hidden(|view| view.agent(&anna, &id("shy"))), unknown("shy"));
}

#[tokio::test]
async fn members_leave_or_are_removed_by_the_creator() {
    let realm = Realm::new();
    let [anna, bert, carl] = realm.agents(["anna", "bert", "carl"]).await;
    realm.scope(&anna, "team", CreateScope::default(), &["anna", "bert", "carl"]).await;
    let leave = |name: &str| LeaveScope { scope: scope("team"), agent: id(name) };
    let need = "to be the member or the scope's maker";
    assert_eq!(realm.refused(&bert, leave("carl")).await, Refusal::NotAllowed { need });
    realm.ask(&carl, leave("carl")).await;
    realm.ask(&anna, leave("bert")).await;
    assert_eq!(members(&realm, "team", false), ["anna"]);
    realm.ask(&anna, Unregister { agent: id("anna"), reason: None, cause: None }).await;
    assert!(members(&realm, "team", false).is_empty(), "an unregistered agent leaves its scopes");
}

#[tokio::test]
async fn auto_delete_scope_ends_with_its_last_member() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let given = CreateScope { auto_delete: true, ..CreateScope::default() };
    realm.scope(&anna, "brief", given, &["anna", "bert"]).await;
    realm.ask(&anna, LeaveScope { scope: scope("brief"), agent: id("anna") }).await;
    realm.see(|view| view.scope(&anna, &scope("brief")));
    realm.ask(&bert, LeaveScope { scope: scope("brief"), agent: id("bert") }).await;
    assert_eq!(realm.hidden(|view| view.scope(&anna, &scope("brief"))), none("brief"));
    assert!(realm.replayed(&bert).ends_with(&["scope.left", "scope.deleted"]));
}

#[tokio::test]
async fn only_the_creator_may_delete_a_scope_and_only_without_children() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.scope(&anna, "top", CreateScope::default(), &[]).await;
    realm.scope(&anna, "mid", below("top"), &["bert"]).await;
    realm.scope(&bert, "low", below("mid"), &["anna"]).await;
    let delete = |all| DeleteScope { scope: scope("top"), with_descendants: all };
    let need = "to be the scope's maker";
    assert_eq!(realm.refused(&bert, delete(true)).await, Refusal::NotAllowed { need });
    assert_eq!(realm.refused(&anna, delete(false)).await, Refusal::ScopeNotEmpty { scope: scope("top") });
    assert_eq!(members(&realm, "top", true), ["anna", "bert"]);
    assert!(members(&realm, "top", false).is_empty());
    realm.ask(&anna, delete(true)).await;
    for name in ["top", "mid"] {
        assert_eq!(realm.hidden(|view| view.scope(&anna, &scope(name))), none(name));
    }
    let left = realm.see(|view| view.scope(&bert, &scope("low")));
    assert_eq!((left.created_by, left.parent), (id("bert"), None), "child scopes of other creators stay");
    let again = CreateScope { id: Some(scope("top")), ..CreateScope::default() };
    realm.ask(&bert, again.clone()).await;
    assert_eq!(realm.refused(&anna, again).await, Refusal::ScopeExists { scope: scope("top") });
}

#[tokio::test]
async fn hidden_scope_is_not_visible_through_its_parent() {
    let realm = Realm::new();
    let [anna, bert, _] = realm.agents(["anna", "bert", "carl"]).await;
    realm.scope(&anna, "top", CreateScope::default(), &["bert"]).await;
    realm.scope(&anna, "den", CreateScope { parent: Some(scope("top")), ..secret() }, &["carl"]).await;
    assert_eq!(members(&realm, "top", true), ["bert"]);
    let all = realm.see(|view| view.members(&anna, &scope("top"), true, None, 1));
    assert_eq!((names(&all.items), all.next), (vec!["bert"], Some(id("bert"))));
    let listed = realm.see(|view| view.scopes(&bert, &ScopeQuery { limit: 9, ..ScopeQuery::default() }));
    assert_eq!(listed.items.len(), 1);
}

#[tokio::test]
async fn events_of_a_hidden_scope_stay_hidden_after_deletion() {
    let realm = Realm::new();
    let [anna, _, carl] = realm.agents(["anna", "bert", "carl"]).await;
    realm.scope(&anna, "den", secret(), &["bert"]).await;
    realm.ask(&anna, DeleteScope { scope: scope("den"), with_descendants: false }).await;
    let words = |caller| {
        let replay = realm.see(|view| view.events(caller, 0, &Filter::Kinds(vec!["scope.*".into()]), 99));
        replay.events.iter().map(|event| event.fact.kind()).collect::<Vec<_>>()
    };
    assert!(words(&carl).is_empty());
    assert_eq!(words(&anna), ["scope.created", "scope.joined", "scope.left", "scope.deleted"]);
}

/// An agent with a role.
fn with_role(role: &str) -> Register {
    Register { role: Some(role.into()), ..Register::default() }
}

/// A scope that restricts who sees its messages.
fn messages_seen_by(seen_by: MessagesSeenBy) -> CreateScope {
    CreateScope { messages_seen_by: Some(seen_by), ..CreateScope::default() }
}

/// A message that its sender opens to observers.
fn open_message(to: Vec<Address>, text: &str) -> SendMessage {
    SendMessage { audience: Audience::Observers, ..SendMessage::text(to, text) }
}

/// Whether a caller finds a message, which must be the same for replay, search and lookup by id.
fn finds(realm: &Realm, who: &Caller, message: &Message) -> bool {
    let replay = realm.see(|view| view.events(who, 0, &Filter::Kinds(vec!["message.sent".into()]), 1_000));
    let by_replay = replay.events.iter().any(|event| event.seq == message.seq);
    let words = SearchQuery { text: message.body.as_str().into(), limit: 100, ..SearchQuery::default() };
    let by_search = realm.see(|view| view.search(who, &words)).hits.iter().any(|hit| hit.seq == message.seq);
    let by_name = realm.engine.read_blocking(|view| view.message(who, message.id)).is_ok();
    assert_eq!((by_replay, by_search), (by_name, by_name), "{who:?}: {}", message.body.as_str());
    by_name
}

#[tokio::test]
async fn scope_restricts_who_sees_its_messages() {
    let realm = Realm::new();
    let anna = realm.register("anna", with_role("judge")).await;
    realm.register("bert", with_role("judge")).await;
    realm.agents(["carl", "dora"]).await;
    for (name, visibility) in [
        ("square", MessagesSeenBy::Public),
        ("den", MessagesSeenBy::Members),
        ("office", MessagesSeenBy::System),
    ] {
        realm.scope(&anna, name, messages_seen_by(visibility), &["anna", "bert", "carl"]).await;
    }
    // Carl is a member but no judge, so the message is not for him; dora is not a member.
    let watchers =
        [anna.clone(), member("bert"), member("carl"), observer("carl"), observer("dora"), admin()];
    for (name, seen_by) in [
        ("square", [true, true, false, true, true, true]),
        ("den", [true, true, false, true, false, true]),
        ("office", [true, true, false, false, false, true]),
    ] {
        let mut feeds = Vec::new();
        for who in &watchers {
            feeds.push(realm.engine.follow(who, Filter::everything(), Start::Now, 64).await.expect("a feed"));
        }
        let to = Address::Role { role: "judge".into(), within: Some(scope(name)) };
        let sent = realm.ask(&anna, open_message(vec![to], "verdict")).await;
        assert_eq!(names(sent.receipts.iter().map(|one| &one.agent)), ["bert"]);
        for ((who, mut feed), seen) in watchers.iter().zip(feeds).zip(seen_by) {
            assert_eq!(finds(&realm, who, &sent.message), seen, "{name}: {who:?}");
            let told = realm.drain(&mut feed, who).await;
            assert_eq!(
                told.iter().any(|event| event.fact == Fact::MessageSent),
                seen,
                "{name}, live: {who:?}"
            );
        }
    }
}

#[tokio::test]
async fn current_members_see_messages_restricted_to_members() {
    let realm = Realm::new();
    let [anna, bert, _] = realm.agents(["anna", "bert", "dora"]).await;
    let dora = observer("dora");
    realm.scope(&anna, "den", messages_seen_by(MessagesSeenBy::Members), &["anna", "bert"]).await;
    realm.scope(&anna, "square", CreateScope::default(), &["anna", "bert"]).await;
    let to = |names: &[&str]| names.iter().map(|name| Address::Scope(scope(name))).collect();
    let one = realm.ask(&bert, open_message(to(&["den"]), "one")).await.message;
    let both = realm.ask(&bert, open_message(to(&["square", "den"]), "both")).await.message;
    assert!(!finds(&realm, &dora, &one) && !finds(&realm, &dora, &both));
    realm.ask(&anna, join("den", "dora")).await;
    assert!(finds(&realm, &dora, &one));
    assert!(!finds(&realm, &dora, &both), "a member of one of them only");
    realm.ask(&anna, join("square", "dora")).await;
    assert!(finds(&realm, &dora, &both));
    realm.ask(&anna, LeaveScope { scope: scope("den"), agent: id("dora") }).await;
    assert!(!finds(&realm, &dora, &one));
    // A new scope of that name does not show messages of the first.
    realm.ask(&anna, DeleteScope { scope: scope("den"), with_descendants: false }).await;
    realm.scope(&anna, "den", messages_seen_by(MessagesSeenBy::Members), &["dora"]).await;
    assert!(!finds(&realm, &dora, &one));
    let realm = realm.reopened();
    assert!(!finds(&realm, &dora, &one) && finds(&realm, &bert, &one));
}

#[tokio::test]
async fn writable_scopes_exclude_what_the_sender_may_not_write_to() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let among = CreateScope { send_policy: Some(SendPolicy::Members), ..below("top") };
    realm.scope(&anna, "top", CreateScope::default(), &[]).await;
    realm.scope(&anna, "open", below("top"), &[]).await;
    realm.scope(&anna, "closed", among, &["anna"]).await;
    realm.scope(&anna, "hidden", CreateScope { parent: Some(scope("top")), ..secret() }, &["anna"]).await;
    let reach = |who: &Caller| {
        let found = realm.see(|view| view.writable_scopes(who, &scope("top")));
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(reach(&anna), ["top", "closed", "hidden", "open"]);
    assert_eq!(reach(&bert), ["top", "open"]);
    assert_eq!(realm.hidden(|view| view.writable_scopes(&bert, &scope("hidden"))), none("hidden"));
}
