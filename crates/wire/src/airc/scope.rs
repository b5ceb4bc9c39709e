//! Scopes: the repository, project or machine that the paths of a reservation belong to.

/// A scope, as written and in normalized form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Repo(String),
    Project(String),
    Local,
    Unknown,
}

impl Scope {
    /// Parses a scope. Unknown forms are kept; the receiver decides whether to accept them.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.trim().is_empty() {
            return Err("a scope must not be empty");
        }
        if text.len() > 1_024 || text.chars().any(char::is_control) {
            return Err("a scope has at most 1024 bytes and no control characters");
        }
        let kind = match text.split_once(':') {
            Some(("repo", remote)) if remote.trim().is_empty() => {
                return Err("repo: requires the address of a repository");
            }
            Some(("project", key)) if key.trim().is_empty() => return Err("project: requires a key"),
            Some(("repo", remote)) => Kind::Repo(normal_remote(remote)),
            Some(("project", key)) => Kind::Project(key.trim().to_owned()),
            _ if text == "local" => Kind::Local,
            _ => Kind::Unknown,
        };
        Ok(Self { text: text.to_owned(), kind })
    }

    /// The scope as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The normalized form, for comparison: different URLs of one repository are equal.
    pub fn normal(&self) -> String {
        match &self.kind {
            Kind::Repo(remote) => format!("repo:{remote}"),
            Kind::Project(key) => format!("project:{key}"),
            Kind::Local | Kind::Unknown => self.text.clone(),
        }
    }

    /// The repository, normalized by [`normal_remote`].
    pub fn repo(&self) -> Option<&str> {
        if let Kind::Repo(remote) = &self.kind { Some(remote) } else { None }
    }

    /// The project key.
    pub fn project(&self) -> Option<&str> {
        if let Kind::Project(key) = &self.kind { Some(key) } else { None }
    }

    /// Whether the scope is the local machine.
    pub fn is_local(&self) -> bool {
        self.kind == Kind::Local
    }

    /// Whether the extension defines this form of scope.
    pub fn is_known(&self) -> bool {
        self.kind != Kind::Unknown
    }
}

/// Normalizes a git remote to `github.com/owner/name`: no scheme, user, port, `.git` and trailing slash, host in lower case.
pub fn normal_remote(remote: &str) -> String {
    let mut rest = remote.trim();
    let mut has_scheme = false;
    if let Some((_, after)) = rest.split_once("://") {
        rest = after;
        has_scheme = true;
    }
    let (host, path) = match rest.find(['/', ':']) {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, ""),
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    // After a scheme, a number behind the colon is a port. Without a scheme, `host:path` is the ssh form.
    let path = match path.split_once('/') {
        Some((port, path))
            if has_scheme && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            path
        }
        _ => path,
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    if path.is_empty() { host } else { format!("{host}/{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_of_one_repository_are_equal() {
        for remote in [
            "github.com/example/app",
            "GitHub.com/example/app/",
            "https://github.com/example/app.git",
            "https://token@github.com/example/app",
            "git@github.com:example/app.git",
            "ssh://git@github.com:22/example/app.git",
        ] {
            assert_eq!(normal_remote(remote), "github.com/example/app", "{remote}");
        }
        assert_ne!(normal_remote("github.com/example/App"), normal_remote("github.com/example/app"));
    }

    #[test]
    fn scopes_are_parsed_by_form() {
        assert_eq!(Scope::parse("repo:https://github.com/a/b.git").unwrap().normal(), "repo:github.com/a/b");
        assert_eq!(Scope::parse("project:my-project").unwrap().project(), Some("my-project"));
        assert!(Scope::parse("local").unwrap().is_local());
        assert!(!Scope::parse("galaxy:far").unwrap().is_known());
        for bad in ["", " ", "repo:", "project: ", "a\nb"] {
            assert!(Scope::parse(bad).is_err(), "{bad:?}");
        }
    }
}
