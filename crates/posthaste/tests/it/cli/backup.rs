//! Backups: complete, checked before they take an earlier one's place, and restored whole or not at all.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::harness::TestDir;
use crate::office::Office;

/// Writes noise over a part of a file, as a failing disk does.
pub(crate) fn damage(file: &Path, at: u64, bytes: usize) {
    let mut open = fs::File::options().write(true).open(file).unwrap();
    open.seek(SeekFrom::Start(at)).unwrap();
    open.write_all(&vec![0xff; bytes]).unwrap();
}

/// A server with an agent and enough messages for a database of many pages; one of them carries a file.
async fn filled(dir: &TestDir) -> Office {
    let office = Office::open(dir.path());
    office.register("ann").await;
    for n in 0..60 {
        office.send("ann", "ann", &"words ".repeat(400), &n.to_string()).await.unwrap();
    }
    let file = json!({ "name": "plan.txt", "data": STANDARD.encode("the plan") });
    let message = json!({ "from": "ann", "to": ["ann"], "body": "see the file", "attachments": [file] });
    office.call("send", message).await.unwrap();
    office
}

fn leftovers(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with('.')).collect()
}

// F6: attachments, all realms, the list of projects and the keys; modes are such that doctor is content.
#[tokio::test]
async fn a_backup_of_everything_is_everything() {
    let (dir, target) = (TestDir::new(), TestDir::new());
    let file = dir.path().join("all.posthaste");
    let file = file.to_str().unwrap();
    let office = filled(&dir).await;
    office.call("realm.open", json!({ "name": "shop" })).await.unwrap();
    office.as_bearer(office.token()).in_realm("shop").call("register", json!({ "id": "bob" })).await.unwrap();

    let plain = dir.posthaste().args(["backup", file]).run().ok();
    assert!(plain.stderr.contains("1 other realm (shop)"), "{}", plain.stderr);
    assert!(plain.stderr.contains("admin.token"), "{}", plain.stderr);
    let whole = dir.posthaste().args(["backup", file, "--all", "--with-keys", "--force"]).run().ok();
    assert!(whole.stderr.contains("secret"), "{}", whole.stderr);
    assert_eq!(fs::metadata(file).unwrap().mode() & 0o777, 0o600);
    assert_eq!(office.close(), Some(0));

    // A directory that is there already, open to all.
    fs::create_dir_all(target.path().join("realms")).unwrap();
    let restored = target.posthaste().args(["restore", file, "--all"]).run().ok();
    assert!(restored.stdout.contains("main") && restored.stdout.contains("shop"), "{}", restored.stdout);
    let read = |dir: &TestDir| fs::read(dir.path().join("admin.token")).unwrap();
    assert_eq!(read(&dir), read(&target), "registration tokens depend on it");
    target.posthaste().args(["doctor"]).run().ok();
    let mode = |name: &str| fs::metadata(target.path().join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("realms"), mode("attachments"), mode("attachments/main")), (0o700, 0o700, 0o700));
    assert_eq!((mode("realms/main.db"), mode("admin.token")), (0o600, 0o600));
    assert!(leftovers(dir.path()).is_empty() && leftovers(target.path()).is_empty());

    let office = Office::open(target.path());
    let message = office.inbox("ann", 0).await.pop().unwrap();
    let hash = &message["attachments"][0]["sha256"];
    let asked = json!({ "agent": "ann", "message": message["id"], "sha256": hash });
    let found = office.call("attachment", asked).await.unwrap();
    assert_eq!(STANDARD.decode(found["data"].as_str().unwrap()).unwrap(), b"the plan");
    let shop = office.as_bearer(office.token()).in_realm("shop");
    assert_eq!(shop.call("agents", json!({})).await.unwrap()["agents"][0]["id"], "bob");
    assert_eq!(office.close(), Some(0));
}

// F6: a damaged database is refused with the reason, and the last good backup stays.
#[tokio::test]
async fn a_damaged_database_does_not_replace_a_good_backup() {
    let dir = TestDir::new();
    let kept = dir.path().join("nightly.posthaste");
    let file = kept.to_str().unwrap();
    let office = filled(&dir).await;
    assert_eq!(office.close(), Some(0));
    dir.posthaste().args(["backup", file]).run().ok();
    let good = fs::read(&kept).unwrap();
    let database = dir.path().join("realms/main.db");
    damage(&database, (fs::metadata(&database).unwrap().len() / 2) & !4_095, 8_192);
    let refused = dir.posthaste().args(["backup", file, "--force"]).run();
    assert_eq!(refused.code, 6, "{}", refused.stderr);
    assert!(refused.stderr.contains("damaged"), "{}", refused.stderr);
    assert!(fs::read(&kept).unwrap() == good, "the last good backup was touched");
    assert!(leftovers(dir.path()).is_empty());
    // F37: doctor says what to do about it.
    let doctor = dir.posthaste().args(["doctor"]).run();
    assert_eq!(doctor.code, 6);
    assert!(doctor.stdout.contains("restore FILE --realm main --force"), "{}", doctor.stdout);
    // And that works.
    dir.posthaste().args(["restore", file, "--force"]).run().ok();
    dir.posthaste().args(["doctor"]).run().ok();
}

// F6: a backup that was cut off or changed is refused, and nothing changes.
#[tokio::test]
async fn a_damaged_backup_is_not_restored() {
    let (dir, target) = (TestDir::new(), TestDir::new());
    let kept = dir.path().join("kept.posthaste");
    let office = filled(&dir).await;
    dir.posthaste().args(["backup", kept.to_str().unwrap()]).run().ok();
    assert_eq!(office.close(), Some(0));
    let good = fs::read(&kept).unwrap();
    for (what, bytes) in [
        ("cut", good[..good.len() / 2].to_vec()),
        ("cut before the manifest", good[..good.len() - 4_096].to_vec()),
        ("changed", {
            let mut bytes = good.clone();
            bytes[good.len() / 2] ^= 1;
            bytes
        }),
    ] {
        fs::write(&kept, bytes).unwrap();
        let refused = target.posthaste().args(["restore", kept.to_str().unwrap()]).run();
        assert_eq!(refused.code, 6, "{what}: {}", refused.stderr);
        assert!(!target.path().join("realms/main.db").exists(), "{what}");
        assert!(leftovers(target.path()).is_empty(), "{what}");
    }
    let other = dir.write("other", &"neither a database nor an archive ".repeat(100));
    let refused = target.posthaste().args(["restore", other.to_str().unwrap()]).run();
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

// Backups of earlier versions were plain databases.
#[tokio::test]
async fn a_plain_database_is_still_restored() {
    let (dir, target) = (TestDir::new(), TestDir::new());
    let office = filled(&dir).await;
    assert_eq!(office.close(), Some(0));
    let old = dir.path().join("old.posthaste");
    fs::copy(dir.path().join("realms/main.db"), &old).unwrap();
    target.posthaste().args(["restore", old.to_str().unwrap()]).run().ok();
    target.posthaste().args(["doctor"]).run().ok();
    let office = Office::open(target.path());
    assert_eq!(office.inbox("ann", 0).await.len(), 61);
    assert_eq!(office.close(), Some(0));
}

// F64: beside a running server a realm is restored that it does not have.
#[tokio::test]
async fn a_realm_is_restored_beside_a_running_server_under_a_new_name() {
    let dir = TestDir::new();
    let kept = dir.path().join("kept.posthaste");
    let file = kept.to_str().unwrap();
    let office = filled(&dir).await;
    dir.posthaste().args(["backup", file, "--all"]).run().ok();
    let held = dir.posthaste().args(["restore", file, "--force"]).run();
    assert_eq!(held.code, 5);
    assert!(held.stderr.contains("--as NAME"), "{}", held.stderr);
    dir.posthaste().args(["restore", file, "--realm", "main", "--as", "copy"]).run().ok();
    let copy = office.as_bearer(office.token()).in_realm("copy");
    let page = copy.call("inbox", json!({ "agent": "ann", "limit": 100 })).await.unwrap();
    assert_eq!(page["messages"].as_array().unwrap().len(), 61);
    let message = page["messages"][0].clone();
    let asked =
        json!({ "agent": "ann", "message": message["id"], "sha256": message["attachments"][0]["sha256"] });
    copy.call("attachment", asked).await.unwrap();
    assert_eq!(office.close(), Some(0));
    dir.posthaste().args(["doctor"]).run().ok();
}

// Existing keys are kept unless --force is given, and the consequences are reported.
#[tokio::test]
async fn keys_that_are_there_are_kept_unless_forced() {
    let (dir, target) = (TestDir::new(), TestDir::new());
    let [with, without] = ["with", "without"].map(|name| dir.path().join(name));
    let [with, without] = [with.to_str().unwrap(), without.to_str().unwrap()];
    assert_eq!(filled(&dir).await.close(), Some(0));
    dir.posthaste().args(["backup", with, "--with-keys"]).run().ok();
    dir.posthaste().args(["backup", without]).run().ok();
    assert_eq!(Office::open(target.path()).close(), Some(0));
    let key = |dir: &TestDir| fs::read_to_string(dir.path().join("admin.token")).unwrap();
    let own = key(&target);
    for file in [with, without] {
        let ran = target.posthaste().args(["restore", file, "--as", "second"]).run().ok();
        assert!(ran.stderr.contains("does not have the admin key of the backup"), "{}", ran.stderr);
        assert_eq!(key(&target), own);
        fs::remove_file(target.path().join("realms/second.db")).unwrap();
    }
    target.posthaste().args(["restore", with, "--force"]).run().ok();
    assert_eq!(key(&target), key(&dir));
}

// A running server hands a backup out to its operator alone; keys are never in it.
#[tokio::test]
async fn a_server_sends_its_backup() {
    let (dir, here, target) = (TestDir::new(), TestDir::new(), TestDir::new());
    let office = filled(&dir).await;
    let made = office.call("token.create", json!({ "role": "agent", "name": "eve" })).await.unwrap();
    let file = here.path().join("fetched.posthaste");
    let file = file.to_str().unwrap();
    let url = office.url().to_owned();
    let back_up = |token: &str, more: &[&str]| {
        let args = ["backup", file, "--url", &url, "--token", token];
        here.posthaste().args(args).args(more.iter().copied()).run()
    };
    assert_eq!(back_up(made["token"].as_str().unwrap(), &[]).code, 4);
    assert_eq!(back_up(office.token(), &["--with-keys"]).code, 2);
    assert!(!Path::new(file).exists());
    back_up(office.token(), &["--all"]).ok();
    assert_eq!(office.close(), Some(0));
    assert!(leftovers(dir.path()).is_empty(), "{:?}", leftovers(dir.path()));
    target.posthaste().args(["restore", file, "--all"]).run().ok();
    assert!(!target.path().join("admin.token").exists());
    target.posthaste().args(["doctor"]).run().ok();
}

// F36: an admin key that cannot be used is named, by every command and by doctor.
#[tokio::test]
async fn an_empty_admin_key_is_reported() {
    let dir = TestDir::new();
    assert_eq!(Office::open(dir.path()).close(), Some(0));
    let key = dir.write("admin.token", "");
    let found = dir.posthaste().args(["doctor"]).run();
    assert_eq!(found.code, 6, "{}", found.stdout);
    assert!(found.stdout.contains(key.to_str().unwrap()), "{}", found.stdout);
    let refused = dir.posthaste().args(["serve", "--listen", "127.0.0.1:0"]).run();
    assert!(refused.stderr.contains(key.to_str().unwrap()), "{}", refused.stderr);
}
