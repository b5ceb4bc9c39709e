//! Whether a caller is on this machine. Behind a reverse proxy every connection comes from loopback, so the peer's
//! address alone does not tell; everything that is offered to local callers only asks here.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Version, header, uri::Authority};

use super::guard::is_loopback_name;
use super::listen::Peer;

/// Headers that intermediaries add and direct clients do not; those that begin with `x-forwarded` count as well.
const FORWARDING: [&str; 8] = [
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "x-original-host",
    "true-client-ip",
    "cf-connecting-ip",
    "x-envoy-external-address",
];

/// True for a request whose sender is on this machine: its connection comes from loopback, it was sent to a loopback
/// name, and no proxy has passed it on.
#[derive(Clone, Copy, Debug)]
pub struct Local(pub bool);

impl Local {
    pub fn of(parts: &Parts) -> Self {
        let peer = parts.extensions.get::<Peer>();
        let from_here = peer.is_some_and(|peer| peer.address.ip().to_canonical().is_loopback());
        Self(from_here && !is_proxied(parts) && names_loopback(parts.uri.authority(), &parts.headers))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Local {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}

/// Proxies that add no header are told by HTTP/1.0, which nginx speaks to its backends unless told otherwise.
fn is_proxied(parts: &Parts) -> bool {
    let forwarding = |name: &str| name.starts_with("x-forwarded") || FORWARDING.contains(&name);
    parts.version < Version::HTTP_11 || parts.headers.keys().any(|name| forwarding(name.as_str()))
}

fn names_loopback(authority: Option<&Authority>, headers: &HeaderMap) -> bool {
    let hosts = headers.get_all(header::HOST).iter().map(|host| host.to_str().unwrap_or_default());
    hosts.chain(authority.map(Authority::as_str)).all(is_loopback_name)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn local(peer: Option<&str>, version: Version, headers: &[(&'static str, &str)]) -> bool {
        let mut request = Request::builder().version(version).uri("/x");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        if let Some(peer) = peer {
            parts.extensions.insert(Peer { address: peer.parse().unwrap(), tls: false });
        }
        Local::of(&parts).0
    }

    #[test]
    fn only_direct_requests_from_loopback_to_a_loopback_name_are_local() {
        let here = Some("127.0.0.1:9");
        for host in ["localhost:7678", "127.0.0.1:7678", "[::1]:7678", "LOCALHOST."] {
            assert!(local(here, Version::HTTP_11, &[("host", host)]), "{host}");
        }
        assert!(local(Some("[::ffff:127.0.0.1]:9"), Version::HTTP_2, &[("host", "localhost")]));
        assert!(!local(None, Version::HTTP_11, &[("host", "localhost")]), "no connection is known");
        assert!(!local(Some("10.0.0.7:9"), Version::HTTP_11, &[("host", "localhost")]));
        assert!(!local(here, Version::HTTP_11, &[("host", "mail.example")]));
        assert!(!local(here, Version::HTTP_11, &[("host", "localhost"), ("host", "mail.example")]));
        assert!(!local(here, Version::HTTP_10, &[("host", "127.0.0.1:7678")]), "nginx by default");
        for header in ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"] {
            assert!(!local(here, Version::HTTP_11, &[("host", "localhost"), (header, "x")]), "{header}");
        }
    }
}
