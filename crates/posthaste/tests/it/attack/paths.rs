//! Names that look like paths, and paths outside the work trees: none of them reads or creates a file elsewhere.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::TestDir;
use crate::mcp::client::Mcp;
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
async fn paths_in_names_reach_no_file() {
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
            format!("/ui/messages/{name}"),
            format!("/identity/{name}"),
            format!("/tasks/{name}/events"),
        ] {
            // Most clients would normalise the path.
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
    assert_eq!(before, after, "nothing was created outside");
}

fn message(project: &str) -> Value {
    json!({ "project_key": project, "sender_name": "ann", "to": ["bob"], "subject": "s", "body_md": "b" })
}

fn with_path(project: &str, file: &str) -> Value {
    let mut given = message(project);
    given["attachment_paths"] = json!([file]);
    given
}

#[tokio::test]
async fn files_are_attached_by_path_from_named_work_trees_only() {
    let outer = TestDir::new();
    let (data, app, other) =
        (outer.path().join("data"), outer.path().join("app"), outer.path().join("other"));
    for folder in [&app, &other] {
        std::fs::create_dir_all(folder.join(".git")).unwrap();
        std::fs::write(folder.join("notes.txt"), "fine").unwrap();
        std::fs::write(folder.join(".git/config"), "url = https://user:password@example.org\n").unwrap();
    }
    outer.write("secret.txt", "hush");
    std::os::unix::fs::symlink(outer.path().join("secret.txt"), app.join("link.txt")).unwrap();
    std::os::unix::fs::symlink(outer.path(), app.join("up")).unwrap();
    std::os::unix::fs::symlink("/proc/self", app.join("proc")).unwrap();
    pipe(&app.join("pipe"));
    let app = app.to_str().unwrap();
    let office = Office::open_in(&data, outer.path(), &["--project", app]);
    let agent = Mcp::bearer(&office, "agent", "ann").await;
    agent.project(app, &["ann", "bob"]).await;
    agent.call("send_message", with_path(app, "notes.txt")).await;
    agent.call("send_message", with_path(app, &format!("{app}/notes.txt"))).await;
    let key = data.join("admin.token");
    let key = key.to_str().unwrap();
    let elsewhere =
        ["../secret.txt", "link.txt", "up/secret.txt", "proc/environ", "pipe", ".git/config", "/etc/passwd"];
    for file in elsewhere.into_iter().chain([key, "../data/admin.token", "/proc/self/environ", "/dev/zero"]) {
        let (code, why) = agent.fails("send_message", with_path(app, file)).await;
        assert_eq!(code, "ATTACHMENT_REFUSED", "{file}: {why}");
    }
    // A project path from a caller opens no file, not even for the operator.
    let operator = Mcp::operator(&office);
    let wide = ["/", "/etc", "/proc/self", "/dev", outer.path().to_str().unwrap(), data.to_str().unwrap()];
    for project in wide.into_iter().chain([other.to_str().unwrap()]) {
        agent.project(project, &["ann", "bob"]).await;
        for file in ["passwd", "environ", "secret.txt", "admin.token", "notes.txt", key] {
            for caller in [&agent, &operator] {
                let (code, why) = caller.fails("send_message", with_path(project, file)).await;
                assert_eq!(code, "ATTACHMENT_REFUSED", "{project} {file}: {why}");
                assert!(why.contains("'attachments'"), "it says what to do instead: {why}");
            }
        }
    }
    // Agents of another realm cannot attach files of the work trees.
    let sue = realm_bearer(&office, "shop", "sue").await;
    sue.project(app, &["ann", "bob"]).await;
    assert_eq!(sue.fails("send_message", with_path(app, "notes.txt")).await.0, "ATTACHMENT_REFUSED");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn a_tree_that_is_too_wide_gives_no_files() {
    let outer = TestDir::new();
    let data = outer.path().join("data");
    outer.write("secret.txt", "hush");
    let wide = outer.path().to_str().unwrap();
    let office =
        Office::open_in(&data, outer.path(), &["--project", wide, "--project", "/", "--project", "/etc/.."]);
    let agent = Mcp::bearer(&office, "agent", "ann").await;
    agent.project(wide, &["ann", "bob"]).await;
    for file in ["secret.txt", "data/admin.token", "/etc/hostname"] {
        assert_eq!(
            agent.fails("send_message", with_path(wide, file)).await.0,
            "ATTACHMENT_REFUSED",
            "{file}"
        );
    }
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn bytes_are_attached_in_the_call() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let agent = Mcp::bearer(&office, "agent", "ann").await;
    agent.project("/srv/app", &["ann", "bob"]).await;
    let with = |files: Value| {
        let mut given = message("/srv/app");
        given["attachments"] = files;
        given
    };
    let sent = agent.call("send_message", with(json!([{ "name": "a.png", "data": "aGVsbG8=" }]))).await;
    let file = &sent["attachments"][0];
    assert_eq!((&file["size"], &file["media_type"]), (&json!(5), &json!("image/png")));
    let id = sent["deliveries"][0]["payload"]["id"].clone();
    let hash = file["sha256"].as_str().unwrap();
    let uri = format!("resource://attachment/{id}/{hash}?project=/srv/app&agent=bob");
    let read = agent.method("resources/read", json!({ "uri": uri })).await;
    assert_eq!(read["result"]["contents"][0]["blob"], "aGVsbG8=", "{read}");
    let many: Vec<Value> = (0..21).map(|n| json!({ "name": format!("{n}"), "data": "" })).collect();
    for (files, code) in [
        (json!([{ "name": "../a", "data": "" }]), "ATTACHMENT_REFUSED"),
        (json!([{ "name": "a", "data": "%%%" }]), "ATTACHMENT_REFUSED"),
        (json!([{ "name": "a" }]), "ATTACHMENT_REFUSED"),
        (json!([{ "name": "a", "data": "", "media_type": "text/html; x" }]), "ATTACHMENT_REFUSED"),
        (json!("a"), "INVALID_ARGUMENT"),
        (json!(many), "TOO_MANY"),
    ] {
        assert_eq!(agent.fails("send_message", with(files.clone())).await.0, code, "{files}");
    }
    // A path is not accepted as a hash.
    for hash in ["..", "../../../admin.token", "%2e%2e%2f%2e%2e%2fadmin.token"] {
        let uri = format!("resource://attachment/{id}/{hash}?project=/srv/app&agent=bob");
        assert!(agent.method("resources/read", json!({ "uri": uri })).await["error"].is_object());
    }
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn a_project_path_is_only_a_name() {
    let (dir, work) = (TestDir::new(), TestDir::new());
    let top = work.path().canonicalize().unwrap();
    for name in ["fifo", "zero", "tree"] {
        std::fs::create_dir(top.join(name)).unwrap();
    }
    pipe(&top.join("fifo/.git"));
    std::os::unix::fs::symlink("/dev/zero", top.join("zero/.git")).unwrap();
    // A linked work tree of a repository that the operator did not name.
    std::fs::create_dir_all(top.join("repo/.git/worktrees/tree")).unwrap();
    std::fs::write(top.join("tree/.git"), format!("gitdir: {}/repo/.git/worktrees/tree\n", top.display()))
        .unwrap();
    let office = Office::open_in(dir.path(), Path::new("/"), &[]);
    let agent = Mcp::bearer(&office, "agent", "ann").await;
    for name in ["fifo", "zero", "repo", "tree"] {
        let path = top.join(name);
        agent.project(path.to_str().unwrap(), &["ann"]).await;
        let given = json!({ "project_key": path, "agent_name": "ann", "paths": ["a"] });
        agent.call("file_reservation_paths", given).await;
    }
    let slug = |name: &str| {
        let (agent, path) = (agent.clone(), top.join(name));
        async move { agent.call("ensure_project", json!({ "human_key": path })).await["slug"].clone() }
    };
    assert_ne!(slug("repo").await, slug("tree").await);
    // If the operator names the repository, its linked work trees belong to it, later ones too.
    assert_eq!(office.close(), Some(0));
    let repo = top.join("repo");
    let office =
        Office::open_in(&dir.path().join("fresh"), Path::new("/"), &["--project", repo.to_str().unwrap()]);
    let agent = Mcp::bearer(&office, "agent", "ann").await;
    std::fs::write(repo.join(".git/worktrees/tree/gitdir"), format!("{}/tree/.git\n", top.display()))
        .unwrap();
    let found = agent.call("ensure_project", json!({ "human_key": top.join("tree") })).await;
    assert_eq!(found["slug"], "main");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn project_paths_of_one_realm_do_not_exist_in_another() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let sue = realm_bearer(&office, "shop", "sue").await;
    sue.project("/srv/crown-jewels", &["sam"]).await;
    let (ann, sam) = (Mcp::bearer(&office, "agent", "ann").await, Mcp::bearer(&office, "user", "sam").await);
    // Ann's project is not Sue's, though Sue named the path first.
    let project = ann.project("/srv/crown-jewels", &["ann", "bob"]).await;
    assert_eq!(project["slug"], "srv-crown-jewels");
    ann.send("/srv/crown-jewels", "ann", "bob", "ours").await;
    let found =
        sue.call("search_messages", json!({ "project_key": "/srv/crown-jewels", "query": "ours" })).await;
    assert_eq!(found, json!([]));
    // The default realm's Sam is not the shop's Sam, and has no access to the shop.
    for (tool, given) in [
        ("fetch_inbox", json!({ "project_key": "shop", "agent_name": "sam" })),
        ("list_agents", json!({ "project_key": "shop" })),
    ] {
        assert_eq!(sam.fails(tool, given).await.0, "PROJECT_NOT_FOUND");
    }
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn a_token_is_not_taken_for_an_agent_of_its_name_in_another_realm() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let sam = Mcp::bearer(&office, "user", "sam").await;
    let project = sam.project("/srv/app", &["BlueLake"]).await;
    let realm = project["slug"].as_str().unwrap().to_owned();
    // Another Sam, with a token of the project's realm.
    let theirs = realm_bearer(&office, &realm, "sam").await;
    theirs.project("/srv/app", &["sam"]).await;
    sam.send("/srv/app", "BlueLake", "sam", "to their Sam").await;
    let inbox = |name: &str| json!({ "project_key": "/srv/app", "agent_name": name });
    assert_eq!(theirs.call("fetch_inbox", inbox("sam")).await[0]["subject"], "to their Sam");
    assert_eq!(sam.fails("fetch_inbox", inbox("sam")).await.0, "AUTHENTICATION_REQUIRED");
    assert_eq!(theirs.fails("fetch_inbox", inbox("BlueLake")).await.0, "AUTHENTICATION_REQUIRED");
    let register = json!({ "project_key": "/srv/app", "program": "p", "model": "m", "name": "sam" });
    assert_eq!(sam.fails("register_agent", register).await.0, "NAME_TAKEN");
    // Nor can an agent of the project's realm register as the default realm's Sam, who owns agents there.
    let squatter = office.as_bearer(theirs.token.as_deref().unwrap()).in_realm(&realm);
    assert!(squatter.call("register", json!({ "id": "sam@main" })).await.is_err());
    // An administrator of the default realm administers that realm, not the project's.
    let admin = Mcp::bearer(&office, "admin", "root").await;
    assert_eq!(admin.fails("fetch_inbox", inbox("sam")).await.0, "AUTHENTICATION_REQUIRED");
    let found = admin.call("search_messages", json!({ "project_key": "/srv/app", "query": "Sam" })).await;
    assert_eq!(found, json!([]));
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn projects_per_token_are_limited() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let agent = Mcp::bearer(&office, "agent", "mallory").await;
    for number in 0..20 {
        agent.call("ensure_project", json!({ "human_key": format!("/nowhere/p{number}") })).await;
    }
    let (code, why) = agent.fails("ensure_project", json!({ "human_key": "/nowhere/p20" })).await;
    assert_eq!(code, "TOO_MANY");
    assert!(why.contains("ask the operator"), "{why}");
    agent.call("ensure_project", json!({ "human_key": "/nowhere/p3" })).await;
    // Projects that are names within another realm count too.
    let sue = realm_bearer(&office, "shop", "sue").await;
    for number in 0..20 {
        sue.call("ensure_project", json!({ "human_key": format!("/names/p{number}") })).await;
    }
    assert_eq!(sue.fails("ensure_project", json!({ "human_key": "/names/p20" })).await.0, "TOO_MANY");
    Mcp::operator(&office).call("ensure_project", json!({ "human_key": "/nowhere/p20" })).await;
    assert_eq!(office.close(), Some(0));
}

/// The bearer of an agent's token of a realm, at that realm's door.
async fn realm_bearer(office: &Office, realm: &str, name: &str) -> Mcp {
    drop(office.call("realm.open", json!({ "name": realm })).await);
    let operator = office.as_bearer(office.token()).in_realm(realm);
    let made = operator.call("token.create", json!({ "role": "agent", "name": name })).await.unwrap();
    Mcp::at(&format!("{}/r/{realm}/mcp", office.url()), made["token"].as_str())
}

fn pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}
