//! Requests that the office makes itself: to other swarms, web hooks and models. One client with limits on time and
//! size, certificates that are checked, and a rule about private addresses.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use futures_util::Stream;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, RequestBuilder, StatusCode, Url};
use serde_json::Value;

/// The largest answer that is read.
const LARGEST_ANSWER: usize = 16 << 20;
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// Which addresses the office may reach on its own account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Anything.
    Anywhere,
    /// Nothing on this machine or in private networks.
    Public,
}

/// Makes requests. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Outgoing {
    client: Client,
    reach: Reach,
}

/// An answer that was read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Vec<u8>,
}

/// Why there is no answer.
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
    #[error("the answer is larger than {LARGEST_ANSWER} bytes")]
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
        // The address may hold a secret, and whoever asked knows it.
        let error = error.without_url();
        let mut text = error.to_string();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(inner) = cause.source() {
            text = inner.to_string();
            cause = inner;
        }
        if error.is_timeout() {
            Self::Timeout
        } else if error.is_connect() || error.is_request() || error.is_body() {
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
    pub fn new(extra_ca: Option<&Path>, reach: Reach) -> anyhow::Result<Self> {
        let mut client = Client::builder()
            .connect_timeout(CONNECT_PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .pool_idle_timeout(Duration::from_secs(60))
            .user_agent(concat!("posthaste/", env!("CARGO_PKG_VERSION")));
        if let Some(path) = extra_ca {
            let bytes = std::fs::read(path)?;
            let found = Certificate::from_pem_bundle(&bytes)?;
            anyhow::ensure!(!found.is_empty(), "{} holds no certificate", path.display());
            for certificate in found {
                client = client.add_root_certificate(certificate);
            }
        }
        Ok(Self { client: client.build()?, reach })
    }

    /// Posts JSON and reads the answer.
    pub async fn post_json(
        &self,
        url: &str,
        token: Option<&str>,
        body: &Value,
        patience: Duration,
    ) -> Result<Answer, OutgoingError> {
        self.send(url, token, Some(body), None, patience).await
    }

    /// Posts JSON under another name than the usual and reads the answer.
    pub async fn post_json_as(
        &self,
        url: &str,
        token: Option<&str>,
        body: &Value,
        agent: &str,
        patience: Duration,
    ) -> Result<Answer, OutgoingError> {
        self.send(url, token, Some(body), Some(agent), patience).await
    }

    /// Gets what is at an address.
    pub async fn get(&self, url: &str, patience: Duration) -> Result<Answer, OutgoingError> {
        self.send(url, None, None, None, patience).await
    }

    /// Posts JSON and hands out the answer piece by piece.
    pub async fn stream_json(
        &self,
        url: &str,
        token: Option<&str>,
        body: &Value,
        patience: Duration,
    ) -> Result<(StatusCode, impl Stream<Item = reqwest::Result<axum::body::Bytes>> + use<>), OutgoingError>
    {
        let request = self.request(url, token, Some(body), None).await?.timeout(patience);
        let answer = request.send().await?;
        Ok((answer.status(), answer.bytes_stream()))
    }

    async fn send(
        &self,
        url: &str,
        token: Option<&str>,
        body: Option<&Value>,
        agent: Option<&str>,
        patience: Duration,
    ) -> Result<Answer, OutgoingError> {
        let request = self.request(url, token, body, agent).await?.timeout(patience);
        let mut answer = request.send().await?;
        let status = answer.status();
        let mut read = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            if read.len() + piece.len() > LARGEST_ANSWER {
                return Err(OutgoingError::TooLarge);
            }
            read.extend_from_slice(&piece);
        }
        Ok(Answer { status, body: read })
    }

    async fn request(
        &self,
        url: &str,
        token: Option<&str>,
        body: Option<&Value>,
        agent: Option<&str>,
    ) -> Result<RequestBuilder, OutgoingError> {
        let bad = || OutgoingError::BadUrl(url.chars().take(200).collect());
        let parsed = Url::parse(url).map_err(|_| bad())?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
            return Err(bad());
        }
        if self.reach == Reach::Public {
            check_public(&parsed).await?;
        }
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

/// Refuses names that lead into this machine or a private network.
async fn check_public(url: &Url) -> Result<(), OutgoingError> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or(443);
    let found = tokio::net::lookup_host((host, port))
        .await
        .map_err(|error| OutgoingError::Unreachable(error.to_string()))?;
    for address in found {
        if is_private(address.ip()) {
            return Err(OutgoingError::Private);
        }
    }
    Ok(())
}

fn is_private(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(v4) => {
            v4.is_loopback()
                || v4.is_private()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.octets()[0] == 100 && (64..128).contains(&v4.octets()[1])
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_told_from_public_ones() {
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "::1",
            "fe80::1",
            "fd00::1",
            "::ffff:127.0.0.1",
            "0.0.0.0",
        ] {
            assert!(is_private(private.parse().unwrap()), "{private}");
        }
        for public in ["1.1.1.1", "100.63.0.1", "2606:4700::1111"] {
            assert!(!is_private(public.parse().unwrap()), "{public}");
        }
    }
}
