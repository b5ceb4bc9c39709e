//! Changes to resources: which events concern one, and when a client is told.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, Stream};
use posthaste_engine::nouns::{Caller, Event};
use posthaste_engine::{Feed, Filter, Start, Test};

use super::address::Address;
use super::call::Call;
use super::errors::DoorError;

/// Events that come within this time of each other count as one change.
const COALESCE_WITHIN: Duration = Duration::from_millis(20);
/// Further events that one change can take in, so that a steady flow of events is told of, too.
const MAX_COALESCED: usize = 10;

/// A resource that is watched.
pub(super) struct Watch {
    feed: Feed,
}

/// Starts watching a resource, if the caller may read it.
pub(super) async fn watch(call: &Call, uri: &str) -> Result<Watch, DoorError> {
    let address = Address::parse(uri)?;
    let project = call.project(address.project()?).await?;
    let own = call.own(&project)?;
    let kinds = |word: &str| Filter::Kinds(vec![word.to_owned()]);
    let (caller, filter) = match address.path.as_slice() {
        [kind, agent] if matches!(kind.as_str(), "inbox" | "outbox" | "mailbox" | "mailbox-with-commits") => {
            (call.act(&project, agent, address.token()).await?, kinds("message.*"))
        }
        [kind, _, agent] if kind == "views" => {
            (call.act(&project, agent, address.token()).await?, kinds("message.*"))
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
                .map_err(|_| DoorError::new("RESOURCE_NOT_FOUND", format!("'{id}' is not a message id")))?;
            let about =
                move |event: &Event| event.message.as_ref().is_some_and(|message| message.seq == number);
            (viewer(call, &project, &address, own).await?, Filter::Test(Test(Arc::new(about))))
        }
        [kind, _] if kind == "agents" => (own, kinds("agent.*")),
        [kind, _] if kind == "file_reservations" => (own, kinds("reservation.*")),
        _ => {
            return Err(DoorError::new(
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
) -> Result<Caller, DoorError> {
    match address.agent() {
        Some(agent) => call.act(project, agent, address.token()).await,
        None => Ok(own),
    }
}

impl Watch {
    /// An element for every change.
    pub(super) fn changes(self) -> impl Stream<Item = ()> + Send {
        stream::unfold(self.feed, async |mut feed| {
            if let Err(error) = feed.next().await {
                tracing::debug!(%error, "a resource is not watched any more");
                return None;
            }
            for _ in 0..MAX_COALESCED {
                if tokio::time::timeout(COALESCE_WITHIN, feed.next()).await.is_err() {
                    break;
                }
            }
            Some(((), feed))
        })
    }
}
