//! Requests that the server makes itself: to other swarms, web hooks and models. One client with limits on time and size,
//! certificate checks and the egress policy ([`super::egress_policy`]).

use std::path::Path;
use std::time::Duration;

use futures_util::Stream;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, RequestBuilder, StatusCode, Url};
use serde::Serialize;

use super::egress_policy::{Egress, EgressPolicy, Resolver, is_forbidden};

/// Bytes of the largest response that is read.
const MAX_RESPONSE_BYTES: usize = 16 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes requests. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Outgoing {
    client: Client,
    scout: Resolver,
}

/// Two clients: one for addresses in the operator's configuration, one for addresses that callers name.
#[derive(Clone, Debug)]
pub struct OutgoingClients {
    pub written: Outgoing,
    pub named: Outgoing,
}

impl OutgoingClients {
    /// Both, with the authorities of a file if one is given.
    ///
    /// # Errors
    /// When the file holds no certificates.
    pub fn new(extra_ca: Option<&Path>, egress_policy: EgressPolicy) -> anyhow::Result<Self> {
        let written = Outgoing::new(extra_ca, egress_policy.written)?;
        let named = if egress_policy.named == egress_policy.written {
            written.clone()
        } else {
            Outgoing::new(extra_ca, egress_policy.named)?
        };
        Ok(Self { written, named })
    }
}

/// A response that was read completely.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Vec<u8>,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum OutgoingError {
    #[error("{0:?} is not an http or https address")]
    BadUrl(String),
    #[error("private addresses may not be reached")]
    Private,
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    #[error("did not answer in time")]
    Timeout,
    #[error("the answer is larger than {MAX_RESPONSE_BYTES} bytes")]
    TooLarge,
    #[error("{0}")]
    Other(String),
}

impl OutgoingError {
    /// Whether trying again later may help.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Timeout)
    }
}

impl From<reqwest::Error> for OutgoingError {
    fn from(error: reqwest::Error) -> Self {
        if is_forbidden(&error) {
            return Self::Private;
        }
        // The address may contain a secret, and the caller knows it.
        let error = error.without_url();
        let mut text = error.to_string();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(inner) = cause.source() {
            text = inner.to_string();
            cause = inner;
        }
        if error.is_timeout() {
            Self::Timeout
            // A response that is cut off counts as none.
        } else if error.is_connect() || error.is_request() || error.is_body() || error.is_decode() {
            Self::Unreachable(text)
        } else {
            Self::Other(text)
        }
    }
}

impl Outgoing {
    /// A client that trusts the usual authorities of the web and those of a file, if one is given.
    ///
    /// # Errors
    /// When the file holds no certificates.
    pub fn new(extra_ca: Option<&Path>, reach: Egress) -> anyhow::Result<Self> {
        Self::with(extra_ca, Resolver::new(reach), reach == Egress::Public)
    }

    fn with(extra_ca: Option<&Path>, scout: Resolver, direct: bool) -> anyhow::Result<Self> {
        // Redirects are not followed: they would take the token to an unchecked address.
        let mut client = Client::builder()
            .dns_resolver(std::sync::Arc::new(scout.clone()))
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .pool_idle_timeout(Duration::from_secs(60))
            .user_agent(concat!("posthaste/", env!("CARGO_PKG_VERSION")));
        if direct {
            // A proxy resolves names itself, without the egress policy.
            client = client.no_proxy();
        }
        if let Some(path) = extra_ca {
            let bytes = std::fs::read(path)?;
            let found = Certificate::from_pem_bundle(&bytes)?;
            anyhow::ensure!(!found.is_empty(), "{} holds no certificate", path.display());
            for certificate in found {
                client = client.add_root_certificate(certificate);
            }
        }
        Ok(Self { client: client.build()?, scout })
    }

    /// Posts JSON and reads the answer.
    pub async fn post_json(
        &self,
        url: &str,
        token: Option<&str>,
        body: &(impl Serialize + ?Sized),
        patience: Duration,
    ) -> Result<Answer, OutgoingError> {
        self.send(url, token, Some(body), None, patience).await
    }

    /// Posts JSON under another name than the usual and reads the answer.
    pub async fn post_json_as(
        &self,
        url: &str,
        token: Option<&str>,
        body: &(impl Serialize + ?Sized),
        agent: &str,
        patience: Duration,
    ) -> Result<Answer, OutgoingError> {
        self.send(url, token, Some(body), Some(agent), patience).await
    }

    /// Gets what is at an address.
    pub async fn get(&self, url: &str, patience: Duration) -> Result<Answer, OutgoingError> {
        self.send(url, None, None::<&()>, None, patience).await
    }

    /// Posts JSON and hands out the answer piece by piece.
    pub async fn stream_json<B: Serialize + ?Sized>(
        &self,
        url: &str,
        token: Option<&str>,
        body: &B,
        patience: Duration,
    ) -> Result<(StatusCode, impl Stream<Item = reqwest::Result<axum::body::Bytes>> + use<B>), OutgoingError>
    {
        let request = self.request(url, token, Some(body), None)?.timeout(patience);
        let answer = request.send().await?;
        Ok((answer.status(), answer.bytes_stream()))
    }

    async fn send(
        &self,
        url: &str,
        token: Option<&str>,
        body: Option<&(impl Serialize + ?Sized)>,
        agent: Option<&str>,
        patience: Duration,
    ) -> Result<Answer, OutgoingError> {
        let request = self.request(url, token, body, agent)?.timeout(patience);
        let mut answer = request.send().await?;
        let status = answer.status();
        let mut read = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            if read.len() + piece.len() > MAX_RESPONSE_BYTES {
                return Err(OutgoingError::TooLarge);
            }
            read.extend_from_slice(&piece);
        }
        Ok(Answer { status, body: read })
    }

    fn request(
        &self,
        url: &str,
        token: Option<&str>,
        body: Option<&(impl Serialize + ?Sized)>,
        agent: Option<&str>,
    ) -> Result<RequestBuilder, OutgoingError> {
        let bad = || OutgoingError::BadUrl(url.chars().take(200).collect());
        let parsed = Url::parse(url).map_err(|_| bad())?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
            return Err(bad());
        }
        // The connector does not look numbers up, so they are judged here.
        let host = parsed.host_str().unwrap_or_default();
        self.scout.check_literal(host).map_err(|_| OutgoingError::Private)?;
        let mut request = match body {
            Some(body) => self.client.post(parsed).json(body),
            None => self.client.get(parsed),
        };
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| OutgoingError::Other("the token cannot be sent".to_owned()))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(agent) = agent {
            request = request.header(HeaderName::from_static("user-agent"), agent);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::routing::{get, post};
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    /// Servers on two addresses of this machine and one port: the first counts as private here, the second as public.
    struct Two {
        port: u16,
        private_hits: Arc<AtomicUsize>,
    }

    const PRIVATE: &str = "127.0.0.1";
    const PUBLIC: &str = "127.0.0.2";

    fn first_is_forbidden(address: IpAddr) -> bool {
        address.to_canonical() == PRIVATE.parse::<IpAddr>().unwrap()
    }

    async fn two() -> Two {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let private_hits = Arc::new(AtomicUsize::new(0));
        let hits = private_hits.clone();
        let secret = get(async move || {
            hits.fetch_add(1, Ordering::SeqCst);
            "secret"
        });
        let inside = TcpListener::bind((PRIVATE, 0)).await.unwrap();
        let port = inside.local_addr().unwrap().port();
        let outside = TcpListener::bind((PUBLIC, port)).await.unwrap();
        tokio::spawn(async move { axum::serve(inside, Router::new().route("/", secret)).await });
        let moved = move || async move {
            (StatusCode::TEMPORARY_REDIRECT, [("location", format!("http://{PRIVATE}:{port}/"))])
        };
        let open = Router::new().route("/", get("public")).route("/moved", get(moved).merge(post(moved)));
        tokio::spawn(async move { axum::serve(outside, open).await });
        Two { port, private_hits }
    }

    /// A client whose names stand for one address when they are first asked for and for another ever after.
    fn client(first: &'static str, then: &'static str, asked: &Arc<AtomicUsize>) -> Outgoing {
        let asked = asked.clone();
        let lookup = Arc::new(move |_: String| {
            let now = if asked.fetch_add(1, Ordering::SeqCst) == 0 { first } else { then };
            let found = vec![now.parse().unwrap()];
            Box::pin(async move { Ok(found) })
                as std::pin::Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>>
        });
        Outgoing::with(None, Resolver::with(first_is_forbidden, lookup), true).unwrap()
    }

    const SOON: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn a_name_that_changes_its_answer_leads_nowhere_else() {
        let two = two().await;
        let asked = Arc::new(AtomicUsize::new(0));
        let client = client(PUBLIC, PRIVATE, &asked);
        let url = format!("http://rebind.test:{}/", two.port);
        // Judged and reached are the same address, although the name stands for another by now.
        assert_eq!(client.get(&url, SOON).await.unwrap().body, b"public");
        assert_eq!(asked.load(Ordering::SeqCst), 1, "looked up once for one connection");
        // A later connection asks again, and is refused by the new answer.
        let fresh = Outgoing { client: client_like(&client), ..client };
        let refused = fresh.get(&url, SOON).await.unwrap_err();
        assert!(matches!(refused, OutgoingError::Private), "{refused:?}");
        assert_eq!(two.private_hits.load(Ordering::SeqCst), 0);
    }

    /// Another pool under the same rules.
    fn client_like(of: &Outgoing) -> Client {
        Outgoing::with(None, of.scout.clone(), true).unwrap().client
    }

    #[tokio::test]
    async fn neither_numbers_nor_redirects_lead_to_private_addresses() {
        let two = two().await;
        let asked = Arc::new(AtomicUsize::new(0));
        let client = client(PUBLIC, PUBLIC, &asked);
        for host in [
            PRIVATE.to_owned(),
            format!("[::ffff:{PRIVATE}]"),
            "0x7f000001".to_owned(),
            "2130706433".to_owned(),
        ] {
            let url = format!("http://{host}:{}/", two.port);
            let refused = client.get(&url, SOON).await.unwrap_err();
            assert!(matches!(refused, OutgoingError::Private), "{host}: {refused:?}");
        }
        let url = format!("http://name.test:{}/moved", two.port);
        let moved = client.get(&url, SOON).await.unwrap();
        assert_eq!(moved.status, StatusCode::TEMPORARY_REDIRECT, "handed back, not followed");
        let moved = client.post_json(&url, Some("t"), &json!({}), SOON).await.unwrap();
        assert_eq!(moved.status, StatusCode::TEMPORARY_REDIRECT);
        assert_eq!(two.private_hits.load(Ordering::SeqCst), 0);
    }
}
