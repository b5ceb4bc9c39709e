//! MAP over TLS as a client: servers that connect to each other, and `posthaste map` with a server that has TLS only.

use std::io::Write;
use std::process::{Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::map::client::{Client, Office};

/// A certificate for localhost and 127.0.0.1, and the authority that made it.
fn certificates(dir: &TestDir) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let cert = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
    dir.write("ca.pem", &authority.pem());
    dir.write("cert.pem", &cert.pem());
    dir.write("key.pem", &key.serialize_pem());
}

#[tokio::test]
async fn servers_federate_over_tls_if_they_trust_each_other() {
    let dir = TestDir::new();
    certificates(&dir);
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (cert, key, ca) = (path("cert.pem"), path("key.pem"), path("ca.pem"));
    let tls = ["--no-auth", "--realm", "beta", "--tls-cert", &cert, "--tls-key", &key];
    let beta = Office::open(&tls).await;
    let trusting = Office::open(&["--no-auth", "--realm", "alpha", "--tls-ca", &ca]).await;
    let wary = Office::open(&["--no-auth", "--realm", "gamma"]).await;
    for endpoint in [beta.url(), beta.url().replace("wss://", "https://")] {
        let link = json!({ "systemId": "beta", "endpoint": endpoint });
        let mut stranger = Client::agent(&wary, "cem").await;
        let refused = stranger.call("map/federation/connect", link.clone()).await.unwrap_err();
        assert_eq!(refused["code"], 5000, "an authority that is not configured is not trusted: {refused}");
        let mut ann = Client::connect(&trusting, "agent").await;
        ann.call("map/agents/register", json!({ "name": "ann" })).await.unwrap();
        assert_eq!(ann.call("map/federation/connect", link).await.unwrap()["connected"], true);
        let sent = json!({ "to": { "system": "beta", "agent": "absent" }, "payload": 1 });
        let sent = ann.call("map/send", sent).await.unwrap();
        assert_eq!(sent["receipts"][0]["status"], "failed", "it was asked over there: {sent}");
    }
    let mut ann = Client::connect(&trusting, "agent").await;
    for endpoint in ["ftp://a.test", "localhost", "wss://user:secret@localhost/map"] {
        let link = json!({ "systemId": "beta", "endpoint": endpoint });
        assert_eq!(ann.call("map/federation/connect", link).await.unwrap_err()["code"], -32602, "{endpoint}");
    }
}

#[tokio::test]
async fn posthaste_map_connects_to_a_server_with_tls_only() {
    let dir = TestDir::new();
    certificates(&dir);
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let office = Office::open(&["--tls-cert", &cert, "--tls-key", &key]).await;
    let mut program = Command::new(env!("CARGO_BIN_EXE_posthaste"))
        .env_clear()
        .args(["map", "--data"])
        .arg(office.data())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "map/connect",
        "params": { "protocolVersion": 1, "participantType": "client" },
    });
    let mut input = program.stdin.take().unwrap();
    writeln!(input, "{hello}").unwrap();
    drop(input);
    let said = program.wait_with_output().unwrap();
    assert!(said.status.success(), "{said:?}");
    let first = String::from_utf8(said.stdout).unwrap();
    let answer: Value = serde_json::from_str(first.lines().next().expect("an answer")).unwrap();
    assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!(1), &json!(1)), "{answer}");
}
