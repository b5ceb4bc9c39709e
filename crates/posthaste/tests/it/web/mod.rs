//! The page from outside: sign-in, form tokens, security headers, and that nothing a message
//! says becomes part of the page.

use std::path::Path;
use std::time::Duration;

use reqwest::header::{HeaderMap, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use serde_json::json;

use crate::harness::TestDir;
use crate::office::Office;

/// What came back.
pub(crate) struct Got {
    pub(crate) status: u16,
    headers: HeaderMap,
    pub(crate) text: String,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The page.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The word that the page's forms carry.
    pub(crate) fn word(&self) -> String {
        let start =
            self.text.find("name=\"word\" value=\"").expect("a form") + "name=\"word\" value=\"".len();
        self.text[start..].split('"').next().unwrap().to_owned()
    }
}

/// A browser without script: it keeps cookies and sends forms.
pub(crate) struct Visitor {
    base: String,
    http: reqwest::Client,
    cookie: String,
}

impl Visitor {
    fn new(office: &Office) -> Self {
        let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
        Self { base: office.url().to_owned(), http, cookie: String::new() }
    }

    pub(crate) async fn signed_in(office: &Office, token: &str) -> Self {
        let mut visitor = Self::new(office);
        let word = visitor.get("/ui/sign-in").await.word();
        let got = visitor.post("/ui/sign-in", &[("word", &word), ("token", token)]).await;
        assert_eq!(got.status, 303, "{}", got.text);
        visitor
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.take(self.http.get(format!("{}{path}", self.base))).await
    }

    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Got {
        let got = self.take(self.form(path, fields)).await;
        for cookie in got.headers.get_all(SET_COOKIE) {
            self.cookie = cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
        }
        got
    }

    fn form(&self, path: &str, fields: &[(&str, &str)]) -> reqwest::RequestBuilder {
        let escaped = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        let body: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        self.http
            .post(format!("{}{path}", self.base))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.join("&"))
    }

    async fn take(&self, request: reqwest::RequestBuilder) -> Got {
        let request = if self.cookie.is_empty() { request } else { request.header("cookie", &self.cookie) };
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Got { status, headers, text: answer.text().await.unwrap() }
    }
}

fn key(data: &Path) -> String {
    std::fs::read_to_string(data.join("admin.token")).unwrap().trim().to_owned()
}

const PAGES: [&str; 16] = [
    "/ui",
    "/ui/live",
    "/ui/inbox",
    "/ui/conversations",
    "/ui/tasks",
    "/ui/reservations",
    "/ui/reservations?ended=1",
    "/ui/agents",
    "/ui/agents?look=tree",
    "/ui/agents?look=graph",
    "/ui/agents/ann",
    "/ui/search",
    "/ui/search?q=hello",
    "/ui/write",
    "/ui/settings",
    "/ui/inbox?agent=ann",
];

#[tokio::test]
async fn pages_need_a_sign_in() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let mut visitor = Visitor::new(&office);
    for page in PAGES {
        let got = visitor.get(page).await;
        assert_eq!(got.status, 303, "{page}");
        assert!(got.header(LOCATION.as_str()).starts_with("/ui/sign-in?next="), "{page}");
    }
    let word = visitor.get("/ui/sign-in").await.word();
    let got = visitor.post("/ui/sign-in", &[("word", &word), ("token", "ph_wrong")]).await;
    assert_eq!(got.status, 401);
    assert!(got.headers.get(SET_COOKIE).is_none() && got.text.contains("unknown, expired or revoked"));
    for forged in [
        "posthaste.main=00",
        "posthaste.main=",
        &format!("posthaste.main={}.{}", "0".repeat(64), "0".repeat(64)),
    ] {
        visitor.cookie = forged.to_owned();
        assert_eq!(visitor.get("/ui").await.status, 303, "{forged}");
    }
    // The stream is not a page; a browser that follows it learns that it is signed out.
    let stream =
        visitor.http.get(format!("{}/ui/live/stream", visitor.base)).header("accept", "text/event-stream");
    assert_eq!(visitor.take(stream).await.status, 401);
}

#[tokio::test]
async fn the_cookie_is_kept_from_scripts_and_is_not_the_token() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let token = key(data.path());
    let mut visitor = Visitor::new(&office);
    let word = visitor.get("/ui/sign-in").await.word();
    let got = visitor.post("/ui/sign-in", &[("word", &word), ("token", &token), ("next", "/ui/inbox")]).await;
    assert_eq!((got.status, got.header("location")), (303, "/ui/inbox"));
    let cookie = got.header("set-cookie");
    for flag in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(flag), "{cookie}");
    }
    assert!(!cookie.contains(&token));
    // What is in the cookie opens no other door.
    let value = visitor.cookie.split_once('=').unwrap().1.to_owned();
    for bearer in [value.as_str(), value.split('.').next().unwrap()] {
        assert!(office.as_bearer(bearer).call("whoami", json!({})).await.is_err());
    }
    for page in PAGES {
        if !page.contains("ann") {
            let got = visitor.get(page).await;
            assert_eq!(got.status, 200, "{page}: {}", got.text);
        }
    }
    assert_eq!(visitor.get("/ui/nothing").await.status, 404);
}

#[tokio::test]
async fn a_revoked_token_ends_its_sign_in() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let made = office.call("token.create", json!({ "role": "user", "name": "una" })).await.unwrap();
    let visitor = Visitor::signed_in(&office, made["token"].as_str().unwrap()).await;
    assert_eq!(visitor.get("/ui").await.status, 200);
    office.call("token.revoke", json!({ "id": made["id"] })).await.unwrap();
    assert_eq!(visitor.get("/ui").await.status, 303);
}

#[tokio::test]
async fn a_sign_in_outlives_a_restart_and_ends_with_a_sign_out() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let mut visitor = Visitor::signed_in(&office, &key(data.path())).await;
    assert_eq!(office.close(), Some(0));
    let office = Office::open(data.path());
    visitor.base = office.url().to_owned();
    let word = visitor.get("/ui").await.word();
    let got = visitor.post("/ui/sign-out", &[("word", &word)]).await;
    assert_eq!(got.status, 303);
    assert!(got.header("set-cookie").contains("Max-Age=0"));
}

#[tokio::test]
async fn a_form_without_its_token_changes_nothing() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    office.register("ann").await;
    let mut visitor = Visitor::signed_in(&office, &key(data.path())).await;
    let page = visitor.get("/ui/write").await;
    let (word, fields) = (page.word(), [("to", "ann"), ("text", "forged")]);
    // Without the token, with a wrong one, and with the one of a visitor that is not signed in.
    let signed_out = Visitor::new(&office).get("/ui/sign-in").await.word();
    for wrong in ["", "x", signed_out.as_str()] {
        let mut given = fields.to_vec();
        given.push(("word", wrong));
        assert_eq!(visitor.post("/ui/do/send", &given).await.status, 403, "{wrong}");
    }
    // With the word, but from a page of another port or site.
    let mut given = fields.to_vec();
    given.push(("word", &word));
    for (name, value) in [
        ("origin", "http://127.0.0.1:1"),
        ("origin", "http://localhost:3000"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let request = visitor.form("/ui/do/send", &given).header(name, value);
        assert_eq!(visitor.take(request).await.status, 403, "{name}: {value}");
    }
    // A form cannot be sent by a link.
    assert_eq!(visitor.get(&format!("/ui/do/send?word={word}&to=ann&text=forged")).await.status, 405);
    assert!(office.inbox("ann", 0).await.is_empty());
    let got = visitor.post("/ui/do/send", &given).await;
    assert_eq!(got.status, 303, "{}", got.text);
    let messages = office.inbox("ann", 0).await;
    assert_eq!(
        (messages.len(), &messages[0]["from"], &messages[0]["door"]),
        (1, &json!("admin"), &json!("web"))
    );
}

#[tokio::test]
async fn every_answer_tells_the_browser_to_allow_nothing_from_elsewhere() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    office.register("ann").await;
    let visitor = Visitor::signed_in(&office, &key(data.path())).await;
    let mut assets = Vec::new();
    for page in PAGES.iter().copied().chain(["/ui/sign-in", "/ui/nothing", "/ui/agents/unknown"]) {
        let got = visitor.get(page).await;
        let policy = got.header("content-security-policy");
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(rule), "{page}: {policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("data:"));
        assert_eq!(got.header("x-content-type-options"), "nosniff", "{page}");
        assert_eq!(got.header("cache-control"), "no-store", "{page}");
        // What the policy forbids is not there in the first place.
        for banned in [" style=\"", " onclick=", " onload=", "javascript:", "<script>", "http://", "https://"]
        {
            let mut text = got.text.replace("http://www.w3.org/2000/svg", "");
            text = text.replace("placeholder=\"https://\"", "").replace("curl -s http://127.0.0.1:7678", "");
            assert!(!text.contains(banned), "{page} contains {banned}");
        }
        assert!(got.text.len() < 60_000, "{page} has {} bytes", got.text.len());
        assets.extend(got.text.split('"').filter(|part| part.starts_with("/ui/assets/")).map(str::to_owned));
    }
    assets.sort();
    assets.dedup();
    let mut bytes = visitor.get("/ui").await.text.len();
    for asset in &assets {
        let got = visitor.get(asset).await;
        assert_eq!(got.status, 200, "{asset}");
        assert!(got.header("cache-control").contains("immutable"));
        bytes += got.text.len();
    }
    assert_eq!(assets.len(), 4);
    assert!(bytes < 100_000, "the first page has {bytes} bytes all told");
}

#[tokio::test]
async fn texts_of_messages_are_not_markup() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    for id in ["ann", "<img src=x onerror=alert(1)>", "a\"onmouseover=\"alert(1)"] {
        office.register(id).await;
    }
    let hostile = "<script>alert(1)</script> <img src=x onerror=alert(2)> [x](javascript:alert(3)) <svg onload=alert(4)>";
    let mut ids = Vec::new();
    for from in ["<img src=x onerror=alert(1)>", "a\"onmouseover=\"alert(1)"] {
        let message = json!({
            "from": from, "to": ["ann"], "subject": hostile, "body": hostile, "kind": "<b>kind</b>",
            "conversation": "<script>talk</script>", "ack_required": true,
        });
        ids.push(office.call("send", message).await.unwrap()["id"].as_str().unwrap().to_owned());
        let message = json!({ "from": from, "to": ["ann"], "body": { "text": hostile, "<i>": hostile } });
        ids.push(office.call("send", message).await.unwrap()["id"].as_str().unwrap().to_owned());
    }
    let lease = json!({ "scope": "<script>s</script>", "paths": ["<img/onerror=1>/x"], "reason": hostile, "expires_at": posthaste_engine::stamp::now() + 3_600_000 });
    office.call("register", json!({ "id": "admin" })).await.unwrap();
    office.call("reserve", lease).await.unwrap();
    let visitor = Visitor::signed_in(&office, &key(data.path())).await;
    let mut pages: Vec<String> = PAGES.iter().map(|page| (*page).to_owned()).collect();
    pages.extend(ids.iter().map(|id| format!("/ui/messages/{id}")));
    pages.extend(ids.iter().map(|id| format!("/ui/inbox?agent=ann&message={id}")));
    pages.extend(ids.iter().map(|id| format!("/ui/write?reply={id}")));
    pages.push("/ui/conversations/%3Cscript%3Etalk%3C%2Fscript%3E".to_owned());
    pages.push("/ui/conversations/%3Cscript%3Etalk%3C%2Fscript%3E/export?as=svg".to_owned());
    pages.push("/ui/agents/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E".to_owned());
    pages.push("/ui/search?q=alert&from=%22%3E%3Cscript%3E1%3C/script%3E".to_owned());
    pages.push("/ui/search?q=%22%3E%3Cscript%3E".to_owned());
    pages.push(
        "/ui/live?kind=%22%3E%3Cscript%3E&agent=%22%3E%3Cscript%3E&conversation=%3Cscript%3E".to_owned(),
    );
    pages.push("/ui/sign-in?next=%22%3E%3Cscript%3E".to_owned());
    pages.push("/ui?done=%3Cscript%3E".to_owned());
    for page in pages {
        let got = visitor.get(&page).await;
        assert!(got.status < 500, "{page}: {}", got.text);
        for banned in [
            "<script>",
            "<img",
            "<svg onload",
            "<svg/onload",
            "href=\"javascript:",
            " onmouseover=\"",
            "<b>kind",
            "<i>",
        ] {
            assert!(!got.text.contains(banned), "{page} contains {banned}: {}", got.text);
        }
    }
}

#[tokio::test]
async fn lists_page_without_loss_or_repetition() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    office.register("ann").await;
    for n in 0..120 {
        office.send("ann", "ann", &format!("message {n}"), &format!("k{n}")).await.unwrap();
    }
    let visitor = Visitor::signed_in(&office, &key(data.path())).await;
    let mut address = "/ui/inbox?agent=ann".to_owned();
    let mut seen = Vec::new();
    loop {
        let got = visitor.get(&address).await;
        seen.extend(
            got.text
                .split("class=\"first\">message ")
                .skip(1)
                .map(|rest| rest.split('<').next().unwrap().to_owned()),
        );
        let Some(older) = got.text.split("href=\"").find(|part| part.contains("rel=\"next\"")) else { break };
        address = older.split('"').next().unwrap().replace("&amp;", "&");
    }
    let expected: Vec<String> = (0..120).rev().map(|n| n.to_string()).collect();
    assert_eq!(seen, expected);
    for bad in ["/ui/inbox?before=x", "/ui/inbox?agent=%00", "/ui/live?at=never", "/ui/inbox?message=zz"] {
        assert_eq!(visitor.get(bad).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn a_person_sees_no_more_than_its_own() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    for id in ["ann", "bob"] {
        office.register(id).await;
    }
    let sent = office.call("send", json!({ "from": "ann", "to": ["bob"], "subject": "zebra", "body": "zebra", "conversation": "zebra-talk" })).await.unwrap();
    let made = office.call("token.create", json!({ "role": "user", "name": "una" })).await.unwrap();
    let mut visitor = Visitor::signed_in(&office, made["token"].as_str().unwrap()).await;
    let id = sent["id"].as_str().unwrap();
    let pages = PAGES.iter().map(|page| (*page).to_owned()).chain([
        format!("/ui/messages/{id}"),
        format!("/ui/inbox?message={id}"),
        "/ui/inbox?agent=bob".to_owned(),
        "/ui/conversations/zebra-talk".to_owned(),
        "/ui/conversations/zebra-talk/export?as=json".to_owned(),
        "/ui/search?q=zebra*".to_owned(),
        "/ui/complete?q=zeb".to_owned(),
    ]);
    for page in pages {
        let got = visitor.get(&page).await;
        let shown = got.text.replace("zebra*", "").replace("there is no conversation zebra-talk", "");
        let shown = shown.replace("zebra-talk/export", "").replace("/conversations/zebra-talk", "");
        assert!(!shown.contains("zebra"), "{page}: {shown}");
    }
    let word = visitor.get("/ui").await.word();
    for (action, fields) in [
        ("token", vec![("name", "x"), ("role", "admin")]),
        ("realm", vec![("name", "shop")]),
        ("peer", vec![("name", "north"), ("url", "https://north.test")]),
        ("close", vec![("conversation", "zebra-talk")]),
        ("say", vec![("conversation", "zebra-talk"), ("text", "hello")]),
        ("invite", vec![("conversation", "zebra-talk"), ("agent", "una")]),
        ("ack", vec![("message", id)]),
        ("resume", vec![("agent", "bob")]),
    ] {
        let mut fields = fields;
        fields.push(("word", &word));
        let got = visitor.post(&format!("/ui/do/{action}"), &fields).await;
        assert!(matches!(got.status, 403 | 404), "{action}: {} {}", got.status, got.text);
    }
}

#[tokio::test]
async fn a_person_steps_in_under_its_own_name() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    for id in ["ann", "bob"] {
        office.register(id).await;
    }
    let made = office.call("token.create", json!({ "role": "admin", "name": "priya" })).await.unwrap();
    let mut visitor = Visitor::signed_in(&office, made["token"].as_str().unwrap()).await;
    let word = visitor.get("/ui").await.word();
    let talk = json!({ "from": "ann", "to": ["priya"], "subject": "Ready?", "body": "Shall I?", "conversation": "ship", "ack_required": true });
    let asked = office.call("send", talk).await.unwrap();
    let id = asked["id"].as_str().unwrap();
    let mine = visitor.get("/ui/inbox?show=asked").await;
    assert!(mine.text.contains("Ready?") && mine.text.contains("ack asked"));
    let act = [
        ("ack", vec![("message", id), ("next", "/ui/inbox")], "/ui/inbox?done=acked"),
        ("say", vec![("conversation", "ship"), ("text", "Yes, ship it")], "/ui/conversations/ship?done=said"),
        (
            "invite",
            vec![("conversation", "ship"), ("agent", "bob"), ("role", "assistant")],
            "/ui/conversations?done=invited",
        ),
        (
            "close",
            vec![("conversation", "ship"), ("status", "completed"), ("reason", "shipped")],
            "/ui/conversations?done=closed",
        ),
        ("reopen", vec![("conversation", "ship")], "/ui/conversations?done=reopened"),
    ];
    for (action, mut fields, to) in act {
        fields.push(("word", &word));
        let got = visitor.post(&format!("/ui/do/{action}"), &fields).await;
        assert_eq!((got.status, got.header("location")), (303, to), "{action}: {}", got.text);
    }
    let got = visitor
        .post("/ui/do/send", &[("word", &word), ("to", "unknown-agent"), ("text", "draft is kept")])
        .await;
    assert_eq!(got.status, 422);
    assert!(got.text.contains("there is no agent unknown-agent") && got.text.contains("draft is kept"));
    let got = visitor
        .post("/ui/do/interrupt", &[("word", &word), ("agent", "bob"), ("text", "Stop"), ("pause", "1")])
        .await;
    assert_eq!(got.status, 303, "{}", got.text);
    let message = &office.inbox("bob", 0).await[0];
    assert_eq!(
        (&message["kind"], &message["priority"], &message["from"]),
        (&json!("interrupt"), &json!(1), &json!("priya"))
    );
    assert!(visitor.get("/ui/agents/bob").await.text.contains("suspended"));
    let got = visitor.post("/ui/do/resume", &[("word", &word), ("agent", "bob")]).await;
    assert_eq!(got.header("location"), "/ui/agents/bob?done=resumed");

    let lease = json!({ "scope": "repo", "paths": ["src/**"], "exclusive": true, "expires_at": posthaste_engine::stamp::now() + 3_600_000 });
    let bob = office.call("token.create", json!({ "role": "agent", "name": "bob" })).await.unwrap();
    let held = office.as_bearer(bob["token"].as_str().unwrap()).call("reserve", lease).await.unwrap();
    let number = held["id"].to_string();
    assert!(visitor.get("/ui/reservations").await.text.contains("src/**"));
    let fields = [("word", word.as_str()), ("reservation", number.as_str()), ("owner", "bob")];
    assert_eq!(
        visitor.post("/ui/do/release", &fields).await.header("location"),
        "/ui/reservations?done=released"
    );
    assert!(!visitor.get("/ui/reservations").await.text.contains("src/**"));

    let made = visitor
        .post("/ui/do/token", &[("word", &word), ("name", "cy"), ("role", "agent"), ("expires", "1d")])
        .await;
    let secret = made.text.split("<code>ph_").nth(1).expect("the token, once").split('<').next().unwrap();
    let who = office.as_bearer(&format!("ph_{secret}")).call("whoami", json!({})).await.unwrap();
    assert_eq!(who["name"], "cy");
    assert!(!visitor.get("/ui/settings").await.text.contains(secret));
    assert_eq!(visitor.post("/ui/do/realm", &[("word", &word), ("name", "shop")]).await.status, 303);
    let events = visitor.get("/ui/live").await.text;
    assert!(events.contains("priya") && events.contains("closed"));
}

#[tokio::test]
async fn the_live_stream_continues_after_a_reconnect() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    office.register("ann").await;
    let visitor = Visitor::signed_in(&office, &key(data.path())).await;
    let page = visitor.get("/ui/live?kind=message.sent").await.text;
    let address =
        page.split("data-stream=\"").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    office.send("ann", "ann", "first", "k1").await.unwrap();
    office.send("ann", "ann", "<script>second</script>", "k2").await.unwrap();
    let (ids, rows) = follow(&visitor, &address, None, 2).await;
    assert!(rows[0].contains("first") && rows[1].contains("&lt;script&gt;second"), "{rows:?}");
    office.send("ann", "ann", "third", "k3").await.unwrap();
    let (_, rows) = follow(&visitor, &address, Some(&ids[0]), 2).await;
    assert!(rows[0].contains("second") && rows[1].contains("third"), "{rows:?}");
    let (_, rows) = follow(&visitor, &address, Some("another-history:1"), 1).await;
    assert!(rows[0].contains("another event log"), "{rows:?}");
}

/// The ids and rows of the first events of a stream.
async fn follow(
    visitor: &Visitor,
    address: &str,
    last: Option<&str>,
    wanted: usize,
) -> (Vec<String>, Vec<String>) {
    let mut request =
        visitor.http.get(format!("{}{address}", visitor.base)).header("cookie", &visitor.cookie);
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let mut answer = request.send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut text = String::new();
    let (mut ids, mut rows) = (Vec::new(), Vec::new());
    while rows.len() < wanted {
        let chunk =
            tokio::time::timeout(Duration::from_secs(10), answer.chunk()).await.expect("in time").unwrap();
        text.push_str(std::str::from_utf8(&chunk.expect("the stream goes on")).unwrap());
        ids = text.lines().filter_map(|line| line.strip_prefix("id: ").map(str::to_owned)).collect();
        rows = text.lines().filter_map(|line| line.strip_prefix("data: ").map(str::to_owned)).collect();
    }
    (ids, rows)
}

#[tokio::test]
async fn the_demo_fills_the_page() {
    let data = TestDir::new();
    let office = Office::open(data.path());
    let ran = tokio::task::spawn_blocking({
        let demo = || data.posthaste().args(["demo", "--rounds", "2", "--json"]);
        let (first, again) = (demo(), demo());
        move || {
            first.run().ok();
            again.run()
        }
    });
    let page = ran.await.unwrap().ok().json();
    assert_eq!(page["page"], format!("{}/r/demo/ui", office.url()));
    let visitor = Visitor::signed_in(&office, &key(data.path())).await;
    for (path, shown) in [
        ("/r/demo/ui", "Idempotency keys for refunds"),
        ("/r/demo/ui/agents?look=tree", "builder-north"),
        ("/r/demo/ui/conversations", "PAY-412"),
        ("/r/demo/ui/tasks/PAY-412", "Where the time went"),
        ("/r/demo/ui/reservations", "acme/payments"),
        ("/r/demo/ui/search?q=ledger", "<mark>ledger</mark>"),
    ] {
        let got = visitor.get(path).await;
        assert!(got.text.contains(shown), "{path} does not show {shown}: {}", got.text);
    }
}
