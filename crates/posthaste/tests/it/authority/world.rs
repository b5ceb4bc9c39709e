//! The server under test, and every kind of caller.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{LONG, eventually};
use crate::swarm::{Swarm, boss, hand, team};

/// Every kind of caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    NoToken,
    /// With a made-up token.
    MadeUp,
    Revoked,
    Expired,
    ForeignAgent,
    ForeignAdmin,
    /// With a token that AIRC issued to a new identity: valid at AIRC only.
    Airc,
    Agent,
    User,
    Admin,
    Operator,
}

pub(super) const ROLES: [Role; 11] = [
    Role::NoToken,
    Role::MadeUp,
    Role::Revoked,
    Role::Expired,
    Role::ForeignAgent,
    Role::ForeignAdmin,
    Role::Airc,
    Role::Agent,
    Role::User,
    Role::Admin,
    Role::Operator,
];

impl Role {
    pub(super) fn head(self) -> &'static str {
        match self {
            Self::NoToken => "no token",
            Self::MadeUp => "made up",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::ForeignAgent => "foreign agent",
            Self::ForeignAdmin => "foreign admin",
            Self::Airc => "AIRC identity",
            Self::Agent => "agent",
            Self::User => "user",
            Self::Admin => "admin",
            Self::Operator => "operator's key",
        }
    }
}

fn now() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "a test may ask the time")]
    let now = std::time::SystemTime::now();
    i64::try_from(now.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

pub(super) struct World {
    pub(super) swarm: Swarm,
    pub(super) http: reqwest::Client,
    tokens: Vec<Option<String>>,
    cookies: Vec<Option<(String, String)>>,
    /// A project of the default realm.
    pub(super) project: String,
}

impl World {
    pub(super) async fn open() -> Self {
        let echo = json!({ "builtin": "echo" });
        let file = team("team", json!([boss(echo.clone(), &["hand"]), hand("hand", echo)]));
        let project = "/srv/authority".to_owned();
        let swarm = Swarm::open(&file, &["--project", &project], &[]);
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(20))
            .build()
            .unwrap();
        let mut world = Self { swarm, http, tokens: Vec::new(), cookies: Vec::new(), project };
        let key = std::fs::read_to_string(world.swarm.dir.path().join("data/admin.token")).unwrap();
        let key = key.trim().to_owned();
        world.run(&key, "", "realm.open", json!({ "name": "away" })).await;
        let make = async |realm: &str, role: &str, name: &str, expires_at: Option<i64>| {
            let given = json!({ "role": role, "name": name, "expires_at": expires_at });
            let made = world.run(&key, realm, "token.create", given).await;
            (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
        };
        let (revoked, id) = make("", "admin", "gone", None).await;
        world.run(&key, "", "token.revoke", json!({ "id": id })).await;
        let (expired, _) = make("", "admin", "late", Some(now() + 300)).await;
        eventually(LONG, "the token expires", async || {
            let request = world.http.get(world.url("/x-posthaste/status")).bearer_auth(&expired);
            request.send().await.unwrap().status() == 401
        })
        .await;
        let (foreign_agent, _) = make("/r/away", "agent", "ann", None).await;
        let (foreign_admin, _) = make("/r/away", "admin", "root", None).await;
        let (agent, _) = make("", "agent", "ann", None).await;
        let (user, _) = make("", "user", "uma", None).await;
        let (admin, _) = make("", "admin", "root", None).await;
        for name in ["ann", "uma", "root", "victim", "spare-a", "spare-b"] {
            world.run(&key, "", "register", json!({ "id": name })).await;
        }
        let made_up = "ph_0000000000000000000000000000000000000000000000000000000000000000".to_owned();
        world.tokens = vec![
            None,
            Some(made_up),
            Some(revoked),
            Some(expired),
            Some(foreign_agent),
            Some(foreign_admin),
            Some(world.register("stray").await),
            Some(agent),
            Some(user),
            Some(admin),
            Some(key),
        ];
        for role in ROLES {
            let cookie = world.sign_in(role).await;
            world.cookies.push(cookie);
        }
        world
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.swarm.url())
    }

    pub(super) fn token(&self, role: Role) -> Option<&str> {
        self.tokens[role as usize].as_deref()
    }

    /// The cookie and form key of this caller at the page, if it can sign in.
    pub(super) fn cookie(&self, role: Role) -> Option<&(String, String)> {
        self.cookies[role as usize].as_ref()
    }

    /// A request with the caller's token.
    pub(super) fn request(&self, role: Role, method: &str, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method.parse().unwrap(), self.url(path));
        match self.token(role) {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Registers an AIRC identity; returns its token.
    async fn register(&self, name: &str) -> String {
        let request = self.http.post(self.url("/api/register")).json(&json!({ "username": name }));
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        answer["token"].as_str().expect("a token").to_owned()
    }

    async fn run(&self, key: &str, realm: &str, method: &str, params: Value) -> Value {
        let call =
            json!({ "jsonrpc": "2.0", "id": 1, "method": format!("x-posthaste/{method}"), "params": params });
        let request = self.http.post(self.url(&format!("{realm}/x-posthaste/rpc"))).bearer_auth(key);
        let mut answer: Value = request.body(call.to_string()).send().await.unwrap().json().await.unwrap();
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].take()
    }

    async fn sign_in(&self, role: Role) -> Option<(String, String)> {
        self.cookie_for(self.token(role).unwrap_or_default()).await
    }

    /// The cookie and form key that the page gives for a token, if it can sign in.
    pub(super) async fn cookie_for(&self, token: &str) -> Option<(String, String)> {
        let word = |page: &str| {
            let start = page.find("name=\"word\" value=\"")? + "name=\"word\" value=\"".len();
            Some(page[start..].split('"').next()?.to_owned())
        };
        let page = self.http.get(self.url("/ui/sign-in")).send().await.unwrap().text().await.unwrap();
        let body = format!("word={}&token={}", word(&page).unwrap(), token);
        let answer = self.http.post(self.url("/ui/sign-in")).body(body).send().await.unwrap();
        let cookie = answer.headers().get("set-cookie")?.to_str().unwrap().split(';').next()?.to_owned();
        let page = self.http.get(self.url("/ui/write")).header("cookie", &cookie);
        let page = page.send().await.unwrap().text().await.unwrap();
        Some((cookie, word(&page).expect("a form on the page")))
    }
}
