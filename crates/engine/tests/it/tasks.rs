//! Tasks: made, assigned, moved on and ended, by those who take part.

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
async fn a_task_is_a_conversation_of_those_who_work_on_it() {
    let realm = Realm::new();
    let [anna, bert, carl] = realm.agents(["anna", "bert", "carl"]).await;
    let made = realm.ask(&anna, CreateTask { assignee: Some(id("bert")), ..task("t") }).await;
    assert_eq!((made.owner.as_str(), made.status), ("anna", TaskStatus::Open));
    assert_eq!(made.contributors, ["anna", "bert"], "whoever it is given to has a part in it");
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
async fn ending_a_task_ends_its_conversation_and_opening_it_again_opens_both() {
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
    let born_done =
        realm.ask(&anna, CreateTask { status: Some(TaskStatus::Completed), ..task("done") }).await;
    assert!(born_done.ended_at.is_some());
    assert!(realm.see(|view| view.conversation(&anna, &conversation_id("done"))).status.is_closed());
}

#[tokio::test]
async fn whoever_a_task_is_given_to_takes_part() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    realm.ask(&anna, task("t")).await;
    let give = UpdateTask { assignee: Some(id("bert")), ..UpdateTask::of(conversation_id("t")) };
    let given = realm.ask(&anna, give.clone()).await;
    assert_eq!((given.assignee, given.contributors), (Some(id("bert")), vec!["anna".into(), "bert".into()]));
    realm.ask(&anna, give).await;
    let told = realm.replayed(&bert).into_iter().filter(|word| *word == "task.assigned").count();
    assert_eq!(told, 1, "giving it again is no news");
    let with = realm
        .ask(&bert, AddContributor { task: conversation_id("t"), contributor: "dora@north".into() })
        .await;
    assert_eq!(with.contributors, ["anna", "bert", "dora@north"]);
}

#[tokio::test]
async fn a_task_can_be_taken_from_whoever_has_it_and_its_meta_grows() {
    let realm = Realm::new();
    let [anna, _] = realm.agents(["anna", "bert"]).await;
    let meta = Some(json(r#"{"a":1,"b":1}"#));
    realm.ask(&anna, CreateTask { assignee: Some(id("bert")), meta, ..task("t") }).await;
    let taken = UpdateTask { unassign: true, ..UpdateTask::of(conversation_id("t")) };
    assert_eq!(realm.ask(&anna, taken.clone()).await.assignee, None);
    let given = UpdateTask { assignee: Some(id("bert")), ..taken };
    assert_eq!(realm.ask(&anna, given).await.assignee, Some(id("bert")), "somebody is more than nobody");
    let more = UpdateTask {
        meta: Some(json(r#"{"b":2}"#)),
        merge_meta: true,
        ..UpdateTask::of(conversation_id("t"))
    };
    assert_eq!(realm.ask(&anna, more.clone()).await.meta, Some(json(r#"{"a":1,"b":2}"#)));
    let anew = UpdateTask { merge_meta: false, ..more };
    assert_eq!(realm.ask(&anna, anew).await.meta, Some(json(r#"{"b":2}"#)));
}

#[tokio::test]
async fn a_hidden_assignee_cannot_be_told_from_nobody() {
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
async fn participants_of_a_task_get_the_permissions_they_were_given() {
    let realm = Realm::new();
    let [anna, bert] = realm.agents(["anna", "bert"]).await;
    let mute = PermissionsPatch { can_send: Some(false), ..PermissionsPatch::default() };
    let participants = vec![Invitee { permissions: mute, ..invitee("bert") }];
    realm.ask(&anna, CreateTask { participants, ..task("t") }).await;
    let may_not = Refusal::ParticipantMayNot { conversation: conversation_id("t"), need: "canSend" };
    assert_eq!(realm.refused(&bert, say("t", "x")).await, may_not);
}

#[tokio::test]
async fn a_conversation_becomes_a_task_for_those_in_it_and_gives_no_one_the_lead() {
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
async fn tasks_are_listed_as_far_as_the_caller_takes_part() {
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
