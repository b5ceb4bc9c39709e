//! Checks of the protocol's HTTP headers against the request.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use posthaste_wire::mcp::Revision;
use posthaste_wire::mcp::errors::HEADER_MISMATCH;
use posthaste_wire::mcp::headers::{METHOD, NAME, PROTOCOL_VERSION, decode, subject};
use posthaste_wire::rpc::{ErrorObject, INVALID_REQUEST};
use serde_json::value::RawValue;

/// A header's value, if it is there and is text.
pub(super) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Refuses a revision in the headers that the server does not know, unless the request itself names one.
pub(super) fn known_revision(headers: &HeaderMap, in_request: Option<&str>) -> Result<(), Box<Response>> {
    let Some(value) = headers.get(PROTOCOL_VERSION) else { return Ok(()) };
    let refused = |text: String| Err(Box::new((StatusCode::BAD_REQUEST, text).into_response()));
    match value.to_str() {
        Ok(date) if in_request.is_none() && Revision::parse(date).is_none() => {
            refused(format!("Bad Request: Unsupported MCP-Protocol-Version: {date}"))
        }
        Ok(_) => Ok(()),
        Err(_) => refused("Bad Request: Invalid MCP-Protocol-Version header encoding".to_owned()),
    }
}

/// Refuses a revision in the headers that is not known or has no sessions.
pub(super) fn with_sessions(headers: &HeaderMap) -> Result<(), Box<Response>> {
    known_revision(headers, None)?;
    match text(headers, PROTOCOL_VERSION).is_some_and(Revision::is_sessionless) {
        true => {
            let allow = [(header::ALLOW, "POST")];
            Err(Box::new((StatusCode::METHOD_NOT_ALLOWED, allow, "Method Not Allowed").into_response()))
        }
        false => Ok(()),
    }
}

/// Refuses a handshake whose headers contradict it.
pub(super) fn match_handshake(headers: &HeaderMap, requested: &str) -> Result<(), ErrorObject> {
    let Some(date) = text(headers, PROTOCOL_VERSION) else { return Ok(()) };
    if date != requested {
        let text = format!(
            "Invalid Request: MCP-Protocol-Version header ({date}) does not match initialize params.protocolVersion ({requested})"
        );
        return Err(ErrorObject::new(INVALID_REQUEST, text));
    }
    if !Revision::is_sessionless(date) {
        return Ok(());
    }
    let mut methods = headers.get_all(METHOD).iter();
    match (methods.next(), methods.next()) {
        (None, _) => Ok(()),
        (Some(_), Some(_)) => Err(mismatch(
            "multiple Mcp-Method header values supplied; initialize requires exactly one".to_owned(),
        )),
        (Some(value), None) if value == "initialize" => Ok(()),
        (Some(value), None) => {
            let found = String::from_utf8_lossy(value.as_bytes());
            Err(mismatch(format!("Mcp-Method header `{found}` does not match body method `initialize`")))
        }
    }
}

/// Refuses a request whose headers do not repeat its method and what it is about.
pub(super) fn match_request(
    headers: &HeaderMap,
    method: &str,
    params: Option<&RawValue>,
) -> Result<(), ErrorObject> {
    match only(headers, METHOD, "Mcp-Method")? {
        None => return Err(mismatch("missing required Mcp-Method header".to_owned())),
        Some(found) if found != method => {
            return Err(mismatch(format!(
                "Mcp-Method header `{found}` does not match body method `{method}`"
            )));
        }
        Some(_) => {}
    }
    let Some(subject) = subject(method, params) else { return Ok(()) };
    let Some(found) = only(headers, NAME, "Mcp-Name")? else {
        return Err(mismatch(format!("missing required Mcp-Name header for `{method}`")));
    };
    match decode(found) {
        None => Err(mismatch("Mcp-Name header is not valid Base64".to_owned())),
        Some(found) if found != subject => {
            Err(mismatch(format!("Mcp-Name header `{found}` does not match body value `{subject}`")))
        }
        Some(_) => Ok(()),
    }
}

/// Refuses a request whose headers name another revision than its `_meta`.
pub(super) fn match_revision(headers: &HeaderMap, in_request: &str) -> Result<(), ErrorObject> {
    match text(headers, PROTOCOL_VERSION) {
        None => {
            Err(mismatch("request _meta protocolVersion requires MCP-Protocol-Version header".to_owned()))
        }
        Some(date) if date != in_request => Err(mismatch(format!(
            "MCP-Protocol-Version header ({date}) does not match request _meta protocolVersion ({in_request})"
        ))),
        Some(_) => Ok(()),
    }
}

/// The one value of a header. Proxies that see several may go by another one than the server.
fn only<'h>(headers: &'h HeaderMap, name: &str, shown: &str) -> Result<Option<&'h str>, ErrorObject> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    match values.next() {
        Some(_) => Err(mismatch(format!("duplicate {shown} header"))),
        None => Ok(value.and_then(|value| value.to_str().ok())),
    }
}

fn mismatch(why: String) -> ErrorObject {
    ErrorObject::new(HEADER_MISMATCH, why)
}
