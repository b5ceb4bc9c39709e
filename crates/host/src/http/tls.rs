//! TLS: certificate and key from files, which are read again on SIGHUP.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// The server's certificate. Existing connections keep the one they began with.
#[derive(Debug)]
pub struct Tls {
    cert: PathBuf,
    key: PathBuf,
    current: ArcSwap<ServerConfig>,
}

impl Tls {
    /// Reads both files; a certificate that does not belong to the key is an error here, not at the
    /// first handshake.
    pub fn load(cert: &Path, key: &Path) -> anyhow::Result<Arc<Self>> {
        let current = ArcSwap::from_pointee(read(cert, key)?);
        Ok(Arc::new(Self { cert: cert.to_owned(), key: key.to_owned(), current }))
    }

    /// Reads both files again. If that fails the old certificate stays in use.
    pub fn reload(&self) -> anyhow::Result<()> {
        self.current.store(Arc::new(read(&self.cert, &self.key)?));
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current.load_full())
    }
}

/// Reloads on every SIGHUP until `stop`. From the moment this returns the signal no longer ends the
/// process. Elsewhere than on Unix there is no such signal, and this does nothing.
#[cfg(unix)]
pub fn reload_on_hangup(tls: Arc<Tls>, stop: CancellationToken) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while let Some(Some(())) = stop.run_until_cancelled(hangup.recv()).await {
            match tls.reload() {
                Ok(()) => tracing::info!(cert = %tls.cert.display(), "certificate read again"),
                Err(error) => tracing::error!("the old certificate stays in use: {error:#}"),
            }
        }
    });
    Ok(())
}

#[cfg(not(unix))]
pub fn reload_on_hangup(_: Arc<Tls>, _: CancellationToken) -> io::Result<()> {
    Ok(())
}

fn read(cert: &Path, key: &Path) -> anyhow::Result<ServerConfig> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .with_context(|| format!("cannot read the certificate {}", cert.display()))?;
    anyhow::ensure!(!chain.is_empty(), "there is no certificate in {}", cert.display());
    let secret = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("cannot read the private key {}", key.display()))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .with_context(|| format!("{} and {} do not fit together", cert.display(), key.display()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
