//! Talking to a running server, on this machine or another.

use std::path::{Path, PathBuf};
use std::time::Duration;

use posthaste_engine::nouns::RealmName;
use posthaste_wire::rpc::{self, RequestId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::exit::{Exit, Failure, Refused};
use crate::serve::Whereabouts;
use posthaste_host::caller::NO_SUCH_REALM;
use posthaste_wire::control::{self, HttpError, RealmOpenParams, RealmOpenResult};

/// How long a server may take to accept a connection, and to answer.
const CONNECT: Duration = Duration::from_secs(3);
const ANSWER: Duration = Duration::from_secs(30);

/// A running server, and the token that it is shown. `target` chooses both.
#[derive(Clone, Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    url: String,
    token: Option<String>,
    /// The data directory that named the address, if one did.
    found_in: Option<PathBuf>,
}

impl Client {
    /// The same client for the server of a data directory, which may come back at another address.
    pub(super) fn found_in(self, data: &Path) -> Self {
        Self { found_in: Some(data.to_owned()), ..self }
    }

    /// The same client for a server that may have been restarted at another address. The token goes to no server but the
    /// one that has the data directory locked.
    pub(super) fn again(&self) -> Self {
        let moved = self.found_in.as_deref().and_then(Whereabouts::live).map(|running| running.url);
        Self { url: moved.unwrap_or_else(|| self.url.clone()), ..self.clone() }
    }

    /// The server at an address, shown no token.
    pub(super) fn bare(url: String) -> Result<Self, Failure> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .timeout(ANSWER)
            // The server on this machine may show a certificate made for another name; the key never leaves loopback.
            .danger_accept_invalid_certs(is_loopback(&url))
            .no_proxy()
            .build()?;
        Ok(Self { http, url, token: None, found_in: None })
    }

    /// The same server, shown another token.
    pub(super) fn with_token(self, token: Option<String>) -> Self {
        Self { token, ..self }
    }

    /// The JSON that the server answers to a GET request, with whatever status.
    pub(super) async fn get<R: DeserializeOwned>(&self, path: &str) -> Result<R, Failure> {
        let request = self.http.get(format!("{}{path}", self.url));
        let (_, text) = self.send(request).await?;
        serde_json::from_str(&text).map_err(|_| self.is_no_posthaste())
    }

    /// The failure for an answer that no posthaste would give.
    pub(super) fn is_no_posthaste(&self) -> Failure {
        let text = format!("what answers at {} is not a posthaste server", self.url);
        Failure::new(Exit::Unreachable, text)
    }

    /// Passes a long answer on in pieces.
    pub(super) async fn download(
        &self,
        path: &str,
        take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let request = self.http.get(format!("{}{path}", self.url)).timeout(Duration::from_secs(86_400));
        let request = match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let unreachable = |error: reqwest::Error| unreachable(&self.url, &error);
        let mut response = request.send().await.map_err(unreachable)?;
        if !response.status().is_success() {
            let exit = match response.status() {
                reqwest::StatusCode::NOT_FOUND => Exit::NotFound,
                _ => Exit::Denied,
            };
            let text = response.text().await.unwrap_or_default();
            let said = serde_json::from_str::<HttpError>(&text).map(|said| said.error.message);
            let why = said.as_deref().unwrap_or(text.trim());
            return Err(Failure::new(exit, format!("the server refused: {why}")));
        }
        while let Some(piece) = response.chunk().await.map_err(unreachable)? {
            take(&piece)?;
        }
        Ok(())
    }

    /// Creates a realm if it does not exist. The call goes to the server's default realm.
    pub(super) async fn open_realm(&self, realm: &RealmName) -> Result<(), Failure> {
        let params = RealmOpenParams { name: realm.to_string() };
        self.call_at::<RealmOpenResult>("", "realm.open", params).await.map(drop)
    }

    /// Calls one of the server's own methods.
    pub(super) async fn call<R: DeserializeOwned>(
        &self,
        realm: Option<&RealmName>,
        method: &str,
        params: impl Serialize,
    ) -> Result<R, Failure> {
        let base = realm.map(|realm| format!("/r/{realm}")).unwrap_or_default();
        let answer = self.call_at(&base, method, params).await;
        // The server does not tell strangers which realms it has, so it does not say which one is missing.
        answer.map_err(|failure| match (realm, failure.exit) {
            (Some(realm), Exit::NotFound) if failure.error.is::<NoSuchRealm>() => {
                Failure::new(Exit::NotFound, format!("there is no realm {realm} at {}", self.url))
            }
            _ => failure,
        })
    }

    async fn call_at<R: DeserializeOwned>(
        &self,
        base: &str,
        method: &str,
        params: impl Serialize,
    ) -> Result<R, Failure> {
        let method = format!("{}{method}", control::PREFIX);
        let body = rpc::write_request(&RequestId::from(1), &method, Some(&to_raw_value(&params)?));
        let request = self.http.post(format!("{}{base}{}", self.url, control::PATH)).body(body);
        let (status, text) = self.send(request).await?;
        let answer: Answer = serde_json::from_str(&text).map_err(|_| self.is_no_posthaste())?;
        match answer {
            Answer { error: Some(error), .. } if status == reqwest::StatusCode::OK => {
                Err(Refused::by(error.message, error.data.as_deref()))
            }
            Answer { error: Some(error), .. } => {
                let exit = match status {
                    reqwest::StatusCode::NOT_FOUND => Exit::NotFound,
                    reqwest::StatusCode::UNAUTHORIZED | reqwest::StatusCode::FORBIDDEN => Exit::Denied,
                    _ => Exit::Failed,
                };
                match error.code {
                    ErrorCode::Word(word) if word == NO_SUCH_REALM => {
                        Err(Failure { exit, error: NoSuchRealm(error.message).into() })
                    }
                    _ => Err(Failure::new(exit, error.message)),
                }
            }
            Answer { result: Some(result), .. } => {
                serde_json::from_str(result.get()).map_err(|error| self.is_another_version(&error))
            }
            Answer { result: None, error: None } => Err(self.is_no_posthaste()),
        }
    }

    /// The failure for a result whose members are not those that this program knows.
    fn is_another_version(&self, error: &serde_json::Error) -> Failure {
        let text = format!("the server at {} is of another version: {error}", self.url);
        Failure::new(Exit::Failed, text)
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<(reqwest::StatusCode, String), Failure> {
        let request = match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let unreachable = |error: reqwest::Error| unreachable(&self.url, &error);
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        Ok((status, response.text().await.map_err(unreachable)?))
    }
}

/// The answer to a call.
#[derive(Deserialize)]
struct Answer {
    result: Option<Box<RawValue>>,
    error: Option<AnswerError>,
}

/// The error of a method, whose code is a number; or of the path, whose code is a word.
#[derive(Deserialize)]
struct AnswerError {
    code: ErrorCode,
    message: String,
    data: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ErrorCode {
    Number(#[expect(dead_code, reason = "only words are compared")] i64),
    Word(String),
}

/// The server has no realm of the name in the request's path.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NoSuchRealm(String);

/// Why a server could not be asked, and what to do about it.
pub(super) fn unreachable(url: &str, error: &reqwest::Error) -> Failure {
    let mut cause: &dyn std::error::Error = error;
    let mut refused = false;
    while let Some(inner) = cause.source() {
        cause = inner;
        let kind = inner.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        refused |= kind == Some(std::io::ErrorKind::ConnectionRefused);
    }
    let text = match (refused, is_loopback(url)) {
        (true, true) => format!("{url}: connection refused; is it running? `posthaste serve` starts it"),
        (true, false) => format!("{url}: connection refused; is a server running there?"),
        (false, _) if error.is_timeout() => format!("{url}: no answer in time; is it the right address?"),
        (false, _) if error.is_connect() => format!("{url} cannot be reached: {cause}"),
        (false, _) => format!("{url}: the connection broke: {cause}"),
    };
    Failure::new(Exit::Unreachable, text)
}

/// Whether an address is of this machine.
pub(crate) fn is_loopback(url: &str) -> bool {
    let host = url.split("://").nth(1).unwrap_or_default();
    let host = host.split('/').next().unwrap_or_default();
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|c| c.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name).trim_matches(['[', ']']);
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_count_as_its_own() {
        for own in ["http://127.0.0.1:7678", "https://localhost", "http://[::1]:1", "http://127.0.0.1/x"] {
            assert!(is_loopback(own), "{own}");
        }
        for other in ["http://127.0.0.1.evil.test", "https://localhost.evil.test:1", "http://10.0.0.1"] {
            assert!(!is_loopback(other), "{other}");
        }
    }
}
