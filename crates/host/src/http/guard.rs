//! Host and Origin: a web page must not reach a local server through the user's browser.
//!
//! A page from anywhere can make its own name resolve to 127.0.0.1 (DNS rebinding) and then counts as
//! "same origin" with the server. The browser still sends the name that it connects to (`Host`) and the
//! page that sends the request (`Origin`), and the page can change neither.

use std::net::{IpAddr, Ipv6Addr};

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, uri::Authority};
use axum::response::{IntoResponse, Response};

use super::errors::answer;

/// Allowed host names and origins.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    loopback: bool,
    hosts: Vec<Name>,
    origins: Vec<Page>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stop {
    /// No Host, several, or one that is not a host.
    BadHost,
    /// A Host that is not allowed.
    ForeignHost,
    /// An Origin that is not allowed.
    ForeignOrigin,
}

impl Guard {
    /// `loopback`: the listener is reachable from this machine only.
    /// `hosts`: further names (`mail.example`, `mail.example:8080`); without a port, any port.
    /// `origins`: further pages (`https://app.example`, `http://app.example:*`).
    pub fn new(loopback: bool, hosts: &[String], origins: &[String]) -> Result<Self, String> {
        let host = |text: &String| Name::parse(text).ok_or_else(|| format!("`{text}` is not a host name"));
        let page = |text: &String| {
            Page::pattern(text).ok_or_else(|| {
                format!("`{text}` is not an origin like https://app.example or http://app.example:*")
            })
        };
        Ok(Self {
            loopback,
            hosts: hosts.iter().map(host).collect::<Result<_, _>>()?,
            origins: origins.iter().map(page).collect::<Result<_, _>>()?,
        })
    }

    /// Decides on one request. `authority` is the one of the request target (HTTP/2, absolute form).
    pub fn check(&self, authority: Option<&Authority>, headers: &HeaderMap) -> Result<(), Stop> {
        let header = single(headers, &header::HOST).map_err(|()| Stop::BadHost)?;
        // Where a request names its host twice, both names must pass: a door or a proxy may use
        // either.
        let spoken = header.into_iter().chain(authority.map(Authority::as_str));
        let names = spoken.map(Name::parse).collect::<Option<Vec<_>>>().ok_or(Stop::BadHost)?;
        let name = names.last().ok_or(Stop::BadHost)?;
        if !names.iter().all(|name| self.knows(name)) {
            return Err(Stop::ForeignHost);
        }
        match single(headers, &header::ORIGIN).map_err(|()| Stop::ForeignOrigin)? {
            Some(origin) if !self.welcomes(origin, name) => Err(Stop::ForeignOrigin),
            _ => Ok(()),
        }
    }

    fn knows(&self, name: &Name) -> bool {
        if name.is_loopback() || self.hosts.iter().any(|allowed| allowed.covers(name)) {
            return true;
        }
        // On a public address a server with configured names answers to those only; without, it
        // cannot know them and relies on its tokens.
        !self.loopback && self.hosts.is_empty()
    }

    fn welcomes(&self, origin: &str, host: &Name) -> bool {
        // `null` (a sandboxed frame, a file) is never allowed.
        let Some(page) = Page::parse(origin) else { return false };
        let same = page.name.host == host.host && page.port() == host.port.or(default_port(&page.scheme));
        same || (self.loopback && page.name.is_loopback())
            || self.origins.iter().any(|allowed| allowed.covers(&page))
    }
}

/// Whether a host, with or without a port, is a name of this machine alone.
pub fn is_loopback_name(host: &str) -> bool {
    Name::parse(host).is_some_and(|name| name.is_loopback())
}

/// Applies [`Guard::check`]; a refused request gets 400, 421 or 403.
pub fn guard(guard: &Guard, request: &Request) -> Option<Response> {
    let stop = guard.check(request.uri().authority(), request.headers()).err()?;
    let said = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    Some(match stop {
        Stop::BadHost => {
            answer(StatusCode::BAD_REQUEST, "bad_host", "the request needs exactly one valid Host header")
        }
        Stop::ForeignHost => {
            let host = request.uri().authority().map(Authority::as_str).or(said(header::HOST)).unwrap_or("?");
            tracing::warn!(%host, "refused a request for a host that is not allowed");
            let message =
                format!("this server does not answer to `{host}`; name it in allowed_hosts if it should");
            answer(StatusCode::MISDIRECTED_REQUEST, "host_not_allowed", &message)
        }
        // A preflight without CORS headers in its response tells the browser not to send the request.
        Stop::ForeignOrigin if is_preflight(request) => StatusCode::NO_CONTENT.into_response(),
        Stop::ForeignOrigin => {
            let origin = said(header::ORIGIN).unwrap_or("?");
            tracing::warn!(%origin, "refused a request from a page that is not allowed");
            let message = format!(
                "pages from `{origin}` may not talk to this server; name it in allowed_origins if they should"
            );
            answer(StatusCode::FORBIDDEN, "origin_not_allowed", &message)
        }
    })
}

fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// A host in lower case without a final dot, and a port if one was said.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Name {
    host: String,
    port: Option<u16>,
}

impl Name {
    fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            // A colon inside brackets belongs to an IPv6 address.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok()?)),
            _ => (text, None),
        };
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let good = match bracketed {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(is_allowed),
        };
        good.then_some(Self { host, port })
    }

    fn is_loopback(&self) -> bool {
        let address = self.host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
    }

    fn covers(&self, other: &Self) -> bool {
        self.host == other.host && (self.port.is_none() || self.port == other.port)
    }
}

/// Scheme, host and port of a page.
#[derive(Clone, Debug)]
struct Page {
    scheme: String,
    name: Name,
    any_port: bool,
}

impl Page {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, name) = text.split_once("://")?;
        let good =
            !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        let name = good.then(|| Name::parse(name))??;
        Some(Self { scheme: scheme.to_ascii_lowercase(), name, any_port: false })
    }

    fn pattern(text: &str) -> Option<Self> {
        match text.strip_suffix(":*") {
            Some(rest) => Some(Self { any_port: true, ..Self::parse(rest)? }),
            None => Self::parse(text),
        }
    }

    fn port(&self) -> Option<u16> {
        self.name.port.or(default_port(&self.scheme))
    }

    fn covers(&self, other: &Self) -> bool {
        self.scheme == other.scheme
            && self.name.host == other.name.host
            && (self.any_port || self.port() == other.port())
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// The header's one value; an error if there are several or if it is not text.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.to_str().map_err(drop)).transpose()?;
    if values.next().is_some() { Err(()) } else { Ok(first) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(guard: &Guard, host: Option<&str>, origin: Option<&str>) -> Result<(), Stop> {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        }
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        guard.check(None, &headers)
    }

    #[test]
    fn hosts_of_a_loopback_server() {
        let guard = Guard::new(true, &["post.test".into(), "port.test:99".into()], &[]).unwrap();
        let table = [
            (Some("localhost"), Ok(())),
            (Some("LocalHost:7678"), Ok(())),
            (Some("localhost."), Ok(())),
            (Some("127.0.0.1:1"), Ok(())),
            (Some("127.9.9.9"), Ok(())),
            (Some("[::1]"), Ok(())),
            (Some("[::1]:7678"), Ok(())),
            (Some("[::ffff:127.0.0.1]:7678"), Ok(())),
            (Some("post.test:4000"), Ok(())),
            (Some("port.test:99"), Ok(())),
            (Some("port.test:98"), Err(Stop::ForeignHost)),
            (Some("evil.test"), Err(Stop::ForeignHost)),
            (Some("localhost.evil.test"), Err(Stop::ForeignHost)),
            (Some("127.0.0.1.evil.test:7678"), Err(Stop::ForeignHost)),
            (Some("192.168.1.5"), Err(Stop::ForeignHost)),
            (Some("0.0.0.0"), Err(Stop::ForeignHost)),
            (Some("::1"), Err(Stop::BadHost)),
            (Some("localhost:http"), Err(Stop::BadHost)),
            (Some("evil.test/localhost"), Err(Stop::BadHost)),
            (Some("ann@localhost"), Err(Stop::BadHost)),
            (Some(""), Err(Stop::BadHost)),
            (None, Err(Stop::BadHost)),
        ];
        for (host, expected) in table {
            assert_eq!(ask(&guard, host, None), expected, "{host:?}");
        }
    }

    #[test]
    fn pages_of_a_loopback_server() {
        let origins = ["https://app.test".into(), "http://dev.test:*".into()];
        let guard = Guard::new(true, &[], &origins).unwrap();
        let table = [
            ("http://localhost:7678", true),
            ("http://localhost:5173", true),
            ("https://127.0.0.1", true),
            ("http://[::1]:80", true),
            ("https://app.test", true),
            ("https://app.test:443", true),
            ("http://dev.test", true),
            ("http://dev.test:8080", true),
            ("http://app.test", false),
            ("https://app.test:8443", false),
            ("https://dev.test", false),
            ("http://evil.test", false),
            ("http://localhost.evil.test", false),
            ("null", false),
            ("", false),
            ("localhost", false),
            ("http://localhost@evil.test", false),
        ];
        for (origin, pass) in table {
            let answer = ask(&guard, Some("localhost:7678"), Some(origin));
            assert_eq!(answer.is_ok(), pass, "{origin}: {answer:?}");
        }
    }

    #[test]
    fn a_public_server() {
        let told = Guard::new(false, &["mail.test".into()], &[]).unwrap();
        let untold = Guard::new(false, &[], &[]).unwrap();
        let table = [
            ("mail.test", Some("https://mail.test"), true, true),
            ("mail.test", None, true, true),
            ("mail.test:8443", Some("https://mail.test:8443"), true, true),
            ("mail.test:8443", Some("https://mail.test"), false, false),
            ("other.test", None, false, true),
            ("mail.test", Some("http://localhost:5173"), false, false),
            ("127.0.0.1:7678", None, true, true),
        ];
        for (host, origin, with_names, without) in table {
            assert_eq!(ask(&told, Some(host), origin).is_ok(), with_names, "told: {host} {origin:?}");
            assert_eq!(ask(&untold, Some(host), origin).is_ok(), without, "untold: {host} {origin:?}");
        }
    }

    #[test]
    fn two_names_must_both_pass() {
        let guard = Guard::new(true, &[], &[]).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost"));
        let authority = Authority::from_static("evil.test");
        assert_eq!(guard.check(Some(&authority), &headers), Err(Stop::ForeignHost));
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        assert_eq!(guard.check(None, &headers), Err(Stop::BadHost));
    }
}
