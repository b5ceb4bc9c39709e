//! Delivers messages to other swarms from the outbox in the database. While a swarm is unreachable the delivery is retried with
//! growing pauses, until it succeeds or the sender is told.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use posthaste_engine::EngineError;
use posthaste_engine::nouns::{AgentId, Caller, Message, MessageId, PeerKind, RealmName, TaskId};
use posthaste_engine::verbs::deliveries::Dispatched;
use posthaste_engine::verbs::tasks::AddContributor;
use posthaste_wire::mail::answers::PeerAnswer;
use posthaste_wire::mail::{Interswarm, InterswarmRequest, MailAddress, MsgType, Owner, split};
use posthaste_wire::time::to_rfc3339;
use serde_json::Value;
use tokio::sync::Notify;

use super::messages::{MessageMeta, to_mail};
use super::registry;
use super::{Runtime, lock};

/// Messages per read of the outbox.
const OUTBOX_PAGE: usize = 200;
/// Maximum number of tasks whose messages are delivered to one swarm at once.
const MAX_CONCURRENT_TASKS: usize = 16;
/// Time limit of one delivery.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after the first failed delivery; it doubles each time.
const MIN_RETRY_PAUSE: Duration = Duration::from_millis(200);
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(60);
/// How long the delivery of responses is retried. Longer than for questions, because the asking agent waits for them and the
/// sender could do nothing about a failure.
const RESPONSE_RETRY_LIMIT: Duration = Duration::from_secs(24 * 3_600);
/// How often the outbox is read without a wake-up.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The outcome of a delivery.
enum Delivery {
    /// It was accepted.
    Taken,
    /// It was refused.
    Refused(String),
    /// The swarm is unreachable or busy.
    Later(String),
}

/// Messages, each with its recipients in one swarm.
type Messages = Vec<(Arc<Message>, Vec<AgentId>)>;

/// Messages in the outbox, with one recipient each.
type Waiting = Vec<(Arc<Message>, AgentId)>;

/// Messages that were not accepted at first, with the time of the first attempt.
type Tried = Arc<Mutex<HashMap<MessageId, Instant>>>;

impl Runtime {
    /// Delivers messages until the server stops.
    pub(super) async fn route(self) {
        let deliveries: Arc<Mutex<HashMap<RealmName, Arc<Notify>>>> = Arc::default();
        let tried = Tried::default();
        self.fail_unknown_peers().await;
        loop {
            let waiting = self.inner.engine.read(|view| view.awaited_peers(&Caller::office())).await;
            for peer in waiting.into_iter().flatten().filter(|peer| peer.kind == PeerKind::Server) {
                let news = Arc::new(Notify::new());
                match lock(&deliveries).entry(peer.name.clone()) {
                    Entry::Occupied(running) => {
                        running.get().notify_one();
                        continue;
                    }
                    Entry::Vacant(free) => drop(free.insert(news.clone())),
                }
                let (runtime, deliveries, tried) = (self.clone(), deliveries.clone(), tried.clone());
                tokio::spawn(async move {
                    runtime.deliver_to(&peer.name, &tried, &news).await;
                    lock(&deliveries).remove(&peer.name);
                    // A message may have been written during the last read.
                    runtime.inner.outbox.notify_one();
                });
            }
            tokio::select! {
                () = self.inner.stop.cancelled() => return,
                () = self.inner.outbox.notified() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }

    /// Fails messages for swarms that are no longer registered, and tells their senders.
    pub(super) async fn fail_unknown_peers(&self) {
        let office = Caller::office();
        let waiting = self.inner.engine.read(move |view| view.outbound(&office, 1_000)).await;
        for outbound in waiting.into_iter().flatten() {
            let peer = outbound.peer.clone();
            let known = self.inner.engine.read(move |view| view.peer(&Caller::office(), &peer)).await;
            if matches!(known, Ok(None)) {
                let why = "the swarm is not registered any more";
                self.settle_message(&outbound.peer, &outbound.message, &[outbound.agent], Some(why)).await;
            }
        }
    }

    /// Delivers the messages for one swarm until none is left.
    async fn deliver_to(&self, peer: &RealmName, tried: &Tried, news: &Notify) {
        let mut pause = MIN_RETRY_PAUSE;
        loop {
            let waiting = match self.waiting_for(peer).await {
                Ok(waiting) if waiting.is_empty() => return,
                Ok(waiting) => waiting,
                Err(error) => return tracing::warn!(%peer, %error, "the outbox cannot be read"),
            };
            let Some(entry) = self.inner.registry.get(peer.as_str()) else {
                if !self.adopt(peer).await {
                    for (message, agent) in waiting {
                        let why = Some("there is no such swarm");
                        self.settle_message(peer, &message, &[agent], why).await;
                    }
                }
                continue;
            };
            let tasks = by_task(waiting);
            let delivered = futures_util::stream::iter(tasks)
                .map(|(task, messages)| self.deliver_task(peer, &entry, task, messages, tried))
                .buffer_unordered(MAX_CONCURRENT_TASKS)
                .collect::<Vec<bool>>();
            let all_done = tokio::select! {
                () = self.inner.stop.cancelled() => return,
                done = delivered => done.into_iter().all(|done| done),
            };
            if all_done {
                pause = MIN_RETRY_PAUSE;
                continue;
            }
            tokio::select! {
                () = self.inner.stop.cancelled() => return,
                () = self.first_try(peer, tried, news) => pause = MIN_RETRY_PAUSE,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(MAX_RETRY_PAUSE),
            }
        }
    }

    async fn waiting_for(&self, peer: &RealmName) -> Result<Waiting, EngineError> {
        let name = peer.clone();
        self.inner.engine.read(move |view| view.outbound_to(&Caller::office(), &name, OUTBOX_PAGE)).await
    }

    /// Waits until there is a message that was not attempted yet, so that it does not wait for the retries of others.
    async fn first_try(&self, peer: &RealmName, tried: &Tried, news: &Notify) {
        loop {
            news.notified().await;
            let Ok(waiting) = self.waiting_for(peer).await else { continue };
            let firsts =
                by_task(waiting).into_iter().filter_map(|(_, messages)| Some(messages.first()?.0.id));
            let known = lock(tried);
            if firsts.into_iter().any(|first| !known.contains_key(&first)) {
                return;
            }
        }
    }

    /// Delivers the messages of one task in order. False if one of them has to be retried.
    async fn deliver_task(
        &self,
        peer: &RealmName,
        entry: &registry::Entry,
        task: Option<TaskId>,
        messages: Messages,
        tried: &Tried,
    ) -> bool {
        for (message, agents) in messages {
            let delivered = match &task {
                Some(task) => self.send_message(peer, entry, task, &message, &agents).await,
                None => Delivery::Refused("only messages of tasks go to other swarms".to_owned()),
            };
            let failure = match delivered {
                Delivery::Taken => None,
                Delivery::Refused(why) => Some(why),
                Delivery::Later(why) => {
                    let since = *lock(tried).entry(message.id).or_insert_with(Instant::now);
                    let limit = match message.kind == MsgType::Response.as_str() {
                        true => RESPONSE_RETRY_LIMIT,
                        false => Duration::from_secs_f64(self.swarm().interswarm_patience),
                    };
                    if since.elapsed() < limit {
                        tracing::debug!(%peer, why, "a message is retried later");
                        return false;
                    }
                    Some(why)
                }
            };
            lock(tried).remove(&message.id);
            self.settle_message(peer, &message, &agents, failure.as_deref()).await;
        }
        true
    }

    async fn send_message(
        &self,
        peer: &RealmName,
        entry: &registry::Entry,
        task: &TaskId,
        message: &Message,
        agents: &[AgentId],
    ) -> Delivery {
        let id = task.clone();
        let found = self.inner.engine.read(move |view| view.run_of_task(&Caller::office(), &id)).await;
        let (run, work) = match found {
            Ok(Some(found)) => found,
            Ok(None) => return Delivery::Refused("the task is not known".to_owned()),
            Err(error) => return Delivery::Later(error.to_string()),
        };
        let own = self.swarm().name.clone();
        let Some(owner) = Owner::parse(&work.owner) else {
            return Delivery::Refused("the task has no owner".to_owned());
        };
        let mut contributors: Vec<Owner> =
            work.contributors.iter().filter_map(|text| Owner::parse(text)).collect();
        let here = Owner::parse(&format!("{}@{own}", run.instance));
        for one in std::iter::once(owner.clone()).chain(here) {
            if !contributors.contains(&one) {
                contributors.push(one);
            }
        }
        let known_there = contributors.iter().any(|one| one.swarm == peer.as_str());
        let mut mail = to_mail(message, &run.name, &own);
        let payload = &mut mail.message;
        if split(&payload.sender.address).1.is_none()
            && payload.sender.address_type == posthaste_wire::mail::AddressType::Agent
        {
            payload.sender.address = format!("{}@{own}", payload.sender.address);
        }
        payload.sender_swarm = Some(own.clone());
        payload.recipients = agents.iter().map(|agent| MailAddress::agent(agent.as_str())).collect();
        payload.recipient_swarms = Some(vec![peer.to_string()]);
        let mut routing = payload.routing_info.take().unwrap_or_default();
        routing.insert("origin_swarm".into(), Value::from(own.as_str()));
        routing.insert("remote_swarm".into(), Value::from(peer.as_str()));
        payload.routing_info = Some(routing);
        let token = entry.token();
        let wrapper = Interswarm {
            message_id: message.id.to_string(),
            source_swarm: own.clone(),
            target_swarm: peer.to_string(),
            timestamp: to_rfc3339(message.at),
            msg_type: match mail.msg_type {
                MsgType::BroadcastComplete => MsgType::Broadcast,
                other => other,
            },
            payload: mail.message,
            task_owner: owner,
            task_contributors: contributors,
            auth_token: token.clone(),
            metadata: None,
        };
        let path = if known_there { "back" } else { "forward" };
        let url = format!("{}/interswarm/{path}", entry.base_url);
        let body = InterswarmRequest { message: wrapper };
        let agent = format!("MAIL-Interswarm-Router/{own}");
        let posted =
            self.inner.ways.named.post_json_as(&url, token.as_deref(), &body, &agent, DELIVERY_TIMEOUT).await;
        match posted {
            Ok(answer) if answer.status.is_success() => {
                let answer = PeerAnswer::read(&answer.body);
                self.note_runner(task, answer.local_runner.as_deref()).await;
                Delivery::Taken
            }
            // The swarm or a proxy before it is busy.
            Ok(answer) if matches!(answer.status.as_u16(), 429 | 502 | 503 | 504) => {
                Delivery::Later(format!("it answered {}", answer.status))
            }
            Ok(answer) => {
                let why = PeerAnswer::read(&answer.body).detail.chars().take(300).collect::<String>();
                Delivery::Refused(format!("it answered {}: {why}", answer.status))
            }
            Err(error) if error.is_passing() => Delivery::Later(error.to_string()),
            Err(error) => Delivery::Refused(error.to_string()),
        }
    }

    /// Adds the instance that works on the task in the other swarm to its contributors.
    async fn note_runner(&self, task: &TaskId, runner: Option<&str>) {
        let Some(runner) = runner.and_then(Owner::parse) else { return };
        if runner.swarm == self.swarm().name {
            return;
        }
        let add = AddContributor { task: task.clone(), contributor: runner.to_string() };
        if let Err(error) = self.inner.engine.submit(&Caller::office(), add).await {
            tracing::debug!(%task, %error, "a contributor is not noted");
        }
    }

    /// Removes a message from the outbox. If the delivery failed, the sender is told.
    async fn settle_message(
        &self,
        peer: &RealmName,
        message: &Message,
        agents: &[AgentId],
        failure: Option<&str>,
    ) {
        for agent in agents {
            let settled = Dispatched {
                peer: peer.clone(),
                agent: agent.clone(),
                message: message.id,
                failure: failure.map(str::to_owned),
            };
            if let Err(error) = self.inner.engine.submit(&Caller::office(), settled).await {
                tracing::warn!(%peer, %error, "a delivered message cannot be removed from the outbox");
            }
        }
        let (Some(why), Some(task)) = (failure, &message.task) else { return };
        if MessageMeta::of(message).notice {
            return tracing::info!(%peer, why, "a swarm was not told that a task has ended");
        }
        let id = task.clone();
        let found = self.inner.engine.read(move |view| view.run_of_task(&Caller::office(), &id)).await;
        if let Ok(Some((run, _))) = found {
            self.undelivered(&run.instance, &run.name, message, peer.as_str(), why).await;
        }
    }
}

/// Groups messages by task. Messages of one task are delivered in order, those of different tasks concurrently.
fn by_task(waiting: Waiting) -> Vec<(Option<TaskId>, Messages)> {
    let mut tasks: Vec<(Option<TaskId>, Messages)> = Vec::new();
    for (message, agent) in waiting {
        let at = tasks.iter().position(|(task, _)| *task == message.task);
        let at = at.unwrap_or_else(|| {
            tasks.push((message.task.clone(), Vec::new()));
            tasks.len() - 1
        });
        let messages = &mut tasks[at].1;
        match messages.last_mut() {
            Some((last, agents)) if last.id == message.id => agents.push(agent),
            _ => messages.push((message, vec![agent])),
        }
    }
    tasks
}
