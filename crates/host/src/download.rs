//! A file of a message as an HTTP response, which browsers save and neither show nor run.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::attachments::{AttachError, Attached};
use crate::http::errors::answer as refuse;

pub fn answer(file: &Attached, bytes: Vec<u8>) -> Response {
    let value = |text: String| HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("attachment"));
    let headers = [
        (header::CONTENT_TYPE, value(file.media_type.clone())),
        (header::CONTENT_DISPOSITION, value(disposition(&file.name))),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-store")),
    ];
    (headers, bytes).into_response()
}

pub fn failure(error: &AttachError) -> Response {
    let (status, word) = match error {
        AttachError::Missing => (StatusCode::NOT_FOUND, "no_such_attachment"),
        AttachError::TooMany | AttachError::Refused { .. } => (StatusCode::BAD_REQUEST, "attachment_refused"),
        AttachError::Engine(_) | AttachError::Failed => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    refuse(status, word, &error.to_string())
}

/// The name in both forms of RFC 6266: ASCII, and percent-encoded UTF-8.
fn disposition(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_. ".contains(c) { c } else { '_' };
    let ascii: String = name.chars().map(plain).collect();
    let whole: String = name
        .bytes()
        .map(|byte| match byte {
            b'-' | b'_' | b'.' => char::from(byte).to_string(),
            _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{whole}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_header() {
        assert_eq!(disposition("a.txt"), "attachment; filename=\"a.txt\"; filename*=UTF-8''a.txt");
        assert_eq!(
            disposition("a\"; x=é.txt"),
            "attachment; filename=\"a__ x__.txt\"; filename*=UTF-8''a%22%3B%20x%3D%C3%A9.txt"
        );
    }
}
