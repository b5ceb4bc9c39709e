//! The guard in real repositories.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::harness::TestDir;
use crate::mcp::client::Mcp;
use crate::office::Office;

/// A repository without the settings of the user who runs the tests.
struct Repo<'a> {
    top: &'a Path,
    agent: &'static str,
}

impl Repo<'_> {
    fn git(&self, words: &[&str]) -> Output {
        let mut command = Command::new("git");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.top).env("GIT_CONFIG_NOSYSTEM", "1").env("POSTHASTE_AGENT", self.agent);
        command.args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "init.defaultBranch=main",
        ]);
        command.arg("-C").arg(self.top).args(words).output().unwrap()
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let done = self.git(words);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{words:?}: {said}");
        said
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.top.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn guard(dir: &TestDir, top: &Path, words: &[&'static str]) -> crate::harness::Ran {
    let mut posthaste =
        dir.posthaste().args(["guard"]).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    posthaste.command.args(words).current_dir(top).env("HOME", top);
    posthaste.run()
}

#[tokio::test]
async fn commits_that_touch_what_another_holds_are_told_of_or_stopped() {
    let (dir, work) = (TestDir::new(), TestDir::new());
    let top = work.path().canonicalize().unwrap().join("app");
    std::fs::create_dir_all(&top).unwrap();
    let repo = Repo { top: &top, agent: "BlueLake" };
    repo.ok(&["init", "-q"]);
    for name in ["src/a.rs", "src/b.rs", "docs/x.md", "odd [1].txt"] {
        repo.write(name, "some text that git can follow when it moves\nand more of it\nand more\n");
    }
    repo.ok(&["add", "."]);
    repo.ok(&["commit", "-qm", "first"]);
    // A hook that was there before goes on working.
    let hooks = top.join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    std::fs::write(hooks.join("pre-commit"), "#!/bin/sh\necho before ran >&2\n").unwrap();
    Command::new("chmod").args(["+x"]).arg(hooks.join("pre-commit")).status().unwrap();

    let office = Office::open(dir.path());
    let mcp = Mcp::operator(&office);
    let path = top.to_str().unwrap();
    mcp.project(path, &["BlueLake", "GreenFox"]).await;
    for _ in 0..2 {
        assert_eq!(guard(&dir, &top, &["install"]).ok().stdout.lines().count(), 2, "twice is once");
    }
    assert!(
        std::fs::read_to_string(hooks.join("pre-commit.before-posthaste")).unwrap().contains("before ran")
    );
    let hold =
        |paths: &[&str], agent: &str| json!({ "project_key": path, "agent_name": agent, "paths": paths });

    // Nothing held by others: silent. One's own reservations do not count.
    mcp.call("file_reservation_paths", hold(&["docs/**"], "BlueLake")).await;
    repo.write("docs/x.md", "changed");
    let said = repo.ok(&["commit", "-qam", "own"]);
    assert_eq!(said.trim(), "before ran");
    // Held by another: a warning, and the commit goes through.
    mcp.call("file_reservation_paths", hold(&["src/**", "odd \\[1\\].txt"], "GreenFox")).await;
    repo.write("src/a.rs", "changed");
    let said = repo.ok(&["commit", "-qam", "warned"]);
    assert!(said.contains("src/a.rs is reserved by GreenFox (src/**)"), "{said}");

    // Told to block, it stops commits: changes, deletions, both ends of a rename, names with brackets.
    guard(&dir, &top, &["install", "--block"]).ok();
    let stopped = |what: &str| {
        let done = repo.git(&["commit", "-qam", what]);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success(), "{what} was not stopped: {said}");
        repo.ok(&["reset", "-q", "--hard"]);
        said
    };
    repo.write("src/b.rs", "changed");
    assert!(stopped("change").contains("POSTHASTE_BYPASS"));
    repo.ok(&["rm", "-q", "src/b.rs"]);
    assert!(stopped("delete").contains("src/b.rs"));
    repo.ok(&["mv", "src/b.rs", "moved.rs"]);
    assert!(stopped("rename").contains("src/b.rs"));
    repo.ok(&["mv", "docs/x.md", "src/x.md"]);
    assert!(stopped("rename into").contains("src/x.md"));
    repo.write("odd [1].txt", "changed");
    assert!(stopped("brackets").contains("odd "));
    // A linked work tree belongs to the same project.
    let linked = work.path().canonicalize().unwrap().join("linked");
    repo.ok(&["worktree", "add", "-q", linked.to_str().unwrap(), "-b", "side"]);
    let side = Repo { top: &linked, agent: "BlueLake" };
    side.write("src/b.rs", "changed in the other tree");
    assert!(!side.git(&["commit", "-qam", "side"]).status.success());
    // The holder itself passes, and so does a commit that says so.
    let holder = Repo { top: &linked, agent: "GreenFox" };
    holder.ok(&["commit", "-qam", "mine"]);
    // Pushing is looked at, too.
    let bare = work.path().canonicalize().unwrap().join("bare.git");
    repo.ok(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    let pushed = side.git(&["push", "-q", bare.to_str().unwrap(), "side"]);
    assert!(!pushed.status.success());
    assert!(String::from_utf8_lossy(&pushed.stderr).contains("src/b.rs is reserved by GreenFox"));
    // The holder of it all would pass, but for what BlueLake holds: that is in the pushed commits, too.
    assert!(!holder.git(&["push", "-q", bare.to_str().unwrap(), "side"]).status.success());
    mcp.call("release_file_reservations", json!({ "project_key": path, "agent_name": "BlueLake" })).await;
    holder.ok(&["push", "-q", bare.to_str().unwrap(), "side"]);

    // Without an office nothing is stopped.
    assert_eq!(office.close(), Some(0));
    repo.write("src/a.rs", "no server to ask");
    assert_eq!(repo.ok(&["commit", "-qam", "down"]).trim(), "before ran");
    let said = guard(&dir, &top, &["check", "--verbose"]).ok().stderr;
    assert!(said.contains("nothing was checked"), "{said}");
    // Taken out, what was there before is back.
    guard(&dir, &top, &["uninstall"]).ok();
    assert_eq!(
        std::fs::read_to_string(hooks.join("pre-commit")).unwrap(),
        "#!/bin/sh\necho before ran >&2\n"
    );
    assert!(!hooks.join("pre-push").exists() && !hooks.join("pre-commit.before-posthaste").exists());
    assert_eq!(guard(&dir, work.path(), &["install"]).code, 2, "not a repository");
}

// F16: the agent's name is known to the server, not to the shell that commits.
#[tokio::test]
async fn the_holder_is_recognised_by_its_directory() {
    let (dir, work) = (TestDir::new(), TestDir::new());
    let top = work.path().canonicalize().unwrap().join("app");
    std::fs::create_dir_all(&top).unwrap();
    let (unnamed, blue) = (Repo { top: &top, agent: "" }, Repo { top: &top, agent: "BlueLake" });
    unnamed.ok(&["init", "-q"]);
    for name in ["src/a.rs", "docs/x.md"] {
        unnamed.write(name, "text");
    }
    unnamed.ok(&["add", "."]);
    unnamed.ok(&["commit", "-qm", "first"]);
    let office = Office::open_in(dir.path(), Path::new("/"), &[]);
    let path = top.to_str().unwrap();
    for tree in [path, "/srv/other"] {
        office.call("project.claim", json!({ "names": [tree] })).await.unwrap();
    }
    let mcp = Mcp::operator(&office);
    let hold =
        |agent: &str, paths: &str| json!({ "project_key": path, "agent_name": agent, "paths": [paths] });
    // It works below the top, which is where the commit is made.
    mcp.project(&format!("{path}/src"), &["GreenHill"]).await;
    mcp.call("file_reservation_paths", hold("GreenHill", "src/**")).await;
    guard(&dir, &top, &["install", "--block"]).ok();
    unnamed.write("src/a.rs", "mine");
    assert_eq!(unnamed.ok(&["commit", "-qam", "own"]), "", "the only agent of this directory is the holder");
    // An agent of another directory is not: it stops the commit, and the line to export is told.
    mcp.project("/srv/other", &["RedFox"]).await;
    mcp.call("file_reservation_paths", hold("RedFox", "docs/**")).await;
    unnamed.write("docs/x.md", "not mine");
    let stopped = unnamed.git(&["commit", "-qam", "not own"]);
    let said = String::from_utf8_lossy(&stopped.stderr).into_owned();
    assert!(!stopped.status.success(), "{said}");
    assert!(said.contains("docs/x.md is reserved by RedFox"), "{said}");
    assert!(said.contains("export POSTHASTE_AGENT=RedFox") && said.contains("POSTHASTE_BYPASS=1"), "{said}");
    unnamed.ok(&["reset", "-q", "--hard"]);
    // Two agents in one work tree are not taken for each other: a warning with both names, and the commit goes on.
    mcp.project(path, &["BlueLake"]).await;
    unnamed.write("src/a.rs", "whose?");
    let said = unnamed.ok(&["commit", "-qam", "unsure"]);
    assert!(said.contains("src/a.rs is reserved by GreenHill"), "{said}");
    assert!(said.contains("several agents work in this directory: BlueLake, GreenHill"), "{said}");
    assert!(said.contains("export POSTHASTE_AGENT=GreenHill"), "{said}");
    // Told who commits, it stops the one that does not hold the path, and only that one.
    blue.write("src/a.rs", "of another");
    assert!(!blue.git(&["commit", "-qam", "of another"]).status.success());
    Repo { top: &top, agent: "GreenHill" }.ok(&["commit", "-qam", "own again"]);
    // With a token of its own only the agents of that token can be meant.
    let ann = office.call("token.create", json!({ "role": "user", "name": "ann" })).await.unwrap();
    unnamed.write("src/a.rs", "with a token");
    unnamed.ok(&["add", "."]);
    let mut check = dir.posthaste().args(["guard", "check", "--block"]);
    check = check.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    check = check.env("POSTHASTE_TOKEN", ann["token"].as_str().unwrap());
    check.command.current_dir(&top).env("HOME", &top);
    assert_eq!(check.run().code, 1, "agents of others are not its own");
    assert_eq!(office.close(), Some(0));
}

#[tokio::test]
async fn the_server_answers_with_the_command_and_writes_no_hook() {
    let (dir, work) = (TestDir::new(), TestDir::new());
    let top = work.path().canonicalize().unwrap();
    let repo = Repo { top: &top, agent: "BlueLake" };
    repo.ok(&["init", "-q"]);
    let office = Office::open_with_path(dir.path());
    let mcp = Mcp::operator(&office);
    mcp.project(top.to_str().unwrap(), &["BlueLake"]).await;
    let given = json!({ "project_key": top, "code_repo_path": top, "block": true });
    let done = mcp.call("install_precommit_guard", given).await;
    let path = top.to_str().unwrap();
    let command = format!("posthaste guard install --project '{path}' --block -- '{path}'");
    assert_eq!((&done["command"], &done["installed"]), (&json!(command), &json!(false)));
    assert!(!top.join(".git/hooks/pre-commit").exists());
    let removed = mcp.call("uninstall_precommit_guard", json!({ "code_repo_path": top })).await;
    assert_eq!(removed["removed"], false);
    let (code, _) =
        mcp.fails("install_precommit_guard", json!({ "project_key": top, "code_repo_path": "rel" })).await;
    assert_eq!(code, "GUARD_FAILED");
    // The command is one that the program takes.
    let words = ["install", "--project", "/x", "--block", "--"];
    let mut posthaste =
        dir.posthaste().args(["guard"]).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    posthaste.command.args(words).arg(&top).env("HOME", &top);
    posthaste.run().ok();
    assert!(top.join(".git/hooks/pre-commit").exists());
    assert_eq!(office.close(), Some(0));
}

#[test]
fn hooks_are_written_through_no_link_and_nowhere_else() {
    let (dir, work, other) = (TestDir::new(), TestDir::new(), TestDir::new());
    let top = work.path().canonicalize().unwrap();
    let elsewhere = other.path().canonicalize().unwrap();
    let repo = Repo { top: &top, agent: "BlueLake" };
    repo.ok(&["init", "-q"]);
    let victim = other.write("victim.txt", "mine");
    let hooks = top.join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    // What an earlier version wrote to before it renamed it, and the hook itself.
    for name in ["pre-commit.posthaste-new", "pre-push.posthaste-new", "pre-commit", "pre-push"] {
        drop(std::fs::remove_file(hooks.join(name)));
        std::os::unix::fs::symlink(&victim, hooks.join(name)).unwrap();
    }
    guard(&dir, &top, &["install"]).ok();
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
    assert!(hooks.join("pre-commit").symlink_metadata().unwrap().is_file());
    guard(&dir, &top, &["uninstall"]).ok();
    assert!(hooks.join("pre-commit").symlink_metadata().unwrap().is_symlink(), "what was there is back");
    // Settings of the repository do not lead elsewhere, unless the user says so.
    repo.ok(&["config", "core.hooksPath", elsewhere.join("new/hooks").to_str().unwrap()]);
    let refused = guard(&dir, &top, &["install"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("--outside"), "{}", refused.stderr);
    assert!(!elsewhere.join("new").exists());
    guard(&dir, &top, &["install", "--outside"]).ok();
    assert!(elsewhere.join("new/hooks/pre-commit").exists());
    // Nor does a folder that is a link.
    repo.ok(&["config", "--unset", "core.hooksPath"]);
    std::fs::remove_dir_all(&hooks).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &hooks).unwrap();
    assert_eq!(guard(&dir, &top, &["install"]).code, 1);
    assert!(!elsewhere.join("pre-commit").exists());
    // A folder for hooks in the work tree, as some tools keep it.
    repo.ok(&["config", "core.hooksPath", ".husky"]);
    guard(&dir, &top, &["install"]).ok();
    assert!(top.join(".husky/pre-commit").exists());
}
