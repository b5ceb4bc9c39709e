//! The runtime without its door: callers that go away in the middle of a call leave no task half done.

use std::time::Duration;

use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::{Caller, PeerKind, RealmName, RunPhase};
use posthaste_engine::verbs::peers::PutPeer;
use posthaste_engine::{Engine, EngineGuard};
use posthaste_host::http::egress_policy::EgressPolicy;
use posthaste_host::http::outgoing::OutgoingClients;
use posthaste_wire::mail::{Interswarm, MailAddress, MsgType, Owner, OwnerRole, Payload};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::definition::Swarm;
use super::{Runtime, TaskRequest};

const DEADLINE: Duration = Duration::from_secs(20);
/// A call that writes one step waits a few times: for reads, for a lock, for the commit.
const MAX_POLLS: u32 = 6;

struct Hosted {
    runtime: Runtime,
    engine: Engine,
    stop: CancellationToken,
    _guard: EngineGuard,
    _directory: tempfile::TempDir,
}

impl Drop for Hosted {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A swarm whose supervisor does what the message lists and knows the swarm `south`, which does not answer.
async fn north() -> Hosted {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let directory = tempfile::tempdir().unwrap();
    let name = RealmName::new("north").unwrap();
    let path = directory.path().join("north.db");
    let (engine, guard) = Engine::open(&path, name, Limits::default()).unwrap();
    let description = json!({
        "name": "north", "version": "1.3", "entrypoint": "boss", "enable_interswarm": true, "interswarm_patience": 600,
        "agents": [{
            "name": "boss", "driver": { "builtin": "script" }, "comm_targets": ["boss@south"],
            "enable_entrypoint": true, "can_complete_tasks": true, "enable_interswarm": true,
        }],
    });
    let swarm = Swarm::from_text(&description.to_string(), directory.path()).unwrap();
    let (ways, stop) =
        (OutgoingClients::new(None, EgressPolicy::ANYWHERE).unwrap(), CancellationToken::new());
    let data = directory.path().to_owned();
    let runtime =
        Runtime::start(engine.clone(), swarm, data.clone(), data, ways, stop.clone()).await.unwrap();
    let south = RealmName::new("south").unwrap();
    let peer = PutPeer {
        name: south.clone(),
        kind: PeerKind::Server,
        url: Some("http://127.0.0.1:9".to_owned()),
        token_ref: None,
        reachable: true,
        volatile: false,
        meta: None,
        seen_at: None,
    };
    engine.submit(&Caller::office(), peer).await.unwrap();
    assert!(runtime.adopt(&south).await);
    Hosted { runtime, engine, stop, _guard: guard, _directory: directory }
}

fn owner() -> Owner {
    Owner { role: OwnerRole::User, id: "ann".to_owned(), swarm: "north".to_owned() }
}

fn task_id(n: u32) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

fn request(n: u32, body: &str) -> TaskRequest {
    TaskRequest {
        owner: owner(),
        task_id: Some(task_id(n)),
        kind: MsgType::Request,
        to: vec!["boss".to_owned()],
        subject: "s".to_owned(),
        body: body.to_owned(),
        routing_info: None,
        resume: None,
        results: Vec::new(),
        max_steps: None,
        timeout: None,
        direct: false,
        source: None,
    }
}

/// Polls a call some times, as often as it makes progress, and drops it, as the server does when the connection is cut.
async fn cut_after(polls: u32, call: impl Future) {
    let mut call = std::pin::pin!(call);
    for _ in 0..polls {
        if futures_util::poll!(call.as_mut()).is_ready() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Hosted {
    async fn phase(&self, n: u32) -> Option<RunPhase> {
        let (instance, name) = (owner().instance(), task_id(n));
        let run = self.engine.read(move |view| view.run(&Caller::office(), &instance, &name)).await.unwrap();
        run.map(|(run, _)| run.phase)
    }

    async fn eventually(&self, what: &str, is_true: impl AsyncFn() -> bool) {
        let wait = async {
            while !is_true().await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(DEADLINE, wait).await.unwrap_or_else(|_| panic!("never true: {what}"));
    }
}

#[tokio::test]
async fn a_task_whose_caller_is_cut_off_while_it_is_opened_goes_on() {
    let north = north().await;
    for polls in 1..=MAX_POLLS {
        cut_after(polls, north.runtime.open_task(request(polls, "hello"))).await;
        let ended = async || north.phase(polls).await == Some(RunPhase::Ended);
        north.eventually(&format!("the task ended, cut after {polls} polls"), ended).await;
    }
}

/// South's answer, whose delivery is cut off and tried again, is neither lost nor taken for none.
#[tokio::test]
async fn an_answer_whose_delivery_is_cut_off_is_not_lost() {
    let north = north().await;
    let call =
        json!({ "tool": "send_request", "args": { "target": "boss@south", "subject": "s", "body": "q" } });
    let ask = json!({ "calls": [call] }).to_string();
    for polls in 1..=MAX_POLLS {
        let opened = north.runtime.open_task(request(polls, &ask)).await.unwrap();
        let south = RealmName::new("south").unwrap();
        let asked = async || {
            let (peer, task) = (south.clone(), opened.task.clone());
            let waiting =
                north.engine.read(move |view| view.outbound_to(&Caller::office(), &peer, 100)).await.unwrap();
            waiting.iter().any(|(message, _)| message.task.as_ref() == Some(&task))
        };
        north.eventually("the question is in the outbox", asked).await;
        cut_after(polls, north.runtime.back("south", answer(polls))).await;
        north.runtime.back("south", answer(polls)).await.unwrap();
        let finish = tokio::time::timeout(DEADLINE, opened.finish).await.expect("the task ends").unwrap();
        assert_eq!(finish.mail.message.body, "the answer", "cut after {polls} polls");
    }
}

fn answer(n: u32) -> Interswarm {
    Interswarm {
        message_id: format!("answer-{n}"),
        source_swarm: "south".to_owned(),
        target_swarm: "north".to_owned(),
        timestamp: "2026-01-01T00:00:00Z".to_owned(),
        msg_type: MsgType::Response,
        payload: Payload {
            task_id: task_id(n),
            own_id: "r".to_owned(),
            sender: MailAddress::agent("boss@south"),
            recipients: vec![MailAddress::agent("boss@north")],
            subject: "re".to_owned(),
            body: "the answer".to_owned(),
            sender_swarm: None,
            recipient_swarms: None,
            routing_info: None,
        },
        task_owner: owner(),
        task_contributors: vec![owner()],
        auth_token: None,
        metadata: None,
    }
}
