//! Connections to other servers, plain or over TLS. Trusted are the authorities of this machine and those that the operator
//! adds.

use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use super::egress_policy::Resolver;

/// A connection to another server.
pub type Stream = Either<TcpStream, TlsStream<TcpStream>>;

/// Trusted authorities for TLS connections to other servers.
#[derive(Clone, Debug)]
pub struct TrustedRoots {
    config: Arc<ClientConfig>,
}

impl TrustedRoots {
    /// The authorities that this machine trusts, and those in a file. Without any, every handshake fails.
    pub fn load(further: Option<&Path>) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        let known = rustls_native_certs::load_native_certs();
        for error in &known.errors {
            tracing::debug!(%error, "a certificate of this machine was skipped");
        }
        roots.add_parsable_certificates(known.certs);
        if let Some(path) = further {
            let shown = path.display();
            let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let added = read.with_context(|| format!("cannot read the certificates in {shown}"))?;
            anyhow::ensure!(!added.is_empty(), "there is no certificate in {shown}");
            for certificate in added {
                roots.add(certificate).with_context(|| format!("a certificate in {shown} cannot be used"))?;
            }
        }
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Self { config: Arc::new(config) })
    }

    /// Trusts every certificate. Only for the server on this machine, whose certificate may be made for another name: the
    /// traffic never leaves loopback.
    pub fn of_this_machine() -> Self {
        let mut config =
            ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        let provider = config.crypto_provider().clone();
        config.dangerous().set_certificate_verifier(Arc::new(TrustAll { provider }));
        Self { config: Arc::new(config) }
    }
}

/// The parts of a WebSocket address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address for the handshake.
    pub url: String,
    /// Host and port.
    pub authority: String,
    host: String,
    /// Whether it uses TLS.
    pub tls: bool,
}

impl Endpoint {
    /// Reads `ws://`, `wss://`, `http://` and `https://` addresses.
    pub fn parse(address: &str) -> Option<Self> {
        let (scheme, rest) = address.split_once("://")?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "ws" | "http" => false,
            "wss" | "https" => true,
            _ => return None,
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        // Names and passwords in addresses end up in logs.
        if authority.is_empty() || authority.contains('@') {
            return None;
        }
        let bare = |host: &str| host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port_at = authority.rfind(':').filter(|at| !authority[*at..].contains(']'));
        let (host, with_port) = match port_at {
            Some(at) => {
                authority[at + 1..].parse::<u16>().ok()?;
                (bare(&authority[..at]), authority.to_owned())
            }
            None => (bare(authority), format!("{authority}:{}", if tls { 443 } else { 80 })),
        };
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let url = format!("{}://{authority}{path}", if tls { "wss" } else { "ws" });
        Some(Self { url, authority: with_port, host, tls })
    }

    /// Opens the connection, to an address that the egress policy allows.
    pub async fn dial(&self, trust: &TrustedRoots, scout: &Resolver) -> io::Result<Stream> {
        let port = self.authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port = port.ok_or_else(|| io::Error::other("there is no port"))?;
        let found = scout.find(&self.host, port).await?;
        let stream = TcpStream::connect(found.as_slice()).await?;
        stream.set_nodelay(true)?;
        if !self.tls {
            return Ok(Either::Left(stream));
        }
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        Ok(Either::Right(TlsConnector::from(trust.config.clone()).connect(name, stream).await?))
    }
}

/// Accepts every certificate; the signatures of the handshake are still checked.
#[derive(Debug)]
struct TrustAll {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for TrustAll {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::Endpoint;

    #[test]
    fn addresses_are_parsed() {
        for (address, url, authority, host, tls) in [
            ("ws://a.test/map", "ws://a.test/map", "a.test:80", "a.test", false),
            ("wss://a.test", "wss://a.test/", "a.test:443", "a.test", true),
            (
                "https://a.test:8443/r/x/map?token=t",
                "wss://a.test:8443/r/x/map?token=t",
                "a.test:8443",
                "a.test",
                true,
            ),
            ("http://127.0.0.1:7678", "ws://127.0.0.1:7678/", "127.0.0.1:7678", "127.0.0.1", false),
            ("wss://[::1]:9/map", "wss://[::1]:9/map", "[::1]:9", "::1", true),
            ("WSS://[::1]/map#x", "wss://[::1]/map", "[::1]:443", "::1", true),
            ("ws://a.test?x=1", "ws://a.test/?x=1", "a.test:80", "a.test", false),
        ] {
            let endpoint = Endpoint::parse(address).unwrap_or_else(|| panic!("{address}"));
            let parts = (endpoint.url.as_str(), endpoint.authority.as_str(), endpoint.host.as_str());
            assert_eq!((parts, endpoint.tls), ((url, authority, host), tls), "{address}");
        }
    }

    #[test]
    fn invalid_addresses_are_refused() {
        for address in
            ["", "a.test", "ftp://a.test", "ws://", "ws://user:pw@a.test", "ws://a.test:port", "ws://:x/"]
        {
            assert_eq!(Endpoint::parse(address), None, "{address}");
        }
    }
}
