//! Where the paths of a reservation live.

/// A scope as written, and in the one spelling by which scopes are compared.
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
    /// Reads a scope. Forms that are not known are kept: whether to believe one is the reader's affair.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.trim().is_empty() {
            return Err("a scope must not be empty");
        }
        if text.len() > 1_024 || text.chars().any(char::is_control) {
            return Err("a scope has at most 1024 bytes and no control characters");
        }
        let kind = match text.split_once(':') {
            Some(("repo", remote)) if remote.trim().is_empty() => {
                return Err("repo: needs the address of a repository");
            }
            Some(("project", key)) if key.trim().is_empty() => return Err("project: needs a key"),
            Some(("repo", remote)) => Kind::Repo(normal_remote(remote)),
            Some(("project", key)) => Kind::Project(key.trim().to_owned()),
            _ if text == "local" => Kind::Local,
            _ => Kind::Unknown,
        };
        Ok(Self { text: text.to_owned(), kind })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The spelling by which scopes are compared: the ways to write one repository are one.
    pub fn normal(&self) -> String {
        match &self.kind {
            Kind::Repo(remote) => format!("repo:{remote}"),
            Kind::Project(key) => format!("project:{key}"),
            Kind::Local | Kind::Unknown => self.text.clone(),
        }
    }

    /// The repository, in the spelling of [`normal_remote`].
    pub fn repo(&self) -> Option<&str> {
        if let Kind::Repo(remote) = &self.kind { Some(remote) } else { None }
    }

    /// The project's key.
    pub fn project(&self) -> Option<&str> {
        if let Kind::Project(key) = &self.kind { Some(key) } else { None }
    }

    /// Whether it is about this machine only.
    pub fn is_local(&self) -> bool {
        self.kind == Kind::Local
    }

    /// Whether its form is one that the extension names.
    pub fn is_known(&self) -> bool {
        self.kind != Kind::Unknown
    }
}

/// A git remote without scheme, user, port, `.git` and trailing slash, its host in lower case: `github.com/owner/name`.
pub fn normal_remote(remote: &str) -> String {
    let mut rest = remote.trim();
    let mut ported = false;
    if let Some((_, after)) = rest.split_once("://") {
        rest = after;
        ported = true;
    }
    let (host, path) = match rest.find(['/', ':']) {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, ""),
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    // After a scheme a number behind the colon is a port; without one, `host:path` is how ssh writes it.
    let path = match path.split_once('/') {
        Some((port, path))
            if ported && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) =>
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
    fn one_repository_has_one_spelling() {
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
    fn scopes_are_told_apart() {
        assert_eq!(Scope::parse("repo:https://github.com/a/b.git").unwrap().normal(), "repo:github.com/a/b");
        assert_eq!(Scope::parse("project:my-project").unwrap().project(), Some("my-project"));
        assert!(Scope::parse("local").unwrap().is_local());
        assert!(!Scope::parse("galaxy:far").unwrap().is_known());
        for bad in ["", " ", "repo:", "project: ", "a\nb"] {
            assert!(Scope::parse(bad).is_err(), "{bad:?}");
        }
    }
}
