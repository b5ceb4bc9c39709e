//! TLS: the handshake, its timeout, both versions of HTTP, and a new certificate without a restart.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Extension;
use axum::routing::get;
use posthaste_host::http::listen::{ListenOptions, Peer};
use posthaste_host::http::tls::Tls;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::harness::{Listening, TestDir, keep_alive, listen, rest};

/// Writes a fresh pair into the directory and returns what a client has to trust.
fn renew(dir: &TestDir) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    dir.write("cert.pem", &cert.pem());
    dir.write("key.pem", &signing_key.serialize_pem());
    cert.der().clone()
}

fn load(dir: &TestDir) -> anyhow::Result<Arc<Tls>> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Tls::load(&dir.path().join("cert.pem"), &dir.path().join("key.pem"))
}

async fn office(tls: &Arc<Tls>) -> Listening {
    let door = |Extension(peer): Extension<Peer>| async move { format!("tls {}", peer.tls) };
    let options = ListenOptions {
        tls: Some(tls.clone()),
        handshake_timeout: Duration::from_millis(300),
        ..ListenOptions::default()
    };
    listen(Router::new().route("/", get(door)), options).await
}

async fn connect(
    office: &Listening,
    trust: &CertificateDer<'static>,
    alpn: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trust.clone()).unwrap();
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let name = "localhost".try_into().unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, office.connect().await).await
}

#[tokio::test]
async fn speaks_both_versions_over_tls() {
    let dir = TestDir::new();
    let trust = renew(&dir);
    let office = office(&load(&dir).unwrap()).await;

    let mut stream = connect(&office, &trust, &[b"http/1.1"]).await.unwrap();
    assert!(keep_alive(&mut stream, "tls true").await.starts_with("HTTP/1.1 200"));

    let stream = connect(&office, &trust, &[b"h2", b"http/1.1"]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let io = hyper_util::rt::TokioIo::new(stream);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, driver) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    let driver = tokio::spawn(driver);
    let request = hyper::Request::get("https://localhost/").body(axum::body::Body::empty()).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, hyper::Version::HTTP_2));

    assert!(office.close().await < Duration::from_secs(5), "idle connections do not hold the end up");
    driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_handshake_that_stands_still_is_cut_off() {
    let dir = TestDir::new();
    let trust = renew(&dir);
    let office = office(&load(&dir).unwrap()).await;
    let start = Instant::now();
    rest(&mut office.connect().await).await;
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    // Plain HTTP is no handshake either, and other connections are not affected.
    assert!(!office.get("/").await.starts_with("HTTP/1.1 200"));
    connect(&office, &trust, &[]).await.unwrap();
}

#[tokio::test]
async fn a_new_certificate_without_a_restart() {
    let dir = TestDir::new();
    let old = renew(&dir);
    let tls = load(&dir).unwrap();
    let office = office(&tls).await;
    let mut before = connect(&office, &old, &[]).await.unwrap();

    let new = renew(&dir);
    assert!(connect(&office, &new, &[]).await.is_err(), "not read yet");
    tls.reload().unwrap();
    connect(&office, &new, &[]).await.unwrap();
    assert!(connect(&office, &old, &[]).await.is_err());
    keep_alive(&mut before, "tls true").await;

    // An invalid file leaves the old certificate in use.
    dir.write("cert.pem", "nothing");
    assert!(tls.reload().is_err());
    connect(&office, &new, &[]).await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_hangup_reads_the_certificate_again() {
    let dir = TestDir::new();
    renew(&dir);
    let tls = load(&dir).unwrap();
    let office = office(&tls).await;
    posthaste_host::http::tls::reload_on_hangup(tls, office.stop.clone()).unwrap();
    let new = renew(&dir);
    let pid = std::process::id().to_string();
    assert!(std::process::Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    let renewed = async {
        while connect(&office, &new, &[]).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::harness::LONG, renewed).await.expect("the new certificate is served");
}

#[test]
fn files_that_cannot_serve_are_named() {
    let dir = TestDir::new();
    let complaint = |dir: &TestDir| format!("{:#}", load(dir).unwrap_err());
    assert!(complaint(&dir).contains("cert.pem"), "{}", complaint(&dir));
    renew(&dir);
    let other = TestDir::new();
    renew(&other);
    std::fs::copy(other.path().join("key.pem"), dir.path().join("key.pem")).unwrap();
    assert!(complaint(&dir).contains("do not fit together"), "{}", complaint(&dir));
    dir.write("key.pem", "");
    assert!(complaint(&dir).contains("key.pem"), "{}", complaint(&dir));
    dir.write("cert.pem", "");
    assert!(complaint(&dir).contains("no certificate in"), "{}", complaint(&dir));
}
