//! A MAP agent that comes back with the token and the name it had is the same agent, with its waiting mail.

use std::time::Duration;

use serde_json::{Value, json};

use crate::map::client::{Client, Office};

/// A token of that name.
async fn token(office: &Office, name: &str) -> String {
    let mut operator = Client::connect_with(office, &office.admin_token(), "client").await;
    let made = json!({ "role": "agent", "name": name });
    let made = operator.call("x-posthaste/token.create", made).await.unwrap();
    made["token"].as_str().unwrap().to_owned()
}

/// What the SDK's static `connect(url, { name, auth })` does: a greeting, and an agent by its name alone.
async fn connect(office: &Office, token: &str, name: &str, policy: Value) -> (Client, String) {
    let mut client = Client::open_with(office, token).await;
    let mut hello = json!({ "protocolVersion": 1, "participantType": "agent", "name": name });
    if policy.is_object() {
        hello["disconnectPolicy"] = policy;
    }
    client.call("map/connect", hello).await.unwrap();
    let agent = json!({ "name": name, "role": "reviewer" });
    let agent = client.call("map/agents/register", agent).await.unwrap();
    let id = agent["agent"]["id"].as_str().unwrap().to_owned();
    (client, id)
}

/// Connects until the server has noticed that the connection before is gone.
async fn back(office: &Office, token: &str, name: &str, wanted: &str) -> Client {
    for _ in 0..100 {
        let (mut client, id) = connect(office, token, name, Value::Null).await;
        if id == wanted {
            return client;
        }
        client.call("map/agents/unregister", json!({ "agentId": id })).await.unwrap();
        drop(client);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{name} did not become {wanted} again");
}

async fn ids(office: &Office) -> Vec<String> {
    let mut operator = Client::connect_with(office, &office.admin_token(), "client").await;
    let agents = operator.call("map/agents/list", json!({})).await.unwrap()["agents"].take();
    agents.as_array().unwrap().iter().map(|agent| agent["id"].as_str().unwrap().to_owned()).collect()
}

async fn send(office: &Office, to: Value, text: &str) -> Result<Value, Value> {
    let mut operator = Client::connect_with(office, &office.admin_token(), "client").await;
    operator.call("map/send", json!({ "to": to, "payload": text })).await
}

// F3
#[tokio::test]
async fn a_name_that_comes_back_is_the_same_agent_with_its_mail() {
    let office = Office::open(&[]).await;
    let kim = token(&office, "kim").await;
    let agent = json!({ "agent": "kim" });
    // Before it has come at all.
    send(&office, agent.clone(), "early").await.unwrap();
    let (mut first, id) = connect(&office, &kim, "kim", Value::Null).await;
    assert_eq!(id, "kim");
    assert_eq!(first.message().await["payload"], "early");
    // A second connection under the name gets an id of its own.
    let (mut second, other) = connect(&office, &kim, "kim", Value::Null).await;
    assert!(other.starts_with("kim-"), "{other}");
    second.call("map/agents/unregister", json!({ "agentId": other })).await.unwrap();
    // A clean end, as the SDK's disconnect() makes it: the agent is unregistered, mail waits all the same.
    first.call("map/agents/unregister", json!({ "agentId": "kim" })).await.unwrap();
    first.call("map/disconnect", json!({})).await.unwrap();
    drop(first);
    send(&office, agent.clone(), "while away").await.unwrap();
    assert_eq!(send(&office, json!({ "role": "reviewer" }), "all").await.unwrap()["delivered"], json!([]));
    let (mut again, id) = connect(&office, &kim, "kim", Value::Null).await;
    assert_eq!(id, "kim");
    assert_eq!(again.message().await["payload"], "while away");
    // An abrupt end, and back within the grace period.
    drop(again);
    send(&office, agent.clone(), "after the crash").await.unwrap();
    let mut again = back(&office, &kim, "kim", "kim").await;
    assert_eq!(again.message().await["payload"], "after the crash");
    assert_eq!(ids(&office).await, ["kim"]);
}

// F3
#[tokio::test]
async fn an_agent_of_a_shared_token_comes_back_after_its_grace_period() {
    let office = Office::open(&[]).await;
    let fleet = token(&office, "fleet").await;
    let other = token(&office, "other").await;
    let soon = json!({ "agentBehavior": "grace-period", "gracePeriodMs": 1 });
    let (first, id) = connect(&office, &fleet, "Worker", soon).await;
    assert_eq!(id, "worker");
    drop(first);
    while !ids(&office).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (again, id) = connect(&office, &fleet, "Worker", Value::Null).await;
    assert_eq!(id, "worker");
    drop(again);
    // Another token does not take it over, connected or not.
    let (_stranger, id) = connect(&office, &other, "Worker", Value::Null).await;
    assert!(id.starts_with("worker-"), "{id}");
}

// F3
#[tokio::test]
async fn agents_of_an_earlier_run_are_resolved_by_their_policy() {
    let mut office = Office::open(&[]).await;
    let fleet = token(&office, "fleet").await;
    let policies = [
        ("stays", Value::Null),
        ("short", json!({ "agentBehavior": "grace-period", "gracePeriodMs": 1 })),
        ("goes", json!({ "agentBehavior": "unregister" })),
        ("orphan", json!({ "agentBehavior": "orphan" })),
    ];
    let mut connected = Vec::new();
    for (name, policy) in policies {
        connected.push(connect(&office, &fleet, name, policy).await);
    }
    for _ in 0..3 {
        office.restart().await;
        // Without any connection of this door's; ids do not pile up.
        let listed = || {
            let mut command = crate::harness::Posthaste::new();
            command.command.arg("--data").arg(office.data());
            let agents = command.args(["agents", "--json"]).run().ok().json();
            let agents = agents["agents"].as_array().unwrap().clone();
            let field = |agent: &Value, name: &str| agent[name].as_str().unwrap_or_default().to_owned();
            agents.iter().map(|agent| (field(agent, "id"), field(agent, "state"))).collect::<Vec<_>>()
        };
        let expected = [("orphan", "orphaned"), ("stays", "registered")]
            .map(|(id, state)| (id.to_owned(), state.to_owned()));
        let mut tries = 0;
        while listed() != expected {
            tries += 1;
            assert!(tries < 200, "{:?}", listed());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let (_back, id) = connect(&office, &fleet, "stays", Value::Null).await;
        assert_eq!(id, "stays");
    }
}
