//! Which caller may call what: every path and every method of every door, called by each kind of caller. Paths and methods
//! are read from the source, so one without a row fails here; the result is the table in `docs/authority.md`.

mod calls;
mod issued;
mod paths;
mod tools;
mod world;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub(crate) use calls::{control_methods, map_methods};
pub(crate) use tools::in_source as mcp_tools;
use world::{ROLES, Role, World};

/// The callers that are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// Anyone, with or without a token.
    Anyone,
    /// Anyone; a token that is sent must be valid.
    AnyoneHonest,
    /// No token admits: a signature is needed.
    Signer,
    /// The bearer of any token of the realm.
    Bearer,
    /// A user or an administrator of the realm.
    Person,
    /// Another swarm: a bearer with the role agent.
    Peer,
    /// An administrator of the realm.
    Admin,
    /// The caller that registered the agent; here the holder of the operator's key.
    Owner,
    /// Any token, but over a connection only, not by a single request.
    Connected,
}

/// How a call was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Got {
    /// Admitted; the request itself may still be refused for its content.
    In,
    /// Refused without a valid token.
    Unknown,
    /// Authenticated and refused.
    Refused,
}

impl Who {
    fn may(self, role: Role, door: &str) -> Got {
        use Role::{Admin, Agent, Airc, Operator, User};
        let known =
            matches!(role, Agent | User | Admin | Operator) || (role == Airc && door.starts_with("airc"));
        let allowed = match self {
            Self::Anyone => return Got::In,
            Self::Signer => return Got::Refused,
            Self::AnyoneHonest if role == Role::NoToken => return Got::In,
            Self::AnyoneHonest | Self::Bearer => known,
            Self::Person => matches!(role, User | Admin | Operator),
            Self::Peer => role == Agent,
            Self::Admin => matches!(role, Admin | Operator),
            Self::Owner => role == Operator,
            Self::Connected => false,
        };
        match (allowed, known) {
            (true, _) => Got::In,
            (false, true) => Got::Refused,
            (false, false) => Got::Unknown,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Anyone => "anyone",
            Self::AnyoneHonest => "anyone; a token that is sent must be valid",
            Self::Signer => "a signer with the right key",
            Self::Bearer => "any token of the realm",
            Self::Person => "user, admin",
            Self::Peer => "agent (another swarm)",
            Self::Admin => "admin",
            Self::Owner => "the agent's owner",
            Self::Connected => "any token, over a connection",
        }
    }
}

/// A line of the table.
struct Line {
    door: &'static str,
    what: String,
    who: Who,
    got: Vec<Got>,
}

impl Line {
    fn wrong(&self) -> Option<String> {
        let bad: Vec<String> = ROLES
            .into_iter()
            .zip(&self.got)
            .filter(|(role, got)| self.who.may(*role, self.door) != **got)
            .map(|(role, got)| format!("{role:?} got {got:?}, not {:?}", self.who.may(role, self.door)))
            .collect();
        (!bad.is_empty()).then(|| format!("{} {} ({:?}): {}", self.door, self.what, self.who, bad.join("; ")))
    }
}

/// A source file, named from `crates/`.
fn source(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fails if the source and the rows differ.
pub(crate) fn compare(what: &str, found: &BTreeSet<String>, rows: &BTreeSet<String>) {
    let missing: Vec<_> = found.difference(rows).collect();
    let stale: Vec<_> = rows.difference(found).collect();
    assert!(missing.is_empty(), "{what} without a row in the authority table: {missing:?}");
    assert!(stale.is_empty(), "{what} in the authority table that do not exist: {stale:?}");
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/authority.md")
}

fn render(lines: &[Line]) -> String {
    let mut out = String::from(
        "# Which caller may call what\n\n\
         Every path and every method of every door, called by each kind of caller. The test `authority` writes this page \
         (`POSTHASTE_WRITE=1 cargo nextest run -p posthaste authority`): it takes the list from the source and fails if \
         the page differs from the responses.\n\n\
         `+` admitted (the request may still be refused for its content: no such agent, another's object), `·` refused \
         without a valid token, `x` authenticated and refused. *foreign* tokens are valid in another realm of the same \
         server; an *AIRC identity* is a new identity with the token that AIRC issued. The operator's key is the file \
         `admin.token`; an admin token administers one realm.\n",
    );
    let mut door = "";
    for line in lines {
        if line.door != door {
            door = line.door;
            let heads: Vec<&str> = ROLES.iter().map(|role| role.head()).collect();
            let _ = write!(out, "\n## {door}\n\n| what | allowed callers | {} |\n", heads.join(" | "));
            let _ = writeln!(out, "| --- | --- |{}", " :-: |".repeat(ROLES.len()));
        }
        let marks: Vec<&str> = line
            .got
            .iter()
            .map(|got| match got {
                Got::In => "+",
                Got::Unknown => "·",
                Got::Refused => "x",
            })
            .collect();
        let what = line.what.replace('|', "\\|");
        let _ = writeln!(out, "| `{what}` | {} | {} |", line.who.words(), marks.join(" | "));
    }
    out
}

#[tokio::test]
async fn every_call_admits_exactly_the_allowed_callers() {
    let world = World::open().await;
    let mut lines = paths::ask(&world).await;
    lines.extend(calls::ask(&world).await);
    lines.extend(tools::ask(&world).await);
    lines.push(paths::ask_last(&world).await);
    let wrong: Vec<String> = lines.iter().filter_map(Line::wrong).collect();
    assert!(wrong.is_empty(), "{} of {} lines:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
    let text = render(&lines);
    if std::env::var_os("POSTHASTE_WRITE").is_some() {
        std::fs::write(page(), &text).unwrap();
    }
    let kept = std::fs::read_to_string(page()).unwrap_or_default();
    assert!(kept == text, "docs/authority.md is out of date: write it again with POSTHASTE_WRITE=1");
}

#[tokio::test]
async fn callers_cannot_act_under_another_name() {
    let world = World::open().await;
    tools::callers_cannot_act_for_others(&world).await;
    calls::callers_cannot_act_for_others(&world).await;
}
