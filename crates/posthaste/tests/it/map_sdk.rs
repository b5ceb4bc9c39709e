//! What the published SDK's types and helpers go by: whose an agent is, what states mean, and what events carry.

use serde_json::json;

use crate::map_client::{Client, Office};

#[tokio::test]
async fn a_websocket_is_welcome_on_any_path() {
    let office = Office::open(&[]).await;
    let token = office.admin_token();
    let mut operator = Client::open_with(&office, &token).await;
    operator.call("x-posthaste/realm.open", json!({ "name": "side" })).await.unwrap();
    for path in ["/", "/ws", "/ws/map", "/foo/bar", "/r/side", "/r/side/ws/map", "/r/side/"] {
        let mut client = Client::open_on(&office, &format!("{path}?token={token}")).await;
        let hello = client.call("map/connect", json!({ "participantType": "client" })).await.unwrap();
        let realm = if path.starts_with("/r/") { "side" } else { "main" };
        assert_eq!(hello["systemInfo"]["systemId"], realm, "{path}");
    }
    let http = reqwest::Client::new();
    for (path, status) in [("/", 200), ("/ws", 404), ("/foo/bar", 404), ("/r/side/ws", 404)] {
        let answer = http.get(format!("http://{}{path}", office.address())).bearer_auth(&token);
        assert_eq!(answer.send().await.unwrap().status().as_u16(), status, "{path}");
    }
}
