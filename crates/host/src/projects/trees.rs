//! The work trees that the operator named: the only directories that the server reads for callers. Any other path that
//! a caller names is just a name.

use std::path::{Component, Path, PathBuf};

use super::Given;
use super::git::{self, WorkTree};
use crate::safe_open::{Folder, OpenError};

/// Directories that hold no work trees, only interfaces to the kernel.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The named work trees.
#[derive(Debug, Default)]
pub struct Trees(Vec<Tree>);

#[derive(Debug)]
struct Tree {
    /// Its top, without links.
    root: PathBuf,
    /// Its top as it was named.
    named: PathBuf,
    /// The repository's common git directory.
    common: Option<PathBuf>,
}

/// Why a file of a work tree was not read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    #[error(
        "it is not below a work tree that the operator named (serve --project DIR); send the bytes in \
         'attachments' instead"
    )]
    NotNamed,
    #[error("what lies in .git is not attached")]
    Git,
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl Trees {
    /// The directories that `serve --project` names, and the work tree around the directory it was started in. A tree
    /// is left out if it is as wide as a home directory or holds the data directory: it would not limit anything.
    pub fn named(here: Option<&Path>, given: &[Given], data: &Path) -> Self {
        let given = given.iter().filter_map(|given| given.directory.as_ref());
        let mut trees = Vec::new();
        let around = here.and_then(WorkTree::around);
        // A `.git` that another account put into a parent directory names nothing.
        let own = around.filter(|tree| {
            let us = rustix::process::geteuid().as_raw();
            Folder::open(&tree.top).is_ok_and(|folder| folder.owner() == us)
        });
        for path in own.iter().map(|tree| &tree.top).chain(given) {
            let Ok(root) = path.canonicalize() else { continue };
            if !root.is_dir() {
                continue;
            }
            if let Some(why) = too_wide(&root, data) {
                tracing::warn!(path = %root.display(), "no files are attached from this project: {why}");
                continue;
            }
            let common = WorkTree::at(&root).map(|tree| tree.common);
            trees.push(Tree { root, named: path.clone(), common });
        }
        Self(trees)
    }

    /// Reads a file for a caller, by an absolute path or one relative to `base`. Blocks.
    pub fn read(&self, base: &str, given: &str, most: u64) -> Result<Vec<u8>, TreeError> {
        let path = Path::new(base).join(given);
        let plain = |part: &Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        if !path.is_absolute() || !path.components().all(|part| plain(&part)) {
            return Err(TreeError::NotNamed);
        }
        let found = self.0.iter().find_map(|tree| {
            let below = path.strip_prefix(&tree.root).or_else(|_| path.strip_prefix(&tree.named));
            below.ok().map(|below| (tree, below))
        });
        let Some((tree, below)) = found else { return Err(TreeError::NotNamed) };
        if below.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git")) {
            return Err(TreeError::Git);
        }
        Ok(Folder::open(&tree.root)?.read_below(below, most)?)
    }

    /// The top of the named work tree that a path is a linked work tree of. Blocks; the path itself is not looked at.
    pub fn main_of(&self, path: &str) -> Option<&Path> {
        let is_linked =
            |tree: &&Tree| tree.common.as_ref().is_some_and(|common| git::is_linked(common, path));
        self.0.iter().find(is_linked).map(|tree| tree.root.as_path())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn too_wide(root: &Path, data: &Path) -> Option<&'static str> {
    let resolved = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let home = std::env::var_os("HOME").map(|home| resolved(PathBuf::from(home)));
    let data = resolved(data.to_owned());
    if root.parent().is_none() {
        return Some("it is the whole machine");
    }
    if KERNEL.iter().any(|kernel| root.starts_with(kernel)) {
        return Some("it belongs to the kernel");
    }
    if home.is_some_and(|home| home.starts_with(root)) {
        return Some("it is a home directory, or holds one");
    }
    if data.starts_with(root) || root.starts_with(&data) {
        return Some("it holds the data directory, or lies in it");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_directories_are_not_work_trees() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let (app, data) = (root.join("app"), root.join("data"));
        for folder in [&app, &data] {
            std::fs::create_dir_all(folder.join("x")).unwrap();
        }
        std::fs::write(app.join("a.txt"), "fine").unwrap();
        let given =
            |path: &Path| [Given { names: Vec::new(), directory: Some(path.to_owned()), wanted: None }];
        for wide in ["/", "/proc/self", "/dev", root.to_str().unwrap(), data.to_str().unwrap()] {
            assert!(Trees::named(None, &given(Path::new(wide)), &data).is_empty(), "{wide}");
        }
        assert!(Trees::named(None, &given(&data.join("x")), &data).is_empty());
        let trees = Trees::named(None, &given(&app), &data);
        let app = app.to_str().unwrap();
        assert_eq!(trees.read(app, "a.txt", 10).unwrap(), b"fine");
        assert_eq!(trees.read("/nowhere", &format!("{app}/a.txt"), 10).unwrap(), b"fine");
        for elsewhere in ["../data/x", "/etc/hostname", "./../app/a.txt"] {
            assert_eq!(trees.read(app, elsewhere, 10), Err(TreeError::NotNamed), "{elsewhere}");
        }
        assert_eq!(trees.read(app, ".git/config", 10), Err(TreeError::Git));
    }
}
