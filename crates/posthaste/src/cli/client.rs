//! Talking to a running office on the same machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use posthaste_engine::nouns::RealmName;
use serde_json::{Value, json};

use super::exit::{Exit, Failure, Refused};
use crate::doors::control;
use crate::keys::AdminKey;
use crate::serve::Whereabouts;

/// A running office, addressed with the key that lies in its data directory.
#[derive(Clone, Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    url: String,
    token: Option<String>,
    /// The data directory that named the address, if one did.
    found_in: Option<PathBuf>,
}

impl Client {
    /// The office that said it has this data directory.
    pub(super) fn find(data: &Path) -> Result<Self, Failure> {
        let office = Whereabouts::read(data).ok_or_else(|| {
            let text = format!("no office has said where it is in {}", data.display());
            Failure::new(Exit::Unreachable, text)
        })?;
        Ok(Self { found_in: Some(data.to_owned()), ..Self::at(office.url, data)? })
    }

    /// The same client for a server that may have been restarted at another address.
    pub(super) fn again(&self) -> Self {
        let moved = self.found_in.as_deref().and_then(Whereabouts::read).map(|office| office.url);
        Self { url: moved.unwrap_or_else(|| self.url.clone()), ..self.clone() }
    }

    /// The office at an address. Its key is sent along if this user may read it.
    pub(super) fn at(url: String, data: &Path) -> Result<Self, Failure> {
        Ok(Self::bare(url)?.with_token(AdminKey::read(data).ok()))
    }

    /// The office at an address, shown no token.
    pub(super) fn bare(url: String) -> Result<Self, Failure> {
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(3))
            .timeout(Duration::from_secs(30))
            // The office on this machine may show a certificate made for another name; the key never leaves loopback.
            .danger_accept_invalid_certs(is_loopback(&url))
            .no_proxy()
            .build()?;
        Ok(Self { http, url, token: None, found_in: None })
    }

    /// The same office, shown another token.
    pub(super) fn with_token(self, token: Option<String>) -> Self {
        Self { token, ..self }
    }

    /// Whether the office is on this machine.
    pub(super) fn is_local(&self) -> bool {
        is_loopback(&self.url)
    }

    /// What the office answers to a plain question.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        let request = self.http.get(format!("{}{path}", self.url));
        let (_, text) = self.send(request).await?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Takes a long answer piece by piece.
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
        let unreachable = |error: reqwest::Error| Failure::new(Exit::Unreachable, error);
        let mut response = request.send().await.map_err(unreachable)?;
        if !response.status().is_success() {
            let exit = match response.status() {
                reqwest::StatusCode::NOT_FOUND => Exit::NotFound,
                _ => Exit::Denied,
            };
            let text = response.text().await.unwrap_or_default();
            return Err(Failure::new(exit, format!("the office refused: {text}")));
        }
        while let Some(piece) = response.chunk().await.map_err(unreachable)? {
            take(&piece)?;
        }
        Ok(())
    }

    /// Makes sure that a realm is there; the office's default realm is where that is asked.
    pub(super) async fn open_realm(&self, realm: &RealmName) -> Result<(), Failure> {
        self.call_at("", "realm.open", json!({ "name": realm })).await.map(drop)
    }

    /// Calls one of the office's own methods.
    pub(super) async fn call(
        &self,
        realm: Option<&RealmName>,
        method: &str,
        params: Value,
    ) -> Result<Value, Failure> {
        let base = realm.map(|realm| format!("/r/{realm}")).unwrap_or_default();
        self.call_at(&base, method, params).await
    }

    async fn call_at(&self, base: &str, method: &str, params: Value) -> Result<Value, Failure> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": format!("{}{method}", control::PREFIX), "params": params });
        let request = self.http.post(format!("{}{base}{}", self.url, control::PATH)).body(body.to_string());
        let (status, text) = self.send(request).await?;
        let mut answer: Value = serde_json::from_str(&text)?;
        if let Some(error) = answer.get("error") {
            let message = error["message"].as_str().unwrap_or("the office refused");
            if status == reqwest::StatusCode::OK {
                return Err(Refused::failure(message, error.get("data")));
            }
            let exit = match status {
                reqwest::StatusCode::NOT_FOUND => Exit::NotFound,
                reqwest::StatusCode::UNAUTHORIZED | reqwest::StatusCode::FORBIDDEN => Exit::Denied,
                _ => Exit::Failed,
            };
            return Err(Failure::new(exit, message));
        }
        Ok(answer["result"].take())
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<(reqwest::StatusCode, String), Failure> {
        let request = match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let unreachable = |error: reqwest::Error| {
            // A connection that ends in the middle of an answer is a server that went away.
            let exit = if error.is_builder() { Exit::Failed } else { Exit::Unreachable };
            Failure::new(exit, format!("the office at {} does not answer: {error}", self.url))
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        Ok((status, response.text().await.map_err(unreachable)?))
    }
}

/// Whether an address is of this machine.
pub(super) fn is_loopback(url: &str) -> bool {
    let host = url.split("://").nth(1).unwrap_or_default();
    ["127.", "localhost", "[::1]"].iter().any(|start| host.starts_with(start))
}
