//! A client of one registry: requests with a token, messages with a signature.

use std::collections::HashMap;
use std::time::Duration;

use posthaste_engine::stamp;
use posthaste_wire::airc::{
    CAPABILITIES, ChallengeRequest, Envelope, EnvelopeDraft, RefreshRequest, RegisterRequest, SignedEnvelope,
};
use posthaste_wire::signing::{PublicKey, SecretKey, sign_envelope};
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde_json::Value;

use super::super::exit::{Exit, Failure};
use super::keyring::{Keyring, Session};

/// A registry, called as one identity.
#[derive(Debug)]
pub(super) struct Registry {
    http: reqwest::Client,
    url: String,
    keyring: Keyring,
    key: SecretKey,
    token: Option<String>,
    keys: HashMap<String, Option<PublicKey>>,
}

/// A registry's response.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: Value,
}

impl Reply {
    /// The body, if the registry did what was asked.
    pub(super) fn done(self) -> Result<Value, Failure> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let exit = match self.status.as_u16() {
            401 | 403 => Exit::Denied,
            400 => Exit::Usage,
            404 => Exit::NotFound,
            409 | 413 => Exit::Refused,
            _ => Exit::Failed,
        };
        let code = self.body["error"].as_str().unwrap_or("refused");
        let why = self.body["message"].as_str().unwrap_or("the registry did not say why");
        Err(Failure::new(exit, format!("{code}: {why}")))
    }
}

impl Registry {
    pub(super) fn new(url: &str, keyring: Keyring, key: SecretKey) -> Result<Self, Failure> {
        let url = url.trim_end_matches('/').to_owned();
        let loopback = ["//127.", "//localhost", "//[::1]"].iter().any(|start| url.contains(start));
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(30))
            .danger_accept_invalid_certs(loopback)
            .no_proxy()
            .build()?;
        let session = keyring.session();
        // A token is sent only to the registry that issued it.
        let token = Some(session.token).filter(|token| !token.is_empty() && session.registry == url);
        Ok(Self { http, url, keyring, key, token, keys: HashMap::new() })
    }

    pub(super) fn handle(&self) -> &str {
        self.keyring.handle.as_str()
    }

    pub(super) fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// Registers the identity and keeps the token.
    pub(super) async fn register(
        &mut self,
        name: Option<&str>,
        recovery: &SecretKey,
    ) -> Result<Value, Failure> {
        let proof = self.key.sign(self.handle().as_bytes()).to_string();
        let body = RegisterRequest {
            handle: self.handle().to_owned(),
            display_name: name.map(str::to_owned),
            public_key: self.key.public().to_string(),
            recovery_key: recovery.public().to_string(),
            capabilities: CAPABILITIES.map(Into::into).to_vec(),
            proof,
        };
        let reply = self.ask(Method::POST, "/identity", Some(to_text(&body)?)).await?;
        // The handle is this identity's already if the registry has the same key for it.
        if reply.status == StatusCode::CONFLICT
            && self.published(self.handle().to_owned().as_str()).await? == Some(self.key.public())
        {
            self.log_in().await?;
            return self.ask(Method::GET, &format!("/identity/{}", self.handle()), None).await?.done();
        }
        let answer = reply.done()?;
        self.keep(answer["session_token"].as_str())?;
        Ok(answer["identity"].clone())
    }

    /// Gets a new token by signing a challenge with the key.
    async fn log_in(&mut self) -> Result<(), Failure> {
        let body = to_text(&ChallengeRequest { handle: self.handle().to_owned() })?;
        let answer = self.ask(Method::POST, "/register/challenge", Some(body)).await?.done()?;
        let challenge = answer["challenge"].as_str().unwrap_or_default();
        let body = RefreshRequest {
            handle: self.handle().to_owned(),
            challenge: challenge.to_owned(),
            signature: self.key.sign(challenge.as_bytes()).to_string(),
        };
        let answer = self.ask(Method::POST, "/auth/refresh", Some(to_text(&body)?)).await?.done()?;
        self.keep(answer["session_token"].as_str())
    }

    fn keep(&mut self, token: Option<&str>) -> Result<(), Failure> {
        self.token = token.map(str::to_owned);
        let session = Session { registry: self.url.clone(), token: token.unwrap_or_default().to_owned() };
        self.keyring.keep_session(&session)
    }

    /// Requests a path as the identity.
    pub(super) async fn get(&mut self, path: &str) -> Result<Reply, Failure> {
        self.call(Method::GET, path, None).await
    }

    /// Posts a body as the identity.
    pub(super) async fn post(&mut self, path: &str, body: &impl Serialize) -> Result<Reply, Failure> {
        self.call(Method::POST, path, Some(to_text(body)?)).await
    }

    /// Calls as the identity; an expired token is replaced once.
    async fn call(&mut self, method: Method, path: &str, body: Option<String>) -> Result<Reply, Failure> {
        if self.token.is_none() {
            self.log_in().await?;
        }
        let reply = self.ask(method.clone(), path, body.clone()).await?;
        if reply.status != StatusCode::UNAUTHORIZED || reply.body["error"] != "unauthorized" {
            return Ok(reply);
        }
        self.token = None;
        self.log_in().await?;
        self.ask(method, path, body).await
    }

    async fn ask(&self, method: Method, path: &str, body: Option<String>) -> Result<Reply, Failure> {
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let unreachable = |error: reqwest::Error| {
            let exit =
                if error.is_connect() || error.is_timeout() { Exit::Unreachable } else { Exit::Failed };
            Failure::new(exit, format!("the registry at {} does not answer: {error}", self.url))
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let text = response.text().await.map_err(unreachable)?;
        Ok(Reply { status, body: serde_json::from_str(&text).unwrap_or(Value::Null) })
    }

    /// Signs and sends a message.
    pub(super) async fn send(
        &mut self,
        to: &str,
        payload: Value,
        thread_id: Option<String>,
    ) -> Result<Reply, Failure> {
        let envelope = EnvelopeDraft {
            v: "0.2".into(),
            id: format!("msg_{}", &stamp::secret()[..32]),
            from: self.handle().to_owned(),
            to: to.to_owned(),
            timestamp: stamp::now() / 1_000,
            nonce: stamp::secret()[..32].to_owned(),
            payload,
            thread_id,
        };
        let signature = sign_envelope(&to_text(&envelope)?, &self.key)?.to_string();
        self.post("/messages", &SignedEnvelope { envelope, signature }).await
    }

    /// The key that the registry shows for a handle; nothing if there is none.
    pub(super) async fn published(&mut self, handle: &str) -> Result<Option<PublicKey>, Failure> {
        if let Some(known) = self.keys.get(handle) {
            return Ok(*known);
        }
        let reply = self.ask(Method::GET, &format!("/identity/{handle}"), None).await?;
        let key = reply.body["public_key"].as_str().and_then(|text| text.parse().ok());
        self.keys.insert(handle.to_owned(), key);
        Ok(key)
    }

    /// Whether a message is what its sender signed, without the registry's `delivery` member.
    pub(super) async fn is_authentic(&mut self, message: &Value) -> Result<bool, Failure> {
        let mut message = message.clone();
        if let Value::Object(members) = &mut message {
            members.shift_remove("delivery");
        }
        let Ok(envelope) = Envelope::parse(&message.to_string()) else { return Ok(false) };
        let Some(from) = envelope.from.clone() else { return Ok(false) };
        let key = self.published(from.trim_start_matches('@')).await?;
        Ok(key.is_some_and(|key| envelope.verify(&key).is_ok()))
    }
}

fn to_text(body: &impl Serialize) -> Result<String, Failure> {
    Ok(serde_json::to_string(body)?)
}
