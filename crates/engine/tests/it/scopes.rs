//! Scopes: who gets in, who sees them, and how they end.

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
async fn join_policies_let_in_whom_they_say() {
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
async fn a_role_lets_in_by_itself_on_registration_and_on_change() {
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
async fn a_scope_named_on_registration_is_made_or_joined_if_it_lets_in() {
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
async fn a_hidden_scope_is_not_there_for_outsiders_in_any_way() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.scope(&anna, "den", secret(), &["anna"]).await;
    assert_eq!(
        realm.refused(&bert, join("den", "bert")).await,
        none("den"),
        "knowing its name opens nothing"
    );
    let named = Register { scopes: vec![scope("den")], ..Register::default() };
    let carl = realm.register("carl", named).await;
    assert_eq!(realm.hidden(|view| view.scope(&carl, &scope("den"))), none("den"), "nor on registration");
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
    assert!(realm.see(|view| view.agents(&bert, &inside)).items.is_empty(), "nor who is in it");
    assert_eq!(realm.see(|view| view.agents(&anna, &inside)).items.len(), 1);
    assert!(realm.see(|view| view.agent(&bert, &id("anna"))).scopes.is_empty());
    realm.ask(&anna, join("den", "bert")).await;
    realm.see(|view| view.scope(&bert, &scope("den")));
}

#[tokio::test]
async fn an_agent_is_brought_in_only_by_those_who_know_of_it() {
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
async fn members_leave_by_themselves_or_are_put_out_by_the_maker() {
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
    assert!(members(&realm, "team", false).is_empty(), "who leaves the realm leaves its scopes");
}

#[tokio::test]
async fn a_scope_can_end_with_its_last_member() {
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
async fn only_the_maker_ends_a_scope_and_those_below_are_in_the_way() {
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
    assert_eq!((left.created_by, left.parent), (id("bert"), None), "others' scopes below stay");
    let again = CreateScope { id: Some(scope("top")), ..CreateScope::default() };
    realm.ask(&bert, again.clone()).await;
    assert_eq!(realm.refused(&anna, again).await, Refusal::ScopeExists { scope: scope("top") });
}

#[tokio::test]
async fn a_hidden_scope_does_not_show_through_the_one_above_it() {
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
async fn what_happened_in_a_hidden_scope_stays_hidden_when_it_is_gone() {
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

/// An agent of a role.
fn plays(role: &str) -> Register {
    Register { role: Some(role.into()), ..Register::default() }
}

/// A scope that keeps its letters to some.
fn keeps(letters: MessagesSeenBy) -> CreateScope {
    CreateScope { letters: Some(letters), ..CreateScope::default() }
}

/// A letter that onlookers may see as far as its sender is concerned.
fn open_letter(to: Vec<Address>, text: &str) -> SendMessage {
    SendMessage { audience: Audience::Observers, ..SendMessage::text(to, text) }
}

/// Whether somebody finds a letter in each of the ways in which letters are found.
fn finds(realm: &Realm, who: &Caller, letter: &Message) -> bool {
    let replay = realm.see(|view| view.events(who, 0, &Filter::Kinds(vec!["message.sent".into()]), 1_000));
    let by_replay = replay.events.iter().any(|event| event.seq == letter.seq);
    let words = SearchQuery { text: letter.body.as_str().into(), limit: 100, ..SearchQuery::default() };
    let by_search = realm.see(|view| view.search(who, &words)).hits.iter().any(|hit| hit.seq == letter.seq);
    let by_name = realm.engine.read_blocking(|view| view.message(who, letter.id)).is_ok();
    assert_eq!((by_replay, by_search), (by_name, by_name), "{who:?}: {}", letter.body.as_str());
    by_name
}

#[tokio::test]
async fn a_scope_keeps_letters_to_whom_it_says() {
    let realm = Realm::new();
    let anna = realm.register("anna", plays("judge")).await;
    realm.register("bert", plays("judge")).await;
    realm.agents(["carl", "dora"]).await;
    for (name, letters) in [
        ("square", MessagesSeenBy::Public),
        ("den", MessagesSeenBy::Members),
        ("office", MessagesSeenBy::System),
    ] {
        realm.scope(&anna, name, keeps(letters), &["anna", "bert", "carl"]).await;
    }
    // Carl is a member and no judge, so the letter is not for him; Dora is no member.
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
        let sent = realm.ask(&anna, open_letter(vec![to], "verdict")).await;
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
async fn who_is_a_member_today_sees_what_members_see() {
    let realm = Realm::new();
    let [anna, bert, _] = realm.agents(["anna", "bert", "dora"]).await;
    let dora = observer("dora");
    realm.scope(&anna, "den", keeps(MessagesSeenBy::Members), &["anna", "bert"]).await;
    realm.scope(&anna, "square", CreateScope::default(), &["anna", "bert"]).await;
    let to = |names: &[&str]| names.iter().map(|name| Address::Scope(scope(name))).collect();
    let one = realm.ask(&bert, open_letter(to(&["den"]), "one")).await.message;
    let both = realm.ask(&bert, open_letter(to(&["square", "den"]), "both")).await.message;
    assert!(!finds(&realm, &dora, &one) && !finds(&realm, &dora, &both));
    realm.ask(&anna, join("den", "dora")).await;
    assert!(finds(&realm, &dora, &one));
    assert!(!finds(&realm, &dora, &both), "a member of one of them only");
    realm.ask(&anna, join("square", "dora")).await;
    assert!(finds(&realm, &dora, &both));
    realm.ask(&anna, LeaveScope { scope: scope("den"), agent: id("dora") }).await;
    assert!(!finds(&realm, &dora, &one));
    // Another scope of that name has nothing to do with what was sent to the first.
    realm.ask(&anna, DeleteScope { scope: scope("den"), with_descendants: false }).await;
    realm.scope(&anna, "den", keeps(MessagesSeenBy::Members), &["dora"]).await;
    assert!(!finds(&realm, &dora, &one));
    let realm = realm.reopened();
    assert!(!finds(&realm, &dora, &one) && finds(&realm, &bert, &one));
}

#[tokio::test]
async fn a_letter_to_a_scope_and_those_below_leaves_out_what_its_sender_may_not_write_to() {
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
