//! Attachments through every door: a file sent through one can be read through every other.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::harness::{LONG, TestDir, eventually};
use crate::map::client::Client;
use crate::office::{Office, Trouble};
use crate::web::Visitor;

/// The status, some headers and the body of a GET with a token.
async fn get(office: &Office, path: &str, token: &str) -> (u16, String, Vec<u8>) {
    let request = reqwest::Client::new().get(format!("{}{path}", office.url())).bearer_auth(token);
    let answer = request.send().await.unwrap();
    let header =
        |name: &str| answer.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    let headers = format!("{}|{}", header("content-disposition"), header("x-content-type-options"));
    (answer.status().as_u16(), headers, answer.bytes().await.unwrap().to_vec())
}

async fn token(office: &Office, name: &str) -> String {
    let made = office.call("token.create", json!({ "role": "agent", "name": name })).await.unwrap();
    made["token"].as_str().unwrap().to_owned()
}

// F18: from the command line to a file, under a safe name.
#[tokio::test]
async fn the_command_line_sends_lists_and_saves_files() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    office.register("ann").await;
    let [plan, notes] = [dir.write("plan.txt", "the plan"), dir.write("notes.md", "# notes")];
    let [plan, notes] = [plan.to_str().unwrap(), notes.to_str().unwrap()];
    let args = ["send", "--from", "me", "--to", "ann", "--body", "look", "--attach", plan, "--attach", notes];
    let sent = dir.posthaste().args(args).args(["--json"]).run().ok().json();
    let id = sent["id"].as_str().unwrap();
    let shown = dir.posthaste().args(["read", id, "--agent", "ann"]).run().ok();
    assert!(shown.stdout.contains("plan.txt (8 B, text/plain)"), "{}", shown.stdout);
    let saved = dir.path().join("saved");
    for _ in 0..2 {
        let args = ["read", id, "--agent", "ann", "--save", saved.to_str().unwrap(), "--json"];
        let read = dir.posthaste().args(args).run().ok().json();
        assert_eq!(read["attachments"].as_array().unwrap().len(), 2);
        assert_eq!(read["saved"].as_array().unwrap().len(), 2);
    }
    assert_eq!(fs::read_to_string(saved.join("plan.txt")).unwrap(), "the plan");
    assert_eq!(fs::read_to_string(saved.join("plan-2.txt")).unwrap(), "the plan");
    assert_eq!(fs::read_to_string(saved.join("notes.md")).unwrap(), "# notes");
    let answered = ["reply", id, "--from", "ann", "--body", "here", "--attach", plan, "--json"];
    let answered = dir.posthaste().args(answered).run().ok().json();
    let read =
        dir.posthaste().args(["read", answered["id"].as_str().unwrap(), "--agent", "me", "--json"]).run();
    assert_eq!(read.ok().json()["attachments"][0]["name"], "plan.txt");
    let missing = dir.posthaste().args(["send", "--to", "ann", "--body", "x", "--attach", "/nowhere"]).run();
    assert_eq!(missing.code, 2, "{}", missing.stderr);
    assert_eq!(office.close(), Some(0));
}

// F18: participants of the message download the file with their tokens; others do not learn that it exists.
#[tokio::test]
async fn only_participants_of_a_message_read_its_files() {
    let dir = TestDir::new();
    let office = Office::open(dir.path());
    let [ann, bob, eve] =
        [token(&office, "ann").await, token(&office, "bob").await, token(&office, "eve").await];
    for (name, token) in [("ann", &ann), ("bob", &bob), ("eve", &eve)] {
        office.as_bearer(token).call("register", json!({ "id": name })).await.unwrap();
    }
    let file = json!({ "name": "a \"b\".html", "media_type": "text/html", "data": STANDARD.encode("<b>") });
    let message = json!({ "to": ["bob"], "body": "x", "attachments": [file] });
    let sent = office.as_bearer(&ann).call("send", message).await.unwrap();
    let asked = json!({ "message": sent["id"] });
    let shown = office.as_bearer(&bob).call("message", asked).await.unwrap()["attachments"][0].clone();
    let url = shown["url"].as_str().unwrap();
    for token in [&ann, &bob] {
        let (status, headers, bytes) = get(&office, url, token).await;
        assert_eq!((status, bytes.as_slice()), (200, &b"<b>"[..]));
        assert!(
            headers.starts_with("attachment; filename=\"a _b_.html\"") && headers.ends_with("|nosniff"),
            "{headers}"
        );
    }
    assert_eq!(get(&office, url, &eve).await.0, 404);
    assert_eq!(get(&office, url, "ph_unknown").await.0, 401);
    let asked = json!({ "message": sent["id"], "sha256": shown["sha256"] });
    let refused = Err(Trouble::Refused("no_such_attachment".to_owned()));
    assert_eq!(office.as_bearer(&eve).call("attachment", asked.clone()).await, refused);
    let found = office.as_bearer(&bob).call("attachment", asked).await.unwrap();
    assert_eq!(found["data"], json!(STANDARD.encode("<b>")));
    // More than 20 files in one message are refused.
    let many =
        json!({ "to": ["bob"], "body": "x", "attachments": vec![json!({ "name": "a", "data": "" }); 21] });
    assert!(office.as_bearer(&ann).call("send", many).await.is_err());
    assert_eq!(office.close(), Some(0));
}

// F18: MAP, AIRC, mailbox files and the page each show a file with a URL to fetch it.
#[tokio::test]
async fn a_file_is_shown_at_every_door() {
    let (dir, mail) = (TestDir::new(), TestDir::new());
    fs::create_dir(mail.path().join("fil")).unwrap();
    fs::set_permissions(mail.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let office = Office::open_with(dir.path(), &["--mail-dir", mail.path().to_str().unwrap()], &[]);
    let [mapper, aircer] = [token(&office, "mapper").await, token(&office, "aircer").await];
    let mut map = Client::agent_at(office.url(), &mapper, "mapper").await;
    office.as_bearer(&aircer).call("register", json!({ "id": "aircer" })).await.unwrap();
    eventually(LONG, "the mailbox is registered", async || {
        let page = office.call("agents", json!({})).await.unwrap();
        page["agents"].as_array().unwrap().iter().any(|agent| agent["id"] == "fil")
    })
    .await;

    let file = json!({ "name": "plan.txt", "data": STANDARD.encode("the plan") });
    let message = json!({ "from": "admin", "to": ["mapper", "aircer", "fil"], "subject": "s", "body": "x",
        "attachments": [file] });
    office.call("register", json!({ "id": "admin", "kind": "user" })).await.unwrap();
    let sent = office.call("send", message).await.unwrap();
    let id = sent["id"].as_str().unwrap();

    let shown = map.message().await["meta"]["_meta"]["attachments"][0].clone();
    assert_eq!((&shown["name"], &shown["size"]), (&json!("plan.txt"), &json!(8)), "{shown}");
    let url = shown["url"].as_str().unwrap();
    assert_eq!(get(&office, url, &mapper).await.2, b"the plan");

    let inbox = reqwest::Client::new().get(format!("{}/messages/inbox", office.url())).bearer_auth(&aircer);
    let inbox: Value = serde_json::from_str(&inbox.send().await.unwrap().text().await.unwrap()).unwrap();
    let at_airc = inbox["messages"][0]["delivery"]["attachments"][0]["url"].as_str().unwrap_or_default();
    assert_eq!(get(&office, at_airc, &aircer).await.2, b"the plan", "{inbox}");

    let folder = mail.path().join("fil");
    let mut text = None;
    eventually(LONG, "the file is in the mailbox", async || {
        let files = fs::read_dir(&folder).unwrap().flatten().map(|file| file.path());
        let mut files = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
        text = files.next();
        text.is_some()
    })
    .await;
    let file: Value = serde_json::from_str(&fs::read_to_string(text.unwrap()).unwrap()).unwrap();
    assert_eq!(file["attachments"], format!("plan.txt (text/plain, 8 bytes): {url}"));

    let visitor = Visitor::signed_in(&office, office.token()).await;
    let page = visitor.get(&format!("/ui/messages/{id}")).await;
    let link = format!("/ui/messages/{id}/attachments/{}", shown["sha256"].as_str().unwrap());
    assert!(page.text.contains(&link) && page.text.contains("plan.txt"), "{}", page.text);
    assert_eq!(visitor.get(&link).await.text, "the plan");
    assert_eq!(office.close(), Some(0));
}
