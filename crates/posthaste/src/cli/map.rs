//! `posthaste map`: MAP on standard input and output, through a server or on the data directory itself.

use std::path::Path;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use posthaste_engine::limits::Limits;
use posthaste_engine::nouns::RealmName;
use posthaste_engine::{Fault, Office};
use posthaste_wire::rpc;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_util::sync::CancellationToken;

use super::args::{GlobalArgs, RealmArgs};
use super::client::is_loopback;
use super::exit::{Exit, Failure};
use super::runtime;
use super::target::{Server, Target};
use crate::config::Config;
use crate::doors;
use crate::serve::held;
use posthaste_host::Host;
use posthaste_host::caller::Identity;
use posthaste_host::http::egress_policy::{Egress, Resolver};
use posthaste_host::http::tls_client::{Endpoint, TrustedRoots};
use posthaste_host::keys::AdminKey;
use posthaste_host::safe_open::make_private_directory;

/// How long answers are waited for once the input has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(60);

pub(super) fn run(global: &GlobalArgs, realm: &RealmArgs) -> Result<(), Failure> {
    let target = Target::of(global)?;
    let config = Config::load(global, &realm.office(), &|name| std::env::var_os(name))?;
    let runtime = runtime()?;
    let done = runtime.block_on(serve(&config, &target));
    // Standard input is read on a thread that cannot be interrupted; there is nothing left for it to do.
    runtime.shutdown_background();
    done
}

async fn serve(config: &Config, target: &Target) -> Result<(), Failure> {
    let data = &config.data.value;
    let named = target.realm(config);
    let ca = config.tls_ca.value.as_deref();
    if let Some(server) = target.server(data)? {
        return attach(&server, named.as_ref(), ca).await;
    }
    make_private_directory(data)?;
    let (office, guard) = match Office::open(data, Limits::default()) {
        Ok(opened) => opened,
        Err(fault @ Fault::Locked { .. }) => match target.server(data)? {
            Some(server) => return attach(&server, named.as_ref(), ca).await,
            None => return Err(held(fault)),
        },
        Err(fault) => return Err(held(fault)),
    };
    let admin = AdminKey::open(data)?;
    let realm = named.unwrap_or_else(|| config.realm.value.clone());
    let engine = office.realm(&realm).await.map_err(anyhow::Error::from)?;
    let features = config.features();
    let stop = CancellationToken::new();
    let host = Host::new(office, realm, admin, features, stop.clone());
    let identity = match &target.token {
        None => Ok(Identity::operator()),
        Some(token) => host.identify(&engine, Some(token), "map").await,
    };
    let served = match identity {
        Ok(identity) => {
            posthaste_map::serve(
                doors::map_door(&host),
                engine,
                identity,
                tokio::io::stdin(),
                tokio::io::stdout(),
            )
            .await;
            Ok(())
        }
        Err(error) => Err(Failure::new(Exit::Denied, error)),
    };
    stop.cancel();
    guard.close().await;
    served
}

/// Forwards lines to a server and its frames back.
async fn attach(server: &Server, realm: Option<&RealmName>, ca: Option<&Path>) -> Result<(), Failure> {
    let (url, token) = (server.url.as_str(), server.token.as_ref());
    let unreachable =
        |why: String| Failure::new(Exit::Unreachable, format!("{url} cannot be reached: {why}"));
    let realm = realm.map(|realm| format!("/r/{realm}")).unwrap_or_default();
    let endpoint = Endpoint::parse(&format!("{url}{realm}/map"))
        .ok_or_else(|| unreachable("that is no address".to_owned()))?;
    let mut request =
        endpoint.url.as_str().into_client_request().map_err(|error| unreachable(error.to_string()))?;
    if let Some(token) = token {
        let value =
            format!("Bearer {token}").parse().map_err(|_| unreachable("the token is damaged".to_owned()))?;
        request.headers_mut().insert("authorization", value);
    }
    let trust = match is_loopback(url) {
        true => TrustedRoots::of_this_machine(),
        false => TrustedRoots::load(ca).map_err(|error| unreachable(error.to_string()))?,
    };
    let stream =
        endpoint.dial(&trust, &Resolver::new(Egress::Anywhere)).await.map_err(|error| {
            match error.kind() {
                std::io::ErrorKind::ConnectionRefused => {
                    let text =
                        format!("{url}: connection refused; is it running? `posthaste serve` starts it");
                    Failure::new(Exit::Unreachable, text)
                }
                _ => unreachable(error.to_string()),
            }
        })?;
    let (socket, _) =
        tokio_tungstenite::client_async(request, stream).await.map_err(|error| match error {
            tokio_tungstenite::tungstenite::Error::Http(answer) => {
                let body = answer.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                let exit = if answer.status().as_u16() == 404 { Exit::Usage } else { Exit::Denied };
                Failure::new(exit, format!("{url} refused ({}): {}", answer.status(), body.trim()))
            }
            error => unreachable(error.to_string()),
        })?;
    let (mut sink, mut frames) = socket.split();
    // Calls that are still to be answered. A WebSocket that is closing carries no answers, so the end waits for them.
    let open = watch::Sender::new(0_i64);
    let writing = async {
        let mut out = tokio::io::stdout();
        while let Some(Ok(frame)) = frames.next().await {
            if let Message::Text(text) = frame {
                let answers = rpc::parse(&text, usize::MAX).iter().filter(|item| is_answer(item)).count();
                open.send_modify(|open| *open -= i64::try_from(answers).unwrap_or(0));
                out.write_all(text.as_bytes()).await?;
                out.write_all(b"\n").await?;
                out.flush().await?;
            }
        }
        std::io::Result::Ok(())
    };
    let reading = async {
        let mut lines = Box::pin(posthaste_map::lines(tokio::io::stdin()));
        while let Some(line) = lines.next().await {
            let calls = rpc::parse(&line, usize::MAX).iter().filter(|item| wants_answer(item)).count();
            open.send_modify(|open| *open += i64::try_from(calls).unwrap_or(0));
            if sink.send(Message::text(line)).await.is_err() {
                return;
            }
        }
        let _ = tokio::time::timeout(LAST_ANSWERS, open.subscribe().wait_for(|open| *open <= 0)).await;
        // An error does not matter: the connection ends either way.
        let _ = sink.send(Message::Close(None)).await;
    };
    let (_, written) = tokio::join!(reading, writing);
    Ok(written?)
}

fn wants_answer(item: &rpc::Item) -> bool {
    let asks = |message: &rpc::Message| {
        matches!(message, rpc::Message::Request { .. } | rpc::Message::Invalid { .. })
    };
    match item {
        rpc::Item::Single(message) => asks(message),
        rpc::Item::Batch(messages) => messages.iter().any(asks),
    }
}

fn is_answer(item: &rpc::Item) -> bool {
    match item {
        rpc::Item::Single(message) => matches!(message, rpc::Message::Response { .. }),
        rpc::Item::Batch(_) => true,
    }
}
