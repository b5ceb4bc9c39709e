//! The projects that a start of the program was given: the work tree around the directory it was started in, and each
//! `--project`. And the names of a directory's work tree.

use std::path::{Path, PathBuf};

use posthaste_engine::EngineError;
use posthaste_engine::nouns::RealmName;

use super::alias;
use super::git::WorkTree;
use crate::safe_open::Folder;

/// One project, by all its names.
#[derive(Clone, Debug)]
pub struct Given {
    /// The name that was given, then the others.
    pub names: Vec<String>,
    /// Where its files are, if it was named by path.
    pub directory: Option<PathBuf>,
    /// What `--project` said; nothing for the directory of the start.
    pub wanted: Option<String>,
}

/// Why a `--project` cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum GivenError {
    #[error("--project {0}: this is not a directory; name the top of a work tree")]
    NotADirectory(String),
    #[error(
        "--project {0}: there is no such directory; name one that exists, or an absolute path of another machine"
    )]
    Missing(String),
    #[error("--project {0}: this is neither a path nor the address of a repository")]
    NoName(String),
    #[error("--project {0}: {1}")]
    Failed(String, std::io::Error),
    #[error(
        "--project {wanted}: its sessions go to realm {realm}, not to {home}. To bring new sessions into {home}: \
         `{line}` (mail stays in {realm}); or start without this --project"
    )]
    Elsewhere { wanted: String, realm: RealmName, home: RealmName, line: String },
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// What a start was given. A directory that does not exist is taken by an absolute path: it may be one of another
/// machine or of a container, and is a name only.
pub fn given(here: Option<&Path>, wanted: &[String]) -> Result<Vec<Given>, GivenError> {
    let mut all = Vec::new();
    if let Some(tree) = here.and_then(WorkTree::around) {
        all.push(Given { names: names_of(&tree), directory: None, wanted: None });
    }
    for text in wanted {
        let path = Path::new(text);
        let said = Some(text.clone());
        if let Some(address) = alias(text).filter(|_| !path.is_absolute()) {
            all.push(Given { names: vec![address], directory: None, wanted: said });
            continue;
        }
        let failed = |error| GivenError::Failed(text.clone(), error);
        let absolute = std::path::absolute(path).map_err(failed)?;
        match absolute.metadata() {
            Ok(found) if !found.is_dir() => return Err(GivenError::NotADirectory(text.clone())),
            Ok(_) => {}
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            Err(_) if !path.is_absolute() => return Err(GivenError::Missing(text.clone())),
            Err(_) => tracing::warn!(
                path = text,
                "this project's directory does not exist on this machine: its path is a name only"
            ),
        }
        let own = absolute.to_str().and_then(alias).ok_or_else(|| GivenError::NoName(text.clone()))?;
        let tree = WorkTree::at(&absolute);
        let mut names = vec![own];
        names.extend(tree.iter().flat_map(names_of));
        all.push(Given { names: unique(names), directory: Some(absolute), wanted: said });
    }
    Ok(all)
}

/// The names of the work tree around a directory, or of the directory itself if there is none of this user's.
pub fn names_here(directory: &Path) -> Vec<String> {
    match WorkTree::around(directory).filter(|tree| is_ours(&tree.top)) {
        Some(tree) => {
            let top = tree.top.to_str().and_then(alias);
            unique(top.into_iter().chain(names_of(&tree)).collect())
        }
        None => directory.to_str().and_then(alias).into_iter().collect(),
    }
}

/// A `.git` that another account put into a parent directory names nothing.
fn is_ours(top: &Path) -> bool {
    let us = rustix::process::geteuid().as_raw();
    Folder::open(top).is_ok_and(|folder| folder.owner() == us)
}

/// The names of a work tree: the path of the repository's first one, its own, the repository's address.
fn names_of(tree: &WorkTree) -> Vec<String> {
    let paths = [&tree.main, &tree.top].into_iter().filter_map(|path| path.to_str().and_then(alias));
    unique(paths.chain(tree.remote.clone()).collect())
}

fn unique(names: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().filter(|name| seen.insert(name.clone())).collect()
}
