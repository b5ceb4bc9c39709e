//! Who may do what: every path and every method of every door, asked by everybody. What there is to ask is read from the
//! source, so a path without a row fails here; what came out is the table in `docs/authority.md`.

mod calls;
mod issued;
mod office;
mod paths;
mod tools;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub(crate) use calls::{control_methods, map_methods};
use office::{ROLES, Role, World};
pub(crate) use tools::in_source as mcp_tools;

/// Who may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// Anyone, with or without a token.
    Anyone,
    /// Anyone; a token that is shown must be good.
    AnyoneHonest,
    /// Nobody for the sake of a token: a signature decides.
    Signer,
    /// The bearer of any token of the realm.
    Bearer,
    /// A person or an administrator of the realm.
    Person,
    /// Another swarm: a bearer with the role agent.
    Peer,
    /// An administrator of the realm.
    Admin,
    /// The caller that registered the agent; here the holder of the operator's key.
    Owner,
    /// Nobody by a request of its own: it takes a connection.
    Connected,
}

/// What somebody got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Got {
    /// As far as the door is concerned, in; the request itself may be nonsense.
    In,
    /// Not without a good token.
    Unknown,
    /// Known, and refused.
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
            Self::AnyoneHonest if role == Role::Nobody => return Got::In,
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

/// A line of the table, and what is wrong with it if something is.
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

/// What is in the source and has no row, and the other way round.
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
async fn everybody_gets_what_is_theirs_and_nothing_else() {
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
async fn nobody_acts_under_another_name() {
    let world = World::open().await;
    tools::nobody_acts_for_another(&world).await;
    calls::nobody_acts_for_another(&world).await;
}
