//! Servers by name.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use super::{at_home, data_of};
use crate::harness::TestDir;
use crate::office::Office;

// F7: named contexts count for every command, and their tokens are never shown.
#[tokio::test]
async fn a_context_is_added_used_shown_and_removed() {
    let (dir, other, home) = (TestDir::new(), TestDir::new(), TestDir::new());
    let (office, second) = (Office::open(dir.path()), Office::open(other.path()));
    let run = |words: &[&str]| at_home(&home).args(words.iter().copied()).run();
    // The token comes by standard input or by a file.
    let mut add = at_home(&home).args(["context", "add", "prod", office.url()]);
    let mut child = add.command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(office.token().as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let file = home.write("token", second.token());
    run(&["context", "add", "test", second.url(), "--token-file", file.to_str().unwrap()]).ok();
    assert_eq!(run(&["context", "add", "prod", office.url()]).code, 2, "there is one already");
    assert_eq!(run(&["context", "add", "bad name", office.url()]).code, 2);
    assert_eq!(run(&["context", "add", "wrong", "ftp://x"]).code, 2);
    let kept = home.path().join(".config/posthaste/contexts.toml");
    let mode = std::os::unix::fs::PermissionsExt::mode(&kept.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);

    assert_eq!(run(&["whoami"]).code, 3, "none is chosen yet");
    assert_eq!(run(&["--context", "prod", "whoami", "--json"]).ok().json()["role"], "admin");
    run(&["context", "use", "prod"]).ok();
    run(&["token", "create", "--role=user", "--name=ann"]).ok();
    assert!(run(&["token", "list"]).ok().stdout.contains("ann"));
    assert!(!run(&["--context", "test", "token", "list"]).ok().stdout.contains("ann"));
    let by_variable = at_home(&home).args(["token", "list"]).env("POSTHASTE_CONTEXT", "test").run().ok();
    assert!(!by_variable.stdout.contains("ann"));
    for words in [&["context", "list"][..], &["context", "show"], &["context", "show", "prod"], &["config"]] {
        for form in [&[][..], &["--json"]] {
            let shown = run(&[words, form].concat()).ok();
            assert!(!format!("{}{}", shown.stdout, shown.stderr).contains(office.token()), "{words:?}");
        }
    }
    let shown = run(&["context", "show", "--json"]).ok().json();
    assert_eq!(shown["url"], json!(office.url()));
    assert!(shown["named"].as_str().unwrap().contains("context prod"), "{shown}");
    let shown = run(&["context", "show", "--json", "--url", second.url()]).ok().json();
    assert_eq!((&shown["url"], &shown["named"]), (&json!(second.url()), &json!("by --url")));
    assert_eq!(shown["token"], json!(null), "the context's token is not for another server");
    assert!(run(&["whoami"]).ok().stdout.contains(office.url()));
    assert_eq!(run(&["--url", second.url(), "whoami"]).code, 4, "nor is it shown to it");
    // A data directory that is named is meant, whatever context was chosen.
    let local =
        at_home(&home).args(["--data"]).args([other.path().to_str().unwrap(), "token", "list"]).run().ok();
    assert!(!local.stdout.contains("ann"));

    run(&["context", "use", "--none"]).ok();
    assert_eq!(run(&["whoami"]).code, 3);
    run(&["context", "remove", "prod"]).ok();
    assert_eq!(run(&["--context", "prod", "whoami"]).code, 2);
    assert!(!data_of(&home).exists());
    assert_eq!((office.close(), second.close()), (Some(0), Some(0)));
}

// F7: a realm that a context names is asked for there.
#[tokio::test]
async fn a_context_names_a_realm() {
    let (dir, home) = (TestDir::new(), TestDir::new());
    let office = Office::open(dir.path());
    office.call("realm.open", json!({ "name": "shop" })).await.unwrap();
    let file = home.write("token", office.token());
    let token = file.to_str().unwrap();
    let run = |words: &[&str]| at_home(&home).args(words.iter().copied()).run();
    run(&["context", "add", "shop", office.url(), "--realm", "shop", "--token-file", token]).ok();
    assert_eq!(run(&["--context", "shop", "whoami", "--json"]).ok().json()["realm"], "shop");
    assert_eq!(
        run(&["--context", "shop", "whoami", "--json", "--realm", "main"]).ok().json()["realm"],
        "main"
    );
    let missing = run(&["--context", "shop", "agents", "--realm", "nosuch"]);
    assert_eq!(missing.code, 8);
    assert!(missing.stderr.contains("there is no realm nosuch at"), "{}", missing.stderr);
    assert_eq!(office.close(), Some(0));
}
