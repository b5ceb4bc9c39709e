//! The agent directory: registering, updating and unregistering agents, and who may do that.

use posthaste_engine::nouns::{Agent, AgentSet, Bounds, Caller, ContactState, Fact, Visibility};
use posthaste_engine::verbs::agents::{Existing, Orphan, Register, SetState, Unregister, Update};
use posthaste_engine::verbs::contacts::Ask;
use posthaste_engine::verbs::reservations::Reserve;
use posthaste_engine::verbs::scopes::{CreateScope, JoinScope};
use posthaste_engine::views::AgentQuery;
use posthaste_engine::{Filter, Refusal, Start};

use crate::harness::{Realm, admin, answer, id, json, later, member, message, names, scope};

fn named(name: &str) -> Register {
    Register { name: Some(name.into()), ..Register::default() }
}

fn leave(name: &str) -> Unregister {
    Unregister { agent: id(name), reason: None, cause: None }
}

fn no_such(name: &str) -> Refusal {
    Refusal::NoSuchAgent { agent: name.into(), near: Vec::new() }
}

fn listed(realm: &Realm, caller: &Caller, query: &AgentQuery) -> Vec<String> {
    let page = realm.see(|view| view.agents(caller, &AgentQuery { limit: 100, ..query.clone() }));
    page.items.iter().map(|agent| agent.id.to_string()).collect()
}

#[tokio::test]
async fn id_is_derived_from_the_name_and_unique() {
    let realm = Realm::new();
    let host = member("host");
    let first = realm.ask(&host, named("Build Bot")).await.agent;
    assert_eq!(first.id, id("build-bot"));
    assert_eq!(first.owner, Some(id("host")), "the registering agent becomes the owner");
    let second = realm.ask(&host, named("Build Bot")).await.agent;
    assert!(second.id.as_str().starts_with("build-bot-") && second.id != first.id);
    let unnamed = realm.ask(&host, Register::default()).await.agent;
    assert_eq!(unnamed.id, id("agent"));
    let office = realm.ask(&host, named("Posthaste")).await.agent;
    assert_ne!(office.id, id("posthaste"), "the server's own name is reserved");
    let taken = Register { id: Some(id("posthaste")), ..Register::default() };
    assert_eq!(realm.refused(&host, taken).await, Refusal::AgentExists { agent: id("posthaste") });
}

#[tokio::test]
async fn take_over_needs_the_right_to_change_the_agent() {
    let realm = Realm::new();
    let anna = realm.register("anna", named("Anna")).await;
    let again = Register { id: Some(id("anna")), ..Register::default() };
    let exists = Refusal::AgentExists { agent: id("anna") };
    assert_eq!(realm.refused(&anna, again.clone()).await, exists);
    let over = Register {
        existing: Existing::TakeOver,
        role: Some("judge".into()),
        meta: Some(json(r#"{"a":1}"#)),
        scopes: vec![scope("court")],
        ..again
    };
    assert_eq!(realm.refused(&member("mallory"), over.clone()).await, exists);
    let taken = realm.ask(&anna, over).await;
    assert!(taken.resumed);
    assert_eq!(taken.agent.name.as_deref(), Some("Anna"), "omitted fields stay");
    assert_eq!(taken.agent.role.as_deref(), Some("judge"));
    assert_eq!(taken.agent.scopes, [scope("court")]);
}

#[tokio::test]
async fn update_changes_given_fields_and_emits_an_event() {
    let realm = Realm::new();
    let anna =
        realm.register("anna", Register { meta: Some(json(r#"{"a":1,"b":1}"#)), ..named("Anna") }).await;
    let merge = Update { meta: Some(json(r#"{"b":2}"#)), merge_meta: true, ..Update::of(id("anna")) };
    let merged: Agent = realm.ask(&anna, merge.clone()).await;
    assert_eq!(merged.meta.map(|meta| meta.value()), Some(serde_json::json!({"a": 1, "b": 2})));
    let before = realm.see(|view| view.head());
    realm.ask(&anna, merge).await;
    assert_eq!(realm.see(|view| view.head()), before, "an update without a change emits no event");
    let replace = Update { meta: Some(json(r#"{"c":3}"#)), ..Update::of(id("anna")) };
    assert_eq!(realm.ask(&anna, replace).await.meta, Some(json(r#"{"c":3}"#)));
}

#[tokio::test]
async fn agent_is_changed_by_itself_owner_ancestors_and_admin() {
    let realm = Realm::new();
    let [top, anna, bert] = realm.agents(["top", "anna", "bert"]).await;
    realm.ask(&anna, Register { id: Some(id("mid")), parent: Some(id("top")), ..Register::default() }).await;
    realm.ask(&anna, Register { id: Some(id("low")), parent: Some(id("mid")), ..Register::default() }).await;
    let touch = |name: &str| Update { description: Some(name.into()), ..Update::of(id("low")) };
    for caller in [&member("low"), &anna, &member("mid"), &top, &admin()] {
        realm.ask(caller, touch(caller.agent.as_str())).await;
    }
    let need = "to be this agent, its owner or above it";
    assert_eq!(realm.refused(&bert, touch("x")).await, Refusal::NotAllowed { need });
    assert_eq!(realm.refused(&bert, leave("low")).await, Refusal::NotAllowed { need });
    assert_eq!(realm.refused(&bert, SetState::suspend(id("low"))).await, Refusal::NotAllowed { need });
    let stranger = Caller::stranger(id("low"), "test");
    assert_eq!(realm.refused(&stranger, touch("x")).await, no_such("low"));
}

#[tokio::test]
async fn agent_cannot_be_its_own_descendant() {
    let realm = Realm::new();
    let below = |parent: &str| Register { parent: Some(id(parent)), ..Register::default() };
    let top = realm.agent("top").await;
    realm.register("mid", below("top")).await;
    realm.register("low", below("mid")).await;
    for parent in ["top", "mid", "low"] {
        let update = Update { parent: Some(id(parent)), ..Update::of(id("top")) };
        assert_eq!(realm.refused(&top, update).await, Refusal::CircularParent { agent: id("top") });
    }
    let orphan = Register { id: Some(id("x")), ..below("missing") };
    assert_eq!(realm.refused(&member("x"), orphan).await, no_such("missing"));
}

#[tokio::test]
async fn visibility_decides_which_callers_find_an_agent() {
    let realm = Realm::new();
    let [boss, owner, mate, other] = realm.agents(["boss", "owner", "mate", "other"]).await;
    for visibility in Visibility::ALL {
        let given = Register {
            id: Some(id(&format!("to-{}", visibility.as_str()))),
            visibility: Some(*visibility),
            parent: Some(id("boss")),
            scopes: vec![scope("team")],
            ..Register::default()
        };
        realm.ask(&owner, given).await;
    }
    realm.ask(&mate, JoinScope { scope: scope("team"), agent: id("mate") }).await;
    let cases: [(&Caller, &[&str]); 5] = [
        (&other, &["to-public"]),
        (&mate, &["to-public", "to-scope"]),
        (&boss, &["to-parent-only", "to-public"]),
        (&owner, &["to-parent-only", "to-public", "to-scope", "to-system"]),
        (&admin(), &["to-parent-only", "to-public", "to-scope", "to-system"]),
    ];
    for (caller, expected) in cases {
        let below = AgentQuery { parent: Some(id("boss")), ..AgentQuery::default() };
        assert_eq!(listed(&realm, caller, &below), expected, "{:?}", caller.agent);
        for visibility in Visibility::ALL {
            let name = format!("to-{}", visibility.as_str());
            let name = name.as_str();
            if expected.contains(&name) {
                realm.see(|view| view.agent(caller, &id(name)));
            } else {
                assert_eq!(realm.hidden(|view| view.agent(caller, &id(name))), no_such(name));
            }
        }
    }
}

#[tokio::test]
async fn hidden_agent_is_not_named_by_its_relatives() {
    let realm = Realm::new();
    let shy =
        realm.register("shy", Register { visibility: Some(Visibility::System), ..Register::default() }).await;
    let other = realm.agent("other").await;
    let mut live = realm.engine.follow(&other, Filter::everything(), Start::Now, 64).await.expect("a feed");
    realm.ask(&shy, Register { id: Some(id("child")), parent: Some(id("shy")), ..Register::default() }).await;
    realm.scope(&other, "square", CreateScope::default(), &[]).await;
    realm.ask(&shy, JoinScope { scope: scope("square"), agent: id("shy") }).await;
    let child = realm.see(|view| view.agent(&other, &id("child")));
    assert_eq!((child.parent, child.owner), (None, None));
    let below = AgentQuery { parent: Some(id("shy")), ..AgentQuery::default() };
    assert!(listed(&realm, &other, &below).is_empty());
    let around = realm.see(|view| view.relatives(&other, &id("child"), 5));
    assert!(around.parent.is_none() && around.ancestors.is_empty());
    for event in realm.drain(&mut live, &other).await {
        assert!(!format!("{:?}", event.fact).contains("shy"), "{:?}", event.fact);
    }
    let replay = realm.see(|view| view.events(&other, 0, &Filter::everything(), 100));
    for event in replay.events {
        assert!(!format!("{:?}", event.fact).contains("shy"), "{:?}", event.fact);
    }
    let orphan = Register { id: Some(id("x")), parent: Some(id("shy")), ..Register::default() };
    assert_eq!(realm.refused(&other, orphan).await, no_such("shy"));
}

#[tokio::test]
async fn scope_members_are_notified_of_a_new_member() {
    let realm = Realm::new();
    let mate = realm.register("mate", Register { scopes: vec![scope("team")], ..Register::default() }).await;
    let mut live = realm.engine.follow(&mate, Filter::everything(), Start::Now, 64).await.expect("a feed");
    let given =
        Register { visibility: Some(Visibility::Scope), scopes: vec![scope("team")], ..Register::default() };
    realm.register("newcomer", given).await;
    let words: Vec<_> = realm.drain(&mut live, &mate).await.iter().map(|event| event.fact.kind()).collect();
    assert_eq!(words, ["agent.registered", "scope.joined"]);
}

#[tokio::test]
async fn suspension_is_lifted_by_its_owner_and_not_by_the_agent() {
    let realm = Realm::new();
    let [owner, _] = realm.agents(["owner", "bert"]).await;
    realm.ask(&owner, Register { id: Some(id("anna")), ..Register::default() }).await;
    let anna = member("anna");
    assert!(realm.ask(&owner, SetState::suspend(id("anna"))).await.is_suspended());
    let paused = Refusal::WrongState { agent: id("anna"), state: "suspended".into() };
    assert_eq!(realm.refused(&anna, SetState::resume(id("anna"))).await, paused);
    let over = Register {
        id: Some(id("anna")),
        existing: Existing::TakeOver,
        state: Some("active".into()),
        ..Register::default()
    };
    assert_eq!(realm.refused(&anna, over).await, paused, "nor by registering again");
    assert_eq!(realm.ask(&owner, SetState::resume(id("anna"))).await.state, "idle");
    realm.ask(&anna, message("bert", "back")).await;
    let bad = SetState { agent: id("anna"), state: String::new() };
    assert!(matches!(realm.refused(&anna, bad).await, Refusal::BadValue { field: "state", .. }));
}

#[tokio::test]
async fn agent_may_lift_its_own_suspension() {
    let realm = Realm::new();
    let [owner, _] = realm.agents(["owner", "bert"]).await;
    realm.ask(&owner, Register { id: Some(id("anna")), ..Register::default() }).await;
    let anna = member("anna");
    assert!(realm.ask(&anna, SetState::suspend(id("anna"))).await.is_suspended());
    assert_eq!(realm.ask(&anna, SetState::resume(id("anna"))).await.state, "idle");
    realm.ask(&anna, SetState::suspend(id("anna"))).await;
    realm.ask(&owner, SetState::suspend(id("anna"))).await;
    let paused = Refusal::WrongState { agent: id("anna"), state: "suspended".into() };
    assert_eq!(
        realm.refused(&anna, SetState::resume(id("anna"))).await,
        paused,
        "a suspension by the owner overrides its own"
    );
    realm.ask(&owner, Orphan { agent: id("anna"), cause: None }).await;
    assert_eq!(realm.refused(&anna, SetState::resume(id("anna"))).await, paused, "also after it is orphaned");
    let back = realm.ask(&admin(), SetState::resume(id("anna"))).await;
    assert_eq!((back.state.as_str(), back.bounds), ("idle", None));
}

#[tokio::test]
async fn stopped_agent_stays_stopped_until_registered_again() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    let to = |state: &str| SetState { agent: id("anna"), state: state.into() };
    realm.ask(&anna, to("stopped")).await;
    let ended = Refusal::WrongState { agent: id("anna"), state: "stopped".into() };
    for state in ["idle", "suspended", "stopped"] {
        assert_eq!(realm.refused(&anna, to(state)).await, ended, "{state}");
        assert_eq!(realm.refused(&admin(), to(state)).await, ended, "{state}");
    }
    let update = Update { state: Some("busy".into()), name: Some("Anna".into()), ..Update::of(id("anna")) };
    assert_eq!(realm.refused(&anna, update).await, ended);
    assert_eq!(realm.see(|view| view.agent(&anna, &id("anna"))).name, None, "all or nothing");
    realm.ask(&anna, Update { name: Some("Anna".into()), ..Update::of(id("anna")) }).await;
    let again = Register {
        id: Some(id("anna")),
        existing: Existing::TakeOver,
        state: Some("idle".into()),
        ..Register::default()
    };
    assert_eq!(realm.ask(&anna, again).await.agent.state, "idle");
}

#[tokio::test]
async fn orphan_has_no_owner_and_its_viewers_are_notified() {
    let realm = Realm::new();
    let [owner, other] = realm.agents(["owner", "other"]).await;
    let hidden = Register { visibility: Some(Visibility::ParentOnly), ..named("shy") };
    for register in [named("helper"), hidden] {
        realm.ask(&owner, register).await;
    }
    let mut live = realm.engine.follow(&owner, Filter::everything(), Start::Now, 64).await.expect("a feed");
    let mut aside = realm.engine.follow(&other, Filter::everything(), Start::Now, 64).await.expect("a feed");
    let orphan = |name: &str| Orphan { agent: id(name), cause: Some(1) };
    for name in ["helper", "shy"] {
        let alone = realm.ask(&member(name), orphan(name)).await;
        assert_eq!((alone.owner, alone.state.as_str()), (None, "orphaned"));
    }
    let told = realm.drain(&mut live, &owner).await;
    let words: Vec<_> = told.iter().map(|event| (event.fact.kind(), event.cause)).collect();
    let (state, gone) = (("agent.state", Some(1)), ("agent.orphaned", Some(1)));
    assert_eq!(words, [state, gone, state, gone]);
    let previous = Fact::AgentOrphaned { agent: id("helper"), previous: Some(id("owner")) };
    assert_eq!(told[1].fact, previous);
    assert_eq!(realm.drain(&mut aside, &other).await.len(), 2, "the hidden agent stays hidden");
    let not_theirs = Refusal::NotAllowed { need: "to be this agent, its owner or above it" };
    assert_eq!(realm.refused(&owner, orphan("helper")).await, not_theirs);
}

#[tokio::test]
async fn agents_of_one_owner_see_each_other() {
    let realm = Realm::new();
    let [owner, other] = realm.agents(["owner", "other"]).await;
    realm.ask(&owner, named("first")).await;
    realm.ask(&other, named("stranger")).await;
    let first = member("first");
    let mut live = realm.engine.follow(&first, Filter::everything(), Start::Now, 64).await.expect("a feed");
    for (n, visibility) in
        [Visibility::ParentOnly, Visibility::Scope, Visibility::System].into_iter().enumerate()
    {
        let name = format!("hidden-{n}");
        realm.ask(&owner, Register { visibility: Some(visibility), ..named(&name) }).await;
        let theirs = realm.see(|view| view.agent(&first, &id(&name)));
        assert_eq!(theirs.owner, Some(id("owner")));
        realm.send(&first, &name, "hello").await;
        assert_eq!(realm.hidden(|view| view.agent(&member("stranger"), &id(&name))), no_such(&name));
        realm.ask(&owner, leave(&name)).await;
        let told = realm.drain(&mut live, &first).await;
        let words: Vec<_> = told.iter().map(|event| event.fact.kind()).collect();
        assert_eq!(words, ["agent.registered", "message.sent", "agent.unregistered"], "{name}");
    }
    // Also a descendant of one of the owner's agents, even with another owner.
    realm
        .ask(
            &other,
            Register { visibility: Some(Visibility::ParentOnly), parent: Some(id("first")), ..named("low") },
        )
        .await;
    realm.ask(&owner, named("second")).await;
    assert_eq!(realm.see(|view| view.agent(&member("second"), &id("low"))).id, id("low"));
    // Bounds take precedence.
    let sees_none = Bounds { sees: Some(AgentSet::Empty), ..Bounds::default() };
    realm.ask(&owner, Register { bounds: Some(sees_none), ..named("kept") }).await;
    realm.ask(&owner, Register { visibility: Some(Visibility::System), ..named("away") }).await;
    assert_eq!(realm.hidden(|view| view.agent(&member("kept"), &id("away"))), no_such("away"));
}

#[tokio::test]
async fn bounds_changes_are_separate_updates() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    let mut live = realm.engine.follow(&anna, Filter::everything(), Start::Now, 64).await.expect("a feed");
    let sees = Bounds { sees: Some(AgentSet::Hierarchy), ..Bounds::default() };
    let writes = Bounds { writes_to: Some(AgentSet::Direct), ..Bounds::default() };
    realm.ask(&anna, Update { bounds: Some(sees), ..Update::of(id("anna")) }).await;
    let both = Update { bounds: Some(writes), name: Some("Anna".into()), ..Update::of(id("anna")) };
    realm.ask(&anna, both).await;
    let told = realm.drain(&mut live, &anna).await;
    let changes = told.iter().map(|event| match &event.fact {
        Fact::AgentUpdated { changes, .. } => changes.as_str(),
        _ => "",
    });
    let expected = [
        r#"{"bounds":{"sees":"hierarchy"},"bounds_in_force":{"sees":"hierarchy"}}"#,
        r#"{"name":"Anna"}"#,
        r#"{"bounds":{"writes_to":"direct"},"bounds_in_force":{"sees":"hierarchy","writes_to":"direct"}}"#,
    ];
    assert_eq!(changes.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn only_the_same_owner_gets_the_messages_of_a_registered_again_agent() {
    let realm = Realm::new();
    let [owner, anna] = realm.agents(["owner", "anna"]).await;
    let helper = Register { id: Some(id("helper")), ..Register::default() };
    realm.ask(&owner, helper.clone()).await;
    realm.send(&anna, "helper", "kept").await;
    realm.ask(&owner, leave("helper")).await;
    realm.ask(&owner, helper.clone()).await;
    assert_eq!(realm.mail("helper"), ["kept"]);
    realm.ask(&owner, leave("helper")).await;
    let claim = Register { owner: Some(id("owner")), ..helper };
    realm.ask(&member("helper"), claim).await;
    assert!(realm.mail("helper").is_empty(), "naming the owner gives no access");
}

#[tokio::test]
async fn reused_name_inherits_nothing() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.conversation(&bert, "private", &["anna"]).await;
    realm.ask(&anna, Register { id: Some(id("helper")), ..Register::default() }).await;
    let hidden = posthaste_engine::nouns::ScopeVisibility::Members;
    realm.scope(&anna, "den", CreateScope { visibility: Some(hidden), ..CreateScope::default() }, &[]).await;
    let reserve = Reserve {
        key: Some("k".into()),
        scope: "repo".into(),
        paths: vec!["src".into()],
        exclusive: true,
        reason: None,
        issued_at: None,
        expires_at: later(),
        audience: posthaste_engine::nouns::Audience::Parties,
        meta: None,
    };
    realm.ask(&anna, reserve).await;
    realm.ask(&bert, Ask { to: id("anna"), reason: None, expires_at: None }).await;
    realm.ask(&anna, answer(&id("bert"), ContactState::Accepted)).await;
    realm.ask(&anna, leave("anna")).await;
    realm.agent("anna").await;
    assert!(matches!(
        realm.hidden(|view| view.conversation(&anna, &crate::harness::conversation_id("private"))),
        Refusal::NoSuchConversation { .. }
    ));
    let rejoin = posthaste_engine::verbs::conversations::Join {
        conversation: crate::harness::conversation_id("private"),
        role: None,
    };
    assert!(matches!(realm.refused(&anna, rejoin).await, Refusal::NoSuchConversation { .. }));
    let query = posthaste_engine::views::InboxQuery { limit: 1, ..Default::default() };
    assert_eq!(realm.hidden(|view| view.inbox(&anna, &id("helper"), &query)), no_such("helper"));
    assert!(matches!(realm.hidden(|view| view.scope(&anna, &scope("den"))), Refusal::NoSuchScope { .. }));
    assert!(realm.see(|view| view.contacts(&anna, &id("anna"))).is_empty());
    let held = posthaste_engine::views::ReservationQuery { limit: 9, ..Default::default() };
    assert!(realm.see(|view| view.reservations(&anna, &held)).items.is_empty());
}

#[tokio::test]
async fn agent_list_pages_by_name_and_filters() {
    let realm = Realm::new();
    let host = realm
        .register("host", Register { visibility: Some(Visibility::System), ..Register::default() })
        .await;
    for n in 0..20 {
        let given = Register {
            id: Some(id(&format!("a{n:02}"))),
            role: Some(["x", "y"][n % 2].into()),
            visibility: (n % 5 == 0).then_some(Visibility::System),
            owner: Some(id(&format!("a{n:02}"))),
            ..Register::default()
        };
        realm.ask(&host, given).await;
    }
    realm.ask(&member("a01"), leave("a01")).await;
    let mut query = AgentQuery { roles: vec!["y".into()], limit: 2, ..AgentQuery::default() };
    let mut found = Vec::new();
    loop {
        let page = realm.see(|view| view.agents(&member("a02"), &query));
        found.extend(page.items.iter().map(|agent| agent.id.clone()));
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    assert_eq!(names(&found), ["a03", "a07", "a09", "a11", "a13", "a17", "a19"]);
    let with_retired = AgentQuery { retired: true, ..AgentQuery::default() };
    assert!(listed(&realm, &member("a02"), &with_retired).contains(&"a01".to_owned()));
    assert_eq!(realm.hidden(|view| view.agent(&member("a02"), &id("a01"))), no_such("a01"));
}

#[tokio::test]
async fn relatives_are_listed_up_to_a_depth() {
    let realm = Realm::new();
    let below = |parent: &str| Register { parent: Some(id(parent)), ..Register::default() };
    let top = realm.agent("top").await;
    for (name, parent) in [("left", "top"), ("right", "top"), ("leaf", "left"), ("tip", "leaf")] {
        realm.register(name, below(parent)).await;
    }
    let around = |name: &str, depth| realm.see(|view| view.relatives(&top, &id(name), depth));
    let ids = |agents: &[Agent]| agents.iter().map(|agent| agent.id.to_string()).collect::<Vec<_>>();
    let left = around("left", 9);
    assert_eq!(left.parent.map(|parent| parent.id), Some(id("top")));
    assert_eq!(ids(&left.siblings), ["right"]);
    assert_eq!(ids(&left.children), ["leaf"]);
    assert_eq!(ids(&left.descendants), ["leaf", "tip"]);
    assert_eq!(ids(&around("tip", 2).ancestors), ["leaf", "left"]);
    assert_eq!(ids(&around("top", 1).descendants), ["left", "right"]);
    assert_eq!(ids(&around("top", 3).descendants), ["left", "right", "leaf", "tip"]);
}
