//! Telling clients that a resource has changed: which events of the history concern it, and when to say so.

use std::sync::Arc;
use std::time::Duration;

use posthaste_engine::nouns::{Caller, Event};
use posthaste_engine::{Feed, Filter, Start, Test};

use super::call::Call;
use super::errors::Problem;
use super::resources::Address;

/// Resources that one session or stream is told of.
pub(super) const MOST_WATCHED: usize = 64;
/// Events that come within this time are told as one.
const TOGETHER: Duration = Duration::from_millis(20);
/// A session without traffic is closed; a needless word now and then keeps one with listeners.
const REMINDER: Duration = Duration::from_secs(20 * 60);

/// A resource that is watched.
pub(super) struct Watch {
    feed: Feed,
}

/// Starts watching, for those who may read the resource.
pub(super) async fn watch(call: &Call, uri: &str) -> Result<Watch, Problem> {
    let address = Address::parse(uri)?;
    let project = call.project(address.project()?).await?;
    let own = call.own(&project)?;
    let kinds = |word: &str| Filter::Kinds(vec![word.to_owned()]);
    let (caller, filter) = match address.path.as_slice() {
        [kind, agent] if matches!(kind.as_str(), "inbox" | "outbox" | "mailbox" | "mailbox-with-commits") => {
            (call.act_with(&project, agent, address.token()).await?, kinds("message.*"))
        }
        [kind, _, agent] if kind == "views" => {
            (call.act_with(&project, agent, address.token()).await?, kinds("message.*"))
        }
        [kind, id] if kind == "thread" => {
            let id = id.clone();
            let about = move |event: &Event| {
                let conversation = event.message.as_ref().and_then(|message| message.conversation.as_ref());
                conversation.or_else(|| event.fact.conversation()).is_some_and(|found| found.as_str() == id)
            };
            (viewer(call, &project, &address, own).await?, Filter::Test(Test(Arc::new(about))))
        }
        [kind, id] if kind == "message" => {
            let number: i64 = id
                .parse()
                .map_err(|_| Problem::new("RESOURCE_NOT_FOUND", format!("'{id}' is not a message id")))?;
            let about =
                move |event: &Event| event.message.as_ref().is_some_and(|message| message.seq == number);
            (viewer(call, &project, &address, own).await?, Filter::Test(Test(Arc::new(about))))
        }
        [kind, _] if kind == "agents" => (own, kinds("agent.*")),
        [kind, _] if kind == "file_reservations" => (own, kinds("reservation.*")),
        _ => {
            return Err(Problem::new(
                "RESOURCE_NOT_FOUND",
                format!("{uri} does not change by itself; read it when needed"),
            ));
        }
    };
    Ok(Watch { feed: project.engine.follow(&caller, filter, Start::Now, 256).await? })
}

async fn viewer(
    call: &Call,
    project: &posthaste_host::projects::Project,
    address: &Address,
    own: Caller,
) -> Result<Caller, Problem> {
    match address.agent() {
        Some(agent) => call.act_with(project, agent, address.token()).await,
        None => Ok(own),
    }
}

impl Watch {
    /// Tells of every change until nobody listens any more.
    pub(super) async fn tell<F: Future<Output = bool>>(mut self, tell: impl Fn() -> F) {
        loop {
            match tokio::time::timeout(REMINDER, self.feed.next()).await {
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a resource is not watched any more");
                    return;
                }
                Ok(Ok(_)) => {
                    // What comes in one go is one change; a stream of changes is told ten times as one at most.
                    for _ in 0..10 {
                        if tokio::time::timeout(TOGETHER, self.feed.next()).await.is_err() {
                            break;
                        }
                    }
                }
                Err(_) => {}
            }
            if !tell().await {
                return;
            }
        }
    }
}
