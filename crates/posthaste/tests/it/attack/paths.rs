//! Names that would be paths: nobody gets out of the folder that a name is for.

use std::path::Path;

use serde_json::json;

use crate::harness::TestDir;
use crate::mcp_client::Mcp;
use crate::office::Office;

const CLIMBING: [&str; 10] = [
    "../../../../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/etc/passwd",
    "....//....//etc/passwd",
    "..\\..\\etc\\passwd",
    "/etc/passwd",
    "%00/etc/passwd",
    "~/.ssh/id_rsa",
    "page.css/../../../../etc/passwd",
    "C:\\windows\\win.ini",
];

fn listing(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        found.push(path.display().to_string());
        if path.is_dir() {
            found.extend(listing(&path));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn no_address_leads_out_of_the_office() {
    let outer = TestDir::new();
    let data = outer.path().join("data");
    let office = Office::open(&data);
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    outer.write("secret.txt", "hush");
    let before: Vec<String> =
        listing(outer.path()).into_iter().filter(|path| !path.contains("/data/")).collect();
    for name in CLIMBING.iter().copied().chain(["../secret.txt", "..%2fsecret.txt", "..%2f..%2fsecret.txt"]) {
        for path in [
            format!("/ui/assets/{name}"),
            format!("/r/{name}/health"),
            format!("/r/{name}/x-posthaste/export"),
            format!("/ui/conversations/{name}/export"),
            format!("/ui/letters/{name}"),
            format!("/identity/{name}"),
            format!("/tasks/{name}/events"),
        ] {
            // As it is: a client would tidy the address up.
            let url = format!("{}{path}", office.url());
            let Ok(answer) = http.get(url).bearer_auth(office.token()).send().await else { continue };
            let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
            assert!(!text.contains("root:") && !text.contains("hush"), "{path}: {text}");
            assert!(status < 500 || status == 503, "{path}: {status}");
        }
        for (method, params) in [
            ("realm.open", json!({ "name": name })),
            ("nudge", json!({ "to": name, "type": "check", "message": "x" })),
        ] {
            assert!(office.call(method, params).await.is_err(), "{method} {name}");
        }
    }
    let after: Vec<String> =
        listing(outer.path()).into_iter().filter(|path| !path.contains("/data/")).collect();
    assert_eq!(before, after, "nothing was made outside");
}

#[tokio::test]
async fn attachments_come_from_the_project_and_never_from_the_office() {
    let outer = TestDir::new();
    let (data, project) = (outer.path().join("data"), outer.path().join("app"));
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("notes.txt"), "fine").unwrap();
    outer.write("secret.txt", "hush");
    #[cfg(unix)]
    std::os::unix::fs::symlink(outer.path().join("secret.txt"), project.join("link.txt")).unwrap();
    let office = Office::open(&data);
    let app = project.to_str().unwrap();
    let agent = Mcp::bearer(&office, "agent", "ann").await;
    agent.project(app, &["ann", "bob"]).await;
    let send = |project: &str, file: &str| {
        json!({ "project_key": project, "sender_name": "ann", "to": ["bob"], "subject": "s", "body_md": "b",
                "attachment_paths": [file] })
    };
    agent.call("send_message", send(app, "notes.txt")).await;
    let key = data.join("admin.token");
    for file in ["../secret.txt", "link.txt", "/etc/passwd", key.to_str().unwrap(), "../data/admin.token"] {
        let (code, why) = agent.fails("send_message", send(app, file)).await;
        assert_eq!(code, "ATTACHMENT_REFUSED", "{file}: {why}");
    }
    // A project may call itself as wide as the machine; that opens nothing.
    for wide in ["/", outer.path().to_str().unwrap(), data.to_str().unwrap()] {
        agent.project(wide, &["ann", "bob"]).await;
        let (code, why) = agent.fails("send_message", send(wide, key.to_str().unwrap())).await;
        assert_eq!(code, "ATTACHMENT_REFUSED", "{wide}: {why}");
    }
    let (code, _) = agent.fails("send_message", send("/", "/etc/hostname")).await;
    assert_eq!(code, "ATTACHMENT_REFUSED");
    // Not even for those who run it: a key that is mailed is a key no more.
    let operator = Mcp::operator(&office);
    let (code, _) = operator.fails("send_message", send(app, key.to_str().unwrap())).await;
    assert_eq!(code, "ATTACHMENT_REFUSED");
}
