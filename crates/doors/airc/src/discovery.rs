//! The discovery document: paths, signing rules, rate limits and capabilities.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use posthaste_wire::airc::{
    AuthRules, CAPABILITIES, CLOCK_WINDOW_MS, Discovery, Endpoints, Extension, Federation, Limits,
    MAX_MESSAGE_BYTES, PROTOCOL_VERSION, RateLimits, SigningRules, VersionPaths, Versions,
};
use sha2::{Digest, Sha256};

use super::context::Context;
use super::presence;
use posthaste_host::http::rate::Quota;

/// `GET /.well-known/airc`
pub(super) async fn document(context: Context) -> Response {
    let document = describe(&context);
    let tag: String = Sha256::digest(serde_json::to_vec(&document).unwrap_or_default())[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let tag = format!("\"{tag}\"");
    let known = context.headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut response = match known {
        Some(known) if known.split(',').any(|one| one.trim() == tag) => {
            StatusCode::NOT_MODIFIED.into_response()
        }
        _ => Json(document).into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

fn describe(context: &Context) -> Discovery {
    let path = |tail: &str| format!("{}{tail}", context.prefix);
    let rates = context.door.rates();
    // A limit that is off is shown as a large number, because clients expect the member.
    let per = |seconds: u64, quota: Quota| match quota.count {
        0 => u64::from(u32::MAX),
        count => u64::from(count) * seconds / quota.span.as_secs().max(1),
    };
    let (per_minute, per_hour) = (|quota| per(60, quota), |quota| per(3_600, quota));
    let version = |prefix: &str, signing: &'static str| VersionPaths {
        identity: path(&format!("{prefix}/identity")),
        presence: path(&format!("{prefix}/presence")),
        messages: path(&format!("{prefix}/messages")),
        consent: path(&format!("{prefix}/consent")),
        signing: signing.into(),
    };
    Discovery {
        protocol: "AIRC".into(),
        protocol_version: PROTOCOL_VERSION.into(),
        registry_name: format!("posthaste {}", context.engine.realm()),
        registry_id: context.engine.realm().to_string(),
        registry_url: context.base(),
        endpoints: Endpoints {
            identity: path("/identity"),
            register: path("/register"),
            presence: path("/presence"),
            messages: path("/messages"),
            consent: path("/consent"),
            health: path("/health"),
        },
        versions: Versions {
            full: version("", "required"),
            safe_mode: context.safe_mode().then(|| version("/api", "optional")),
        },
        safe_mode: context.safe_mode(),
        signing: SigningRules {
            algorithm: "Ed25519".into(),
            required: true,
            canonicalization: "RFC 8785".into(),
            clock_window_seconds: CLOCK_WINDOW_MS / 1_000,
        },
        auth: AuthRules { kind: "bearer".into(), required: true, token_endpoint: path("/auth/refresh") },
        rate_limits: RateLimits {
            requests_per_minute: per_minute(rates.requests),
            messages_per_minute: per_minute(rates.messages),
            broadcasts_per_minute: per_minute(rates.broadcasts),
            heartbeats_per_minute: per_minute(rates.heartbeats),
            consent_requests_per_hour: per_hour(rates.consents),
            registrations_per_hour: per_hour(rates.registrations),
        },
        limits: Limits {
            max_payload_bytes: MAX_MESSAGE_BYTES,
            presence_ttl_seconds: presence::VALID_FOR / 1_000,
        },
        capabilities: CAPABILITIES.map(Into::into).to_vec(),
        extensions: vec![Extension {
            name: "threading-mailbox-reservations".into(),
            version: "0.1.0".into(),
        }],
        broadcast_targets: vec!["@contacts".into(), "@public".into()],
        federation_enabled: false,
        relay_endpoint: None,
        federation: Federation { enabled: false, public: false, relay_endpoint: None },
    }
}
