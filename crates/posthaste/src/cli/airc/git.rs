//! The current work tree's remotes, against which scopes are checked.

use std::process::Command;

use posthaste_wire::airc::{Scope, normal_remote};

/// The remotes of the current directory's work tree, `origin` first, in the normal form of scopes.
pub(super) fn remotes() -> Vec<String> {
    let Ok(answer) = Command::new("git").args(["remote", "-v"]).output() else { return Vec::new() };
    read(&String::from_utf8_lossy(&answer.stdout))
}

fn read(text: &str) -> Vec<String> {
    let mut found: Vec<(bool, String)> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(url)) = (words.next(), words.next()) {
            found.push((name != "origin", normal_remote(url)));
        }
    }
    found.sort();
    found.dedup();
    found.into_iter().map(|(_, remote)| remote).collect()
}

/// What is odd about a scope in this work tree.
pub(super) fn doubt(scope: &Scope, remotes: &[String]) -> Option<String> {
    match scope.repo() {
        Some(repo) if remotes.iter().any(|remote| remote == repo) => None,
        Some(repo) if remotes.is_empty() => Some(format!("this is no work tree of {repo}")),
        Some(repo) => Some(format!("{repo} is none of this work tree's remotes ({})", remotes.join(", "))),
        None if !scope.is_known() => {
            Some(format!("{} is no form of scope that others may know", scope.as_str()))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_checked_against_remotes() {
        let text = "up\thttps://github.com/up/app.git (fetch)\norigin\tgit@github.com:me/app.git (fetch)\norigin\tgit@github.com:me/app.git (push)\n";
        let remotes = read(text);
        assert_eq!(remotes, ["github.com/me/app", "github.com/up/app"]);
        let doubt = |scope: &str| doubt(&Scope::parse(scope).unwrap(), &remotes);
        assert_eq!(doubt("repo:https://github.com/me/app"), None);
        assert!(doubt("repo:github.com/other/app").unwrap().contains("none of"));
        assert!(doubt("planet:mars").is_some());
        assert_eq!(doubt("project:x"), None);
    }
}
