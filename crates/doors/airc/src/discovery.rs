//! The discovery document: where everything is, what is signed and how, and how often one may ask.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use posthaste_wire::airc::{CLOCK_WINDOW_MS, MAX_MESSAGE_BYTES, PROTOCOL_VERSION};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::context::Context;
use super::presence;
use posthaste_host::http::rate::Quota;

/// `GET /.well-known/airc`
pub(super) async fn document(context: Context) -> Response {
    let document = describe(&context);
    let tag: String =
        Sha256::digest(document.to_string())[..8].iter().map(|byte| format!("{byte:02x}")).collect();
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

fn describe(context: &Context) -> Value {
    let (base, prefix) = (context.base(), &context.prefix);
    let path = |tail: &str| format!("{prefix}{tail}");
    let rates = context.shared.rates();
    let per_minute = |quota: Quota| match quota.count {
        // Nobody counts; the member is there because clients look for it.
        0 => u64::from(u32::MAX),
        count => u64::from(count) * 60 / quota.span.as_secs().max(1),
    };
    let per_hour = |quota: Quota| match quota.count {
        0 => u64::from(u32::MAX),
        count => u64::from(count) * 3_600 / quota.span.as_secs().max(1),
    };
    let mut versions = json!({
        "0.2": { "identity": path("/identity"), "presence": path("/presence"), "messages": path("/messages"),
                 "consent": path("/consent"), "signing": "required" },
    });
    if context.safe_mode() {
        versions["0.1"] = json!({
            "identity": path("/api/identity"), "presence": path("/api/presence"), "messages": path("/api/messages"),
            "consent": path("/api/consent"), "signing": "optional",
        });
    }
    json!({
        "protocol": "AIRC",
        "protocol_version": PROTOCOL_VERSION,
        "registry_name": format!("posthaste {}", context.engine.realm()),
        "registry_id": context.engine.realm().as_str(),
        "registry_url": base,
        "endpoints": {
            "identity": path("/identity"),
            "register": path("/register"),
            "presence": path("/presence"),
            "messages": path("/messages"),
            "consent": path("/consent"),
            "health": path("/health"),
        },
        "versions": versions,
        "safe_mode": context.safe_mode(),
        "signing": {
            "algorithm": "Ed25519",
            "required": true,
            "canonicalization": "RFC 8785",
            "clock_window_seconds": CLOCK_WINDOW_MS / 1_000,
        },
        "auth": { "type": "bearer", "required": true, "token_endpoint": path("/auth/refresh") },
        "rate_limits": {
            "requests_per_minute": per_minute(rates.requests),
            "messages_per_minute": per_minute(rates.messages),
            "broadcasts_per_minute": per_minute(rates.broadcasts),
            "heartbeats_per_minute": per_minute(rates.heartbeats),
            "consent_requests_per_hour": per_hour(rates.consents),
            "registrations_per_hour": per_hour(rates.registrations),
        },
        "limits": { "max_payload_bytes": MAX_MESSAGE_BYTES, "presence_ttl_seconds": presence::LASTS / 1_000 },
        "capabilities": [
            "text", "context:thread", "context:mailbox", "context:mailbox_ack", "context:file_reservation",
            "context:reservation_conflict",
        ],
        "extensions": [{ "name": "threading-mailbox-reservations", "version": "0.1.0" }],
        "broadcast_targets": ["@contacts", "@public"],
        "federation_enabled": false,
        "relay_endpoint": null,
        "federation": { "enabled": false, "public": false, "relay_endpoint": null },
    })
}
