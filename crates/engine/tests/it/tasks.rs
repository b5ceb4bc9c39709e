//! Tasks: created, assigned, updated and ended by their participants.

use posthaste_engine::Refusal;
use posthaste_engine::nouns::{Audience, ConversationStatus, PermissionsPatch, TaskStatus, Visibility};
use posthaste_engine::verbs::agents::Register;
use posthaste_engine::verbs::conversations::{Create, Invite, Invitee};
use posthaste_engine::verbs::tasks::{AddContributor, CreateTask, UpdateTask};
use posthaste_engine::views::TaskQuery;

use crate::harness::{Realm, conversation, conversation_id, id, invitee, json, member, observer, say};

fn task(name: &str) -> CreateTask {
    CreateTask {
        id: Some(conversation_id(name)),
        title: Some("work".into()),
        description: None,
        status: None,
        owner: None,
        assignee: None,
        participants: Vec::new(),
        audience: Audience::Parties,
        meta: None,
    }
}

fn status(name: &str, status: TaskStatus) -> UpdateTask {
    UpdateTask { status: Some(status), ..UpdateTask::of(conversation_id(name)) }
}

fn none(name: &str) -> Refusal {
    Refusal::NoSuchTask { task: conversation_id(name) }
}

#[tokio::test]
async fn task_is_a_conversation_of_its_contributors() {
    let realm = Realm::new();
    let [anna, bert, carl] = realm.agents(["anna", "bert", "carl"]).await;
    let made = realm.ask(&anna, CreateTask { assignee: Some(id("bert")), ..task("t") }).await;
    assert_eq!((made.owner.as_str(), made.status), ("anna", TaskStatus::Open));
    assert_eq!(made.contributors, ["anna", "bert"], "the assignee is a contributor");
    assert_eq!(realm.see(|view| view.task(&bert, &conversation_id("t"))), made);
    realm.say(&bert, "t", "on it").await;
    assert_eq!(realm.hidden(|view| view.task(&carl, &conversation_id("t"))), none("t"));
    assert_eq!(realm.refused(&carl, status("t", TaskStatus::Failed)).await, none("t"));
    assert_eq!(
        realm.refused(&carl, AddContributor { task: conversation_id("t"), contributor: "carl".into() }).await,
        none("t")
    );
    assert_eq!(realm.refused(&anna, task("t")).await, Refusal::TaskExists { task: conversation_id("t") });
}

#[tokio::test]
async fn ending_and_reopening_a_task_also_applies_to_its_conversation() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.ask(&anna, CreateTask { assignee: Some(id("bert")), ..task("t") }).await;
    realm.ask(&bert, status("t", TaskStatus::InProgress)).await;
    let done = UpdateTask { result: Some(json(r#"{"ok":true}"#)), ..status("t", TaskStatus::Completed) };
    let ended = realm.ask(&bert, done).await;
    assert!(ended.ended_at.is_some());
    let closed = |realm: &Realm| realm.see(|view| view.conversation(&anna, &conversation_id("t"))).status;
    assert_eq!(closed(&realm), ConversationStatus::Completed);
    let words: Vec<_> = realm.replayed(&anna).into_iter().filter(|word| word.starts_with("task.")).collect();
    assert_eq!(words, ["task.created", "task.assigned", "task.status", "task.status", "task.completed"]);
    let again = realm.ask(&anna, status("t", TaskStatus::Open)).await;
    assert_eq!((again.ended_at, closed(&realm)), (None, ConversationStatus::Active));
    realm.ask(&anna, status("t", TaskStatus::Failed)).await;
    assert_eq!(closed(&realm), ConversationStatus::Failed);
    let created_done =
        realm.ask(&anna, CreateTask { status: Some(TaskStatus::Completed), ..task("done") }).await;
    assert!(created_done.ended_at.is_some());
    assert!(realm.see(|view| view.conversation(&anna, &conversation_id("done"))).status.is_closed());
}

#[tokio::test]
async fn assignee_becomes_a_participant() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.ask(&anna, task("t")).await;
    let assign = UpdateTask { assignee: Some(id("bert")), ..UpdateTask::of(conversation_id("t")) };
    let given = realm.ask(&anna, assign.clone()).await;
    assert_eq!((given.assignee, given.contributors), (Some(id("bert")), vec!["anna".into(), "bert".into()]));
    realm.ask(&anna, assign).await;
    let told = realm.replayed(&bert).into_iter().filter(|word| *word == "task.assigned").count();
    assert_eq!(told, 1, "a repeated assignment emits no event");
    let with = realm
        .ask(&bert, AddContributor { task: conversation_id("t"), contributor: "dora@north".into() })
        .await;
    assert_eq!(with.contributors, ["anna", "bert", "dora@north"]);
}

#[tokio::test]
async fn task_can_be_unassigned_and_its_meta_merged() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    let meta = Some(json(r#"{"a":1,"b":1}"#));
    realm.ask(&anna, CreateTask { assignee: Some(id("bert")), meta, ..task("t") }).await;
    let unassign = UpdateTask { unassign: true, ..UpdateTask::of(conversation_id("t")) };
    assert_eq!(realm.ask(&anna, unassign.clone()).await.assignee, None);
    let given = UpdateTask { assignee: Some(id("bert")), ..unassign };
    assert_eq!(
        realm.ask(&anna, given).await.assignee,
        Some(id("bert")),
        "an assignee takes precedence over `unassign`"
    );
    let more = UpdateTask {
        meta: Some(json(r#"{"b":2}"#)),
        merge_meta: true,
        ..UpdateTask::of(conversation_id("t"))
    };
    assert_eq!(realm.ask(&anna, more.clone()).await.meta, Some(json(r#"{"a":1,"b":2}"#)));
    let replace = UpdateTask { merge_meta: false, ..more };
    assert_eq!(realm.ask(&anna, replace).await.meta, Some(json(r#"{"b":2}"#)));
}

#[tokio::test]
async fn hidden_and_missing_assignees_are_indistinguishable() {
    let realm = Realm::new();
    let anna = realm.agent("anna").await;
    realm.register("shy", Register { visibility: Some(Visibility::System), ..Register::default() }).await;
    realm.ask(&anna, task("t")).await;
    for name in ["shy", "missing"] {
        let unknown = Refusal::NoSuchAgent { agent: name.into(), near: Vec::new() };
        let create = CreateTask { assignee: Some(id(name)), ..task("u") };
        assert_eq!(realm.refused(&anna, create).await, unknown);
        let update = UpdateTask { assignee: Some(id(name)), ..UpdateTask::of(conversation_id("t")) };
        assert_eq!(realm.refused(&anna, update).await, unknown);
    }
}

#[tokio::test]
async fn task_participants_get_the_given_permissions() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let mute = PermissionsPatch { can_send: Some(false), ..PermissionsPatch::default() };
    let participants = vec![Invitee { permissions: mute, ..invitee("bert") }];
    realm.ask(&anna, CreateTask { participants, ..task("t") }).await;
    let may_not = Refusal::ParticipantMayNot { conversation: conversation_id("t"), need: "canSend" };
    assert_eq!(realm.refused(&bert, say("t", "x")).await, may_not);
}

#[tokio::test]
async fn conversation_becomes_a_task_without_new_permissions() {
    let realm = Realm::new();
    let [anna, bert, _] = realm.agents(["anna", "bert", "eye"]).await;
    realm.conversation(&anna, "private", &[]).await;
    let refused = realm.refused(&bert, task("private")).await;
    assert_eq!(refused, Refusal::NoSuchConversation { conversation: conversation_id("private") });
    realm.ask(&anna, task("private")).await;
    let open = Create { audience: Audience::Observers, ..conversation("open", &[]) };
    realm.ask(&anna, open).await;
    let eye = observer("eye");
    let not_in = Refusal::NotAParticipant { conversation: conversation_id("open") };
    assert_eq!(realm.refused(&eye, task("open")).await, not_in, "reading it is not enough");
    realm.ask(&anna, Invite { conversation: conversation_id("open"), invitee: invitee("bert") }).await;
    let with_eye = CreateTask { assignee: Some(id("eye")), ..task("open") };
    let may_not = Refusal::ParticipantMayNot { conversation: conversation_id("open"), need: "canInvite" };
    assert_eq!(realm.refused(&bert, with_eye).await, may_not);
    realm.ask(&bert, task("open")).await;
    let part = realm.see(|view| view.own_part(&bert, &conversation_id("open"))).expect("a part");
    assert!(!part.permissions.can_remove && !part.permissions.can_invite);
}

#[tokio::test]
async fn task_list_contains_only_visible_tasks() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    for n in 0..12 {
        let assignee = (n % 2 == 0).then(|| id("bert"));
        realm.ask(&anna, CreateTask { assignee, ..task(&format!("t{n:02}")) }).await;
        if n % 3 == 0 {
            realm.ask(&anna, status(&format!("t{n:02}"), TaskStatus::Blocked)).await;
        }
    }
    let all = |who: &str, query: TaskQuery| -> Vec<String> {
        let mut query = TaskQuery { limit: 2, ..query };
        let mut found = Vec::new();
        loop {
            let page = realm.see(|view| view.tasks(&member(who), &query));
            found.extend(page.items.iter().map(|task| task.id.to_string()));
            let Some(next) = page.next else { return found };
            query.after = next;
        }
    };
    assert_eq!(all("anna", TaskQuery::default()).len(), 12);
    assert_eq!(all("bert", TaskQuery::default()), ["t00", "t02", "t04", "t06", "t08", "t10"]);
    let statuses = vec![TaskStatus::Blocked, TaskStatus::Failed, TaskStatus::Blocked];
    assert_eq!(all("anna", TaskQuery { statuses, ..TaskQuery::default() }), ["t00", "t03", "t06", "t09"]);
    let mine =
        TaskQuery { assignee: Some(id("bert")), statuses: vec![TaskStatus::Open], ..TaskQuery::default() };
    assert_eq!(all("anna", mine), ["t02", "t04", "t08", "t10"]);
    assert!(all("bert", TaskQuery { owner: Some("bert".into()), ..TaskQuery::default() }).is_empty());
}
