//! Which realm a session lands in: what `connect` claims, what the operator moves, and what callers cannot change.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Ran, TestDir};
use crate::mcp::client::Mcp;
use crate::office::Office;

/// Runs the program in a directory, with a home of its own.
fn posthaste(data: &TestDir, here: &Path, home: &Path, words: &[&str]) -> Ran {
    let mut posthaste = data.posthaste().args(words.iter().copied()).env("HOME", home);
    posthaste.command.current_dir(here);
    posthaste.run()
}

/// Runs the program in any directory.
fn at(data: &TestDir, words: &[&str]) -> Ran {
    posthaste(data, Path::new("/"), Path::new("/"), words)
}

fn git_init(top: &Path) {
    std::fs::create_dir_all(top).unwrap();
    let done = Command::new("git").args(["init", "-q"]).arg(top).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// The token that the data directory keeps for a client.
fn token_of(data: &TestDir, client: &str) -> String {
    let kept = std::fs::read_dir(data.path().join("clients")).unwrap().map(|file| {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()
    });
    let found = kept.into_iter().find(|kept| kept["client"] == client).expect("a token of the client");
    found["token"].as_str().unwrap().to_owned()
}

async fn start(mcp: &Mcp, here: &Path, name: &str) -> Value {
    let given = json!({ "human_key": here, "program": "test", "model": "m", "agent_name": name });
    mcp.call("macro_start_session", given).await
}

// F2: README's steps lead to one address book.
#[tokio::test]
async fn connected_directories_share_one_address_book() {
    let (data, elsewhere, work) = (TestDir::new(), TestDir::new(), TestDir::new());
    let root = work.path().canonicalize().unwrap();
    let (repo, home) = (root.join("repo"), root.join("home"));
    let (deep, app) = (repo.join("src/deep"), home.join("work/app"));
    git_init(&repo);
    for folder in [&deep, &app] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let office = Office::open_in(data.path(), elsewhere.path(), &[]);
    // In a directory below the top of a git work tree; and from a directory that is none.
    let said = posthaste(&data, &repo.join("src"), &home, &["connect", "claude-code", "--write"]).ok().stdout;
    let line = format!("sessions in {} share the address book of realm main", repo.display());
    assert!(said.contains(&line), "{said}");
    let said = posthaste(&data, &home, &home, &["connect", "codex", "--write"]).ok().stdout;
    assert!(said.contains(&format!("sessions in {} share", home.display())), "{said}");

    let url = format!("{}/mcp", office.url());
    let claude = Mcp::at(&url, Some(&token_of(&data, "claude-code")));
    let codex = Mcp::at(&url, Some(&token_of(&data, "codex")));
    for (mcp, here, name, project) in [
        (&claude, &repo, "GreenHill", &repo),
        (&claude, &deep, "BlueLake", &repo),
        (&codex, &app, "RedFox", &home),
    ] {
        let started = start(mcp, here, name).await;
        let found = &started["project"];
        assert_eq!((&found["slug"], &found["realm"]), (&json!("main"), &json!("main")), "{started}");
        assert_eq!(found["human_key"], json!(project), "the project is what was claimed");
        assert_eq!(found["note"], Value::Null, "{started}");
        // F16: the shell's line comes with the answer.
        assert_eq!(started["agent"]["shell"], format!("export POSTHASTE_AGENT={name}"));
    }
    // One address book, for people and agents alike.
    let agents = at(&data, &["agents", "--json"]).ok().stdout;
    for name in ["GreenHill", "BlueLake", "RedFox"] {
        assert!(agents.contains(name), "{agents}");
    }
    codex.send(app.to_str().unwrap(), "RedFox", "GreenHill", "across").await;
    let inbox = at(&data, &["inbox", "--agent", "GreenHill", "--json"]).ok().stdout;
    assert!(inbox.contains("across"), "{inbox}");
    let tail = at(&data, &["tail", "--after", "0", "--no-follow"]).ok().stdout;
    assert!(tail.contains("GreenHill") && tail.contains("RedFox"), "{tail}");
    // No realm was made besides.
    let realms = at(&data, &["realms", "list", "--json"]).ok().json();
    let realms = &realms["realms"];
    let names: Vec<&str> = realms.as_array().unwrap().iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["main"], "{realms}");
    assert_eq!((&realms[0]["default"], &realms[0]["messages"]), (&json!(true), &json!(1)), "{realms}");
    assert_eq!(office.close(), Some(0));
}

// F2: a session in a path that was not connected learns its realm, and the path can be moved at once.
#[tokio::test]
async fn projects_are_listed_moved_and_released_while_sessions_run() {
    let (data, log) = (TestDir::new(), TestDir::new());
    let log = log.path().join("log");
    let office = Office::open_logging(data.path(), [], &log);
    let ann = Mcp::bearer(&office, "user", "ann").await;
    let app = Path::new("/srv/app");
    let started = start(&ann, app, "GreenHill").await;
    assert_eq!(started["project"]["slug"], "srv-app");
    let note = started["project"]["note"].as_str().unwrap();
    assert!(note.contains("posthaste projects move /srv/app main"), "{note}");
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(logged.contains("posthaste projects move /srv/app main"), "{logged}");
    start(&ann, app, "BlueLake").await;
    ann.send("/srv/app", "GreenHill", "BlueLake", "kept").await;

    let row = |rows: &Value, path: &str| {
        let rows = rows["projects"].as_array().unwrap();
        rows.iter().find(|row| row["path"] == path).cloned().unwrap_or(Value::Null)
    };
    let before = row(&at(&data, &["projects", "list", "--json"]).ok().json(), "/srv/app");
    assert_eq!(
        (&before["realm"], &before["agents"], &before["messages"], &before["by"]),
        (&json!("srv-app"), &json!(2), &json!(1), &json!("ann"))
    );
    assert!(at(&data, &["projects", "list"]).ok().stdout.contains("/srv/app"));
    // A realm that does not exist is not made by a slip of the pen.
    let wrong = at(&data, &["projects", "move", "/srv/app", "mian"]);
    assert!(wrong.code != 0 && wrong.stderr.contains("there is no realm mian"), "{}", wrong.stderr);
    let moved = at(&data, &["projects", "move", "/srv/app", "main"]).ok().stdout;
    assert!(moved.contains("sessions in /srv/app share the address book of realm main"), "{moved}");
    assert!(moved.contains("realm srv-app (2 agents, 1 message) stays there"), "{moved}");
    // The next call of the same session, below the path, too.
    assert_eq!(start(&ann, app, "GreenHill").await["project"]["slug"], "main");
    let below = ann.call("ensure_project", json!({ "human_key": "/srv/app/src" })).await;
    assert_eq!((&below["slug"], &below["human_key"]), (&json!("main"), &json!("/srv/app")));
    // What was written before can still be read, by its realm's name.
    let old = json!({ "project_key": "srv-app", "agent_name": "BlueLake" });
    assert_eq!(ann.call("fetch_inbox", old.clone()).await[0]["subject"], "kept");
    // Taken back, the path has its own realm again, with what is in it.
    let released = at(&data, &["projects", "release", "/srv/app"]).ok().stdout;
    assert!(released.contains("a realm of its own"), "{released}");
    assert_eq!(ann.call("fetch_inbox", old).await[0]["subject"], "kept");
    assert_eq!(start(&ann, app, "GreenHill").await["project"]["slug"], "srv-app");
    let again = at(&data, &["projects", "release", "/srv/nothing"]);
    assert!(again.code != 0 && again.stderr.contains("projects list"), "{}", again.stderr);
    assert_eq!(office.close(), Some(0));
    // The same without a server, and it holds after the next start.
    at(&data, &["projects", "move", "/srv/app", "main", "--json"]).ok();
    let office = Office::open_in(data.path(), Path::new("/"), &[]);
    let ann = Mcp::bearer(&office, "user", "ann").await;
    assert_eq!(ann.call("ensure_project", json!({ "human_key": "/srv/app" })).await["slug"], "main");
    assert_eq!(office.close(), Some(0));
}

// F2: `connect` does not move a realm with mail in it, and says what to type.
#[tokio::test]
async fn connect_leaves_a_realm_with_messages_where_it_is() {
    let (data, work) = (TestDir::new(), TestDir::new());
    let root = work.path().canonicalize().unwrap();
    let (full, empty) = (root.join("full"), root.join("empty"));
    for folder in [&full, &empty] {
        std::fs::create_dir_all(folder.join("part")).unwrap();
    }
    let office = Office::open_in(data.path(), Path::new("/"), &[]);
    let ann = Mcp::bearer(&office, "user", "ann").await;
    for folder in [&full, &empty, &empty.join("part")] {
        start(&ann, folder, "GreenHill").await;
    }
    let place = full.to_str().unwrap();
    ann.send(place, "GreenHill", "GreenHill", "to myself").await;
    let realm = ann.call("ensure_project", json!({ "human_key": full })).await["slug"].clone();
    let said = posthaste(&data, &full, &root, &["connect", "claude-code", "--write"]).ok().stdout;
    let told = format!("go to realm {} (1 agent, 1 message)", realm.as_str().unwrap());
    assert!(
        said.contains(&told) && said.contains(&format!("posthaste projects move {place} main")),
        "{said}"
    );
    assert_eq!(ann.call("ensure_project", json!({ "human_key": full })).await["slug"], realm);
    // A realm without messages is abandoned, and claims below the path stay; both are reported.
    let said = posthaste(&data, &empty, &root, &["connect", "claude-code", "--write"]).ok().stdout;
    assert!(said.contains("share the address book of realm main") && said.contains("no messages"), "{said}");
    let part = empty.join("part");
    assert!(said.contains(&format!("posthaste projects move {} main", part.display())), "{said}");
    assert_eq!(ann.call("ensure_project", json!({ "human_key": empty })).await["slug"], "main");
    // A path that was claimed for itself stays so until the operator says otherwise.
    assert_ne!(ann.call("ensure_project", json!({ "human_key": part })).await["slug"], "main");
    at(&data, &["projects", "release", part.to_str().unwrap()]).ok();
    assert_eq!(ann.call("ensure_project", json!({ "human_key": part })).await["slug"], "main");
    assert_eq!(office.close(), Some(0));
    // JSON has it; without a server as well.
    let shown = posthaste(&data, &root, &root, &["connect", "codex", "--write", "--json"]).ok().json();
    assert_eq!((&shown["project"]["realm"], &shown["project"]["shared"]), (&json!("main"), &json!(true)));
}

// F2: a `--project` that cannot be honoured stops the start, and says why.
#[tokio::test]
async fn a_project_flag_that_cannot_be_honoured_stops_serve() {
    let (data, work) = (TestDir::new(), TestDir::new());
    let top = work.path().canonicalize().unwrap().join("app");
    std::fs::create_dir_all(&top).unwrap();
    let path = top.to_str().unwrap();
    let office = Office::open_in(data.path(), Path::new("/"), &[]);
    start(&Mcp::bearer(&office, "user", "ann").await, &top, "GreenHill").await;
    assert_eq!(office.close(), Some(0));
    let serve = |project: &str| at(&data, &["serve", "--listen", "127.0.0.1:0", "--project", project]);
    let ran = serve(path);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let line = format!("posthaste projects move {path} main");
    assert!(ran.stderr.contains(&line) && ran.stdout.is_empty(), "{}", ran.stderr);
    let file = work.write("file.txt", "x");
    let ran = serve(file.to_str().unwrap());
    assert!(ran.code == 2 && ran.stderr.contains("not a directory"), "{}", ran.stderr);
    let ran = serve("./nowhere");
    assert!(ran.code == 2 && ran.stderr.contains("no such directory"), "{}", ran.stderr);
    // The suggested command is all that is needed.
    at(&data, &["projects", "move", path, "main"]).ok();
    let office = Office::open_in(data.path(), Path::new("/"), &["--project", path]);
    let ann = Mcp::bearer(&office, "user", "ann").await;
    assert_eq!(ann.call("ensure_project", json!({ "human_key": path })).await["slug"], "main");
    assert_eq!(office.close(), Some(0));
}

/// What callers name does not decide about the paths of others, and a realm's own callers stay in it.
#[tokio::test]
async fn only_the_operators_claims_stand_for_what_lies_below() {
    let data = TestDir::new();
    let office = Office::open_in(data.path(), Path::new("/"), &[]);
    let mallory = Mcp::bearer(&office, "agent", "mallory").await;
    for wide in ["/", "/srv", "/srv/team"] {
        mallory.project(wide, &["spy"]).await;
    }
    let ann = Mcp::bearer(&office, "user", "ann").await;
    let app = ann.project("/srv/team/app", &["ann"]).await;
    assert_eq!(app["slug"], "srv-team-app", "a realm of its own");
    // The nearest claim counts for every caller.
    office.call("project.claim", json!({ "names": ["/work"] })).await.unwrap();
    office.call("realm.open", json!({ "name": "shop" })).await.unwrap();
    office.call("project.move", json!({ "path": "/work/shop", "realm": "shop" })).await.unwrap();
    for (path, slug) in [("/work/a/b", "main"), ("/work/shop/x", "shop"), ("/workshop", "workshop")] {
        assert_eq!(ann.call("ensure_project", json!({ "human_key": path })).await["slug"], slug, "{path}");
    }
    // Callers of another realm find their own, whatever the default realm's list says.
    let made = office.as_bearer(office.token()).in_realm("shop");
    let token = made.call("token.create", json!({ "role": "user", "name": "sue" })).await.unwrap();
    let sue = Mcp::at(&format!("{}/r/shop/mcp", office.url()), token["token"].as_str());
    for path in ["/work/a/b", "/work/shop/x", "/srv/team/app", "/anything"] {
        assert_eq!(sue.call("ensure_project", json!({ "human_key": path })).await["slug"], "shop", "{path}");
    }
    // Administrators of the default realm bring its paths home; into a realm with callers of its own only the operator
    // sends them. Those of another realm have no say in the default realm's list, nor does anyone else.
    let admin = office.call("token.create", json!({ "role": "admin", "name": "amy" })).await.unwrap();
    let amy = office.as_bearer(admin["token"].as_str().unwrap());
    let to = |realm: &str| json!({ "path": "/srv/team/app", "realm": realm });
    assert!(amy.call("project.move", to("shop")).await.is_err());
    amy.call("project.move", to("main")).await.unwrap();
    let plain = office.as_bearer(ann.token.as_deref().unwrap());
    for (method, params) in [
        ("project.move", to("srv-team-app")),
        ("project.release", json!({ "path": "/srv/team/app" })),
        ("project.claim", json!({ "names": ["/x"] })),
        ("project.list", json!({})),
        ("realm.list", json!({})),
    ] {
        assert!(plain.call(method, params).await.is_err(), "{method}");
    }
    assert!(made.call("project.move", to("shop")).await.is_err());
    assert_eq!(office.close(), Some(0));
}

/// Two work trees of one realm are two projects: the same relative path in both is not one file.
#[tokio::test]
async fn reservations_of_one_work_tree_do_not_meet_those_of_another() {
    let data = TestDir::new();
    let office = Office::open_in(data.path(), Path::new("/"), &[]);
    for tree in ["/work/one", "/work/two"] {
        office.call("project.claim", json!({ "names": [tree] })).await.unwrap();
    }
    let mcp = Mcp::operator(&office);
    mcp.project("/work/one", &["ann", "bob"]).await;
    let hold = |key: &str, agent: &str, path: &str| json!({ "project_key": key, "agent_name": agent, "paths": [path] });
    mcp.call("file_reservation_paths", hold("/work/one/src", "ann", "a.rs")).await;
    let held = mcp.call("file_reservation_paths", hold("/work/two", "bob", "src/a.rs")).await;
    assert_eq!(held["conflicts"], json!([]), "another work tree");
    for (key, path) in
        [("/work/one", "src/a.rs"), ("/work/one/src", "a.rs"), ("/work/one/src", "/work/one/src/a.rs")]
    {
        let held = mcp.call("file_reservation_paths", hold(key, "bob", path)).await;
        assert_eq!(held["conflicts"].as_array().unwrap().len(), 1, "{key} {path}: {held}");
    }
    assert_eq!(office.close(), Some(0));
}

/// The command line and agents mean the same file by the same path, in whichever connected work tree.
#[tokio::test]
async fn a_reservation_by_command_is_one_of_the_directorys_project() {
    let (data, work) = (TestDir::new(), TestDir::new());
    let root = work.path().canonicalize().unwrap();
    let office = Office::open_in(data.path(), Path::new("/"), &[]);
    for name in ["one", "two"] {
        std::fs::create_dir(root.join(name)).unwrap();
        posthaste(&data, &root.join(name), &root, &["connect", "claude-code", "--write"]).ok();
    }
    let mcp = Mcp::operator(&office);
    let two = root.join("two");
    mcp.project(two.to_str().unwrap(), &["ann"]).await;
    let reserve = ["reserve", "src/a.rs", "--agent", "bob", "--json"];
    let held = posthaste(&data, &two, &root, &reserve).ok().json();
    assert_eq!(held["scope"], json!(format!("project:{}", two.display())));
    let given = json!({ "project_key": two, "agent_name": "ann", "paths": ["src/a.rs"] });
    let found = mcp.call("file_reservation_paths", given).await;
    assert_eq!(found["conflicts"][0]["holders"][0]["agent"], "bob", "{found}");
    // The first work tree is the realm's own project.
    let held = posthaste(&data, &root.join("one"), &root, &reserve).ok().json();
    assert_eq!(held["scope"], "project:main");
    let released = posthaste(&data, &two, &root, &["release", "--agent", "bob", "--json"]).ok().json();
    assert_eq!(released["released"].as_array().unwrap().len(), 1, "{released}");
    assert_eq!(office.close(), Some(0));
}
