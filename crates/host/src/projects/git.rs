//! What a directory says of the repository it belongs to, read from its files without starting git. Only for directories
//! that the user running this process named: the command line's own, and the server's at start.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::safe_open::{self, Folder};

/// The most that is read of `.git`, `commondir` and `gitdir`, which hold one path.
const MOST_POINTER: u64 = 8 << 10;
/// The most that is read of a repository's configuration.
const MOST_CONFIG: u64 = 1 << 20;
/// Linked work trees of one repository that are looked at.
const MOST_LINKED: usize = 256;

/// A directory under version control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkTree {
    /// Its top.
    pub top: PathBuf,
    /// The top of the repository's first work tree; the same unless this is a linked one.
    pub main: PathBuf,
    /// The repository's common git directory.
    pub common: PathBuf,
    /// Where the repository came from, as `host/path`.
    pub remote: Option<String>,
}

impl WorkTree {
    /// The work tree that a directory is in.
    pub fn around(directory: &Path) -> Option<Self> {
        let top = directory.ancestors().find(|place| place.join(".git").exists())?;
        Self::at(top)
    }

    /// The work tree whose top this is.
    pub fn at(top: &Path) -> Option<Self> {
        let dot = top.join(".git");
        let common = if dot.is_dir() {
            dot
        } else {
            // A linked work tree: a file that names its own directory, which names the common one.
            let text = safe_open::read_text(&dot, MOST_POINTER).ok()?;
            let own = top.join(text.trim().strip_prefix("gitdir:")?.trim());
            match safe_open::read_text(&own.join("commondir"), MOST_POINTER) {
                Ok(common) => own.join(common.trim()),
                Err(_) => own,
            }
        };
        let common = common.canonicalize().ok()?;
        let main = match common.file_name() {
            Some(name) if name == ".git" => common.parent()?.to_owned(),
            _ => top.to_owned(),
        };
        let config = safe_open::read_text(&common.join("config"), MOST_CONFIG).ok();
        let remote = config.and_then(|text| origin(&text));
        Some(Self { top: top.to_owned(), main, common, remote })
    }
}

/// Whether a path is the top of a linked work tree of the repository with that common git directory. The path itself is
/// not looked at: the repository lists its linked work trees.
pub fn is_linked(common: &Path, top: &str) -> bool {
    let Ok(folder) = Folder::open(common).and_then(|folder| folder.enter(OsStr::new("worktrees"))) else {
        return false;
    };
    let points_there = |name: &std::ffi::OsString| {
        let text = folder.enter(name).and_then(|own| own.read(OsStr::new("gitdir"), MOST_POINTER)).ok();
        text.as_deref()
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .and_then(|text| text.trim().strip_suffix("/.git"))
            .is_some_and(|found| found == top)
    };
    folder.names(MOST_LINKED).unwrap_or_default().iter().any(points_there)
}

/// The address of `origin` in the text of a repository's configuration.
fn origin(config: &str) -> Option<String> {
    let mut inside = false;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == "[remote \"origin\"]";
        } else if inside
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "url"
        {
            return remote(value.trim());
        }
    }
    None
}

/// A repository's address as `host/path`, whichever way it is written; nothing if it is not one.
pub fn remote(address: &str) -> Option<String> {
    let rest = match address.split_once("://") {
        Some(("http" | "https" | "ssh" | "git" | "git+ssh", rest)) => {
            let (host, path) = rest.split_once('/')?;
            format!("{host}/{path}")
        }
        Some(_) => return None,
        // git@host:path
        None => {
            let (host, path) = address.split_once(':')?;
            if !host.contains('@') || host.contains('/') || path.is_empty() {
                return None;
            }
            format!("{host}/{}", path.trim_start_matches('/'))
        }
    };
    let (host, path) = rest.split_once('/')?;
    let host = host.rsplit('@').next().unwrap_or(host).split(':').next()?.to_ascii_lowercase();
    let path = path.trim_end_matches('/').trim_end_matches(".git");
    (!host.is_empty() && !path.is_empty()).then(|| format!("{host}/{path}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn one_repository_has_one_address() {
        for written in [
            "git@Example.org:team/app.git",
            "https://example.org/team/app",
            "https://user:pw@example.org/team/app.git/",
            "ssh://git@example.org:22/team/app.git",
        ] {
            assert_eq!(remote(written).as_deref(), Some("example.org/team/app"), "{written}");
        }
        for other in ["relative/path", "/srv/app", "C:/app", "file:///srv/app", "git@host:", ""] {
            assert_eq!(remote(other), None, "{other}");
        }
    }

    #[test]
    fn linked_work_trees_belong_to_the_first() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let (app, linked) = (root.join("app"), root.join("linked"));
        fs::create_dir_all(app.join(".git/worktrees/linked")).unwrap();
        fs::create_dir_all(linked.join("src")).unwrap();
        fs::write(
            app.join(".git/config"),
            "[core]\n\tx = 1\n[remote \"origin\"]\n\turl = git@h.org:a/b.git\n",
        )
        .unwrap();
        fs::write(app.join(".git/worktrees/linked/commondir"), "../..\n").unwrap();
        fs::write(linked.join(".git"), format!("gitdir: {}\n", app.join(".git/worktrees/linked").display()))
            .unwrap();
        let gitdir = format!("{}/.git\n", linked.display());
        fs::write(app.join(".git/worktrees/linked/gitdir"), gitdir).unwrap();
        let common = app.join(".git");
        assert!(is_linked(&common, linked.to_str().unwrap()));
        assert!(!is_linked(&common, app.to_str().unwrap()));
        let found = WorkTree::around(&linked.join("src")).unwrap();
        let remote = Some("h.org/a/b".into());
        assert_eq!(found, WorkTree { top: linked, main: app.clone(), common, remote });
        assert_eq!(WorkTree::at(&app).unwrap().main, app);
        assert_eq!(WorkTree::at(&root), None);
    }
}
