//! A client of the MCP door that speaks plain JSON-RPC, as hooks do.

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use crate::office::Office;

/// A client that calls tools.
#[derive(Clone)]
pub(crate) struct Mcp {
    pub(crate) http: reqwest::Client,
    pub(crate) url: String,
    pub(crate) token: Option<String>,
}

impl Mcp {
    /// The operator of the server.
    pub(crate) fn operator(office: &Office) -> Self {
        Self::at(&format!("{}/mcp", office.url()), Some(office.token()))
    }

    pub(crate) fn at(url: &str, token: Option<&str>) -> Self {
        Self { http: reqwest::Client::new(), url: url.to_owned(), token: token.map(str::to_owned) }
    }

    /// A client with a token of this role and name, made by the operator.
    pub(crate) async fn bearer(office: &Office, role: &str, name: &str) -> Self {
        let made = office.call("token.create", json!({ "role": role, "name": name })).await.unwrap();
        Self::at(&format!("{}/mcp", office.url()), made["token"].as_str())
    }

    pub(crate) fn request(&self, method: reqwest::Method) -> RequestBuilder {
        let request = self.http.request(method, &self.url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(crate) async fn post(&self, body: &Value) -> Response {
        self.request(reqwest::Method::POST).body(body.to_string()).send().await.unwrap()
    }

    /// What a method answers.
    pub(crate) async fn method(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let text = self.post(&body).await.text().await.unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The whole result of a tool.
    pub(crate) async fn result(&self, tool: &str, arguments: Value) -> Value {
        let mut answer = self.method("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        assert_eq!(answer["id"], 7, "{answer}");
        answer["result"].take()
    }

    /// What a tool answers, which must not fail.
    #[track_caller]
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> impl Future<Output = Value> {
        let (this, tool) = (self.clone(), tool.to_owned());
        async move {
            let mut result = this.result(&tool, arguments).await;
            assert_eq!(result["isError"], false, "{tool}: {result}");
            match result["structuredContent"].take() {
                Value::Object(mut found) if found.len() == 1 && found.contains_key("result") => {
                    found["result"].take()
                }
                found => found,
            }
        }
    }

    /// The code and the words with which a tool fails, which it must.
    pub(crate) async fn fails(&self, tool: &str, arguments: Value) -> (String, String) {
        let result = self.result(tool, arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        let error = &result["structuredContent"]["error"];
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("Error calling tool '{tool}': ")), "{text}");
        (error["code"].as_str().unwrap().to_owned(), error["message"].as_str().unwrap().to_owned())
    }

    /// Opens a project and registers agents in it by name.
    pub(crate) async fn project(&self, path: &str, agents: &[&str]) -> Value {
        let project = self.call("ensure_project", json!({ "human_key": path })).await;
        for name in agents {
            let given = json!({ "project_key": path, "program": "test", "model": "m", "name": name });
            self.call("register_agent", given).await;
        }
        project
    }

    pub(crate) async fn send(&self, path: &str, from: &str, to: &str, subject: &str) -> i64 {
        let given = json!({ "project_key": path, "sender_name": from, "to": [to], "subject": subject, "body_md": "text" });
        self.call("send_message", given).await["deliveries"][0]["payload"]["id"].as_i64().unwrap()
    }

    pub(crate) async fn resource(&self, uri: &str) -> Value {
        let answer = self.method("resources/read", json!({ "uri": uri })).await;
        let text =
            answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{uri}: {answer}"));
        serde_json::from_str(text).unwrap()
    }
}
