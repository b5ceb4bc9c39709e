//! Reservations: made at one door, they conflict at every other, however each door names the repository.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::map::AtMap;
use super::mcp::AtMcp;
use super::server::{Everywhere, REALM};
use crate::airc::{Agent, soon, word};
use crate::harness::TestDir;

const REMOTE: &str = "git@example.org:team/app.git";

/// The agents that reserve.
struct Holders {
    all: Everywhere,
    airc: Agent,
    mcp: AtMcp,
    map: AtMap,
    top: String,
}

/// Ways to reserve: a door, and a name of the repository there.
const WAYS: [(&str, &str); 8] = [
    ("mcp", ""),
    ("airc", "repo:example.org/team/app"),
    ("airc", "repo:https://example.org/team/app.git"),
    ("airc", "project:team"),
    ("cli", "project"),
    ("cli", "repo:git@example.org:team/app"),
    ("map", "project:PATH"),
    ("map", "repo:example.org/team/app"),
];

impl Holders {
    fn owner(door: &str) -> &'static str {
        match door {
            "mcp" => "mcp_s",
            "airc" => "airc_s",
            "map" => "map_s",
            _ => "cli_s",
        }
    }

    /// Reserves a path; returns the holders of conflicting reservations.
    async fn reserve(&mut self, (door, scope): (&str, &str), path: &str) -> Vec<String> {
        let scope = scope.replace("PATH", &self.top);
        let names = |list: &Value, member: &str| -> Vec<String> {
            let list = list.as_array().unwrap_or_else(|| panic!("{door}: no list in {list}"));
            list.iter().map(|one| one[member].as_str().unwrap().to_owned()).collect()
        };
        match door {
            "mcp" => {
                let done = self.mcp.call("file_reservation_paths", json!({ "paths": [path] })).await;
                let conflicts = done["conflicts"].as_array().unwrap();
                conflicts.iter().flat_map(|one| names(&one["holders"], "agent")).collect()
            }
            "airc" => {
                let payload = json!({
                    "type": "context:file_reservation", "reservation_id": format!("rsv-{}", word()),
                    "scope": scope, "paths": [path], "status": "active", "ttl_seconds": 600,
                    "issued_ts": soon(0), "expires_ts": soon(600),
                });
                let reply = self.airc.send("@public", payload).await;
                assert_eq!(reply.status, 201, "{}", reply.text);
                assert_eq!(reply.body["reservation"]["scope"], scope.as_str(), "shown as it was written");
                names(&reply.body["conflicts"], "owner")
            }
            "map" => {
                let until = posthaste_engine::stamp::now() + 600_000;
                let asked = json!({ "agent": "map_s", "scope": scope, "paths": [path], "expires_at": until });
                let done = self.map.client.call("x-posthaste/reserve", asked).await.unwrap();
                names(&done["conflicts"], "holder")
            }
            _ => {
                let ran = self.all.run(&["reserve", path, "--scope", &scope, "--agent", "cli_s", "--json"]);
                let found = names(&ran.json()["conflicts"], "holder");
                assert_eq!(ran.code == 0, found.is_empty(), "{}", ran.stderr);
                found
            }
        }
    }
}

fn git(top: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", top);
    let done = command.env("GIT_CONFIG_NOSYSTEM", "1").arg("-C").arg(top).args(words).output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

async fn holders(work: &TestDir) -> Holders {
    let top = work.path().canonicalize().unwrap();
    git(&top, &["init", "-q"]);
    git(&top, &["remote", "add", "origin", REMOTE]);
    let top = top.to_str().unwrap().to_owned();
    let all = Everywhere::open_with(&["--project", &top]).await;
    let airc = Agent::new(all.office.url(), "airc_s").await;
    let public = airc.post("/presence", json!({ "status": "available", "privacy": "public" })).await;
    assert_eq!(public.status, 200, "{}", public.text);
    all.office.register("cli_s").await;
    let (mcp, map) = (all.at_mcp("mcp_s").await, all.at_map("map_s").await);
    Holders { all, airc, mcp, map, top }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_conflicts_at_every_other_door() {
    let work = TestDir::new();
    let mut holders = holders(&work).await;
    for (n, held) in WAYS.iter().enumerate() {
        let path = format!("src/part{n}/**");
        assert_eq!(holders.reserve(*held, &path).await, Vec::<String>::new(), "{held:?}");
        for (m, asked) in WAYS.iter().enumerate() {
            let (owner, other) = (Holders::owner(held.0), Holders::owner(asked.0));
            if owner == other {
                continue;
            }
            let inside = format!("src/part{n}/way{m}.rs");
            let found = holders.reserve(*asked, &inside).await;
            assert!(
                found.contains(&owner.to_owned()),
                "{held:?} does not conflict with {asked:?}: {found:?}"
            );
        }
        // One listing shows all of them under one scope.
        let listed =
            holders.all.run(&["reservations", "--scope", "project", "--json", "--limit", "1000"]).ok();
        let owners = listed.json().to_string();
        assert!(owners.contains(Holders::owner(held.0)), "{owners}");
        // Other repositories and projects have no conflict.
        for scope in ["repo:example.org/team/other", "project:elsewhere", "repo:example.com/team/app"] {
            assert_eq!(holders.reserve(("cli", scope), &path).await, Vec::<String>::new(), "{scope}");
        }
        for owner in ["mcp_s", "map_s", "cli_s", "airc_s"] {
            holders.all.office.call("release", json!({ "agent": owner })).await.unwrap();
        }
    }
    assert_eq!(holders.all.office.close(), Some(0));
}

/// An AIRC reservation has the same members at the MCP door and the reverse, and the git hook finds it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_airc_reservation_has_the_same_members_at_mcp_and_in_the_hook() {
    let work = TestDir::new();
    let holders = holders(&work).await;
    let payload = json!({
        "type": "context:file_reservation", "reservation_id": "rsv-9f3a", "scope": "repo:example.org/team/app",
        "paths": ["api/auth.ts", "api/db.ts"], "exclusive": true, "reason": "new grammar", "status": "active",
        "ttl_seconds": 600, "issued_ts": soon(0), "expires_ts": soon(600),
    });
    assert_eq!(holders.airc.send("@public", payload.clone()).await.status, 201);
    let listed = holders.mcp.mcp.resource(&format!("resource://file_reservations/{REALM}")).await;
    let held = &listed[0];
    assert_eq!(
        (&held["agent"], &held["exclusive"], &held["reason"]),
        (&json!("airc_s"), &json!(true), &json!("new grammar")),
        "{listed}"
    );
    assert_eq!(held["path_pattern"], "api/auth.ts api/db.ts", "{listed}");
    let paths = json!({ "paths": ["api/auth.ts"] });
    let found = holders.mcp.call("check_file_reservation_conflicts", paths.clone()).await;
    let ends = found["conflicts"][0]["holders"][0]["expires_ts"].as_str().unwrap();
    assert_eq!(ends[..19], payload["expires_ts"].as_str().unwrap()[..19]);

    // The hook of a clone asks for the reservation by the path of its work tree.
    let top = Path::new(&holders.top);
    std::fs::create_dir(top.join("api")).unwrap();
    std::fs::write(top.join("api/auth.ts"), "x").unwrap();
    git(top, &["add", "api/auth.ts"]);
    let check = || {
        let mut posthaste = crate::harness::Posthaste::new();
        posthaste.command.arg("--data").arg(holders.all.dir.path().join("data")).args([
            "guard",
            "check",
            "--verbose",
        ]);
        posthaste.command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", top);
        posthaste.command.env("POSTHASTE_AGENT", "mcp_s").current_dir(top);
        posthaste.run()
    };
    let said = check();
    assert!(said.stderr.contains("airc_s") && said.stderr.contains("api/auth.ts"), "{}", said.stderr);

    // Released at AIRC, it is released everywhere.
    let released =
        json!({ "type": "context:file_reservation", "reservation_id": "rsv-9f3a", "status": "released" });
    assert_eq!(holders.airc.send("@public", released).await.status, 201);
    assert_eq!(holders.mcp.call("check_file_reservation_conflicts", paths).await["conflicts"], json!([]));
    assert!(!check().stderr.contains("airc_s"));
    assert_eq!(holders.all.office.close(), Some(0));
}
