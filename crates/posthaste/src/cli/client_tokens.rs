//! Tokens of this machine's MCP clients: one for each client and directory, kept in the data directory, so that no client's
//! own configuration holds one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use posthaste_engine::names::slug;
use posthaste_engine::nouns::RealmName;
use posthaste_wire::control::{Token, TokenCreateParams, TokenCreateResult, TokenRevokeParams, TokenRole};
use serde::{Deserialize, Serialize};

use super::args::{GlobalArgs, OfficeArgs};
use super::exit::{Exit, Failure};
use super::realm_access::RealmAccess;
use super::target::Target;
use crate::config::Config;
use posthaste_host::keys;
use posthaste_host::projects::git::WorkTree;
use posthaste_host::safe_open::Folder;
use posthaste_host::safe_open::make_private_directory;

/// The longest file that is read.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// The most clients and directories that are listed.
const MAX_CLIENTS: usize = 10_000;

/// A client in a directory.
#[derive(Clone, Debug)]
pub(super) struct ClientDirectory {
    pub(super) client: String,
    pub(super) directory: PathBuf,
    pub(super) realm: Option<RealmName>,
}

/// The file that holds a client's token.
#[derive(Clone, Deserialize, Serialize)]
struct Kept {
    id: String,
    token: String,
    client: String,
    directory: PathBuf,
}

impl ClientDirectory {
    /// The work tree around the directory that this process was started in, or that directory itself.
    pub(super) fn here(client: &str, realm: Option<RealmName>) -> Result<Self, Failure> {
        let here = std::env::current_dir()?;
        let directory = WorkTree::around(&here).map_or(here, |tree| tree.top);
        let directory = directory.canonicalize().unwrap_or(directory);
        Ok(Self { client: client.to_owned(), directory, realm })
    }

    /// The name on the token: two directories never share one, also if their last parts are equal.
    pub(super) fn name(&self) -> String {
        let directory =
            self.directory.file_name().map(|name| slug(&name.to_string_lossy())).unwrap_or_default();
        let realm = self.realm.as_ref().map(RealmName::as_str).unwrap_or_default();
        let hash = keys::hash(&format!("{realm}\n{}", self.directory.display()));
        let tail: String = hash[..3].iter().map(|byte| format!("{byte:02x}")).collect();
        let words = [slug(&self.client), directory, tail];
        let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
        words.join("-")
    }

    fn file(&self) -> String {
        format!("{}.json", self.name())
    }

    /// The token that is kept for the client.
    pub(super) fn kept(&self, data: &Path) -> Result<Option<String>, Failure> {
        let folder = folder(data);
        if !folder.is_dir() {
            return Ok(None);
        }
        let file = self.file();
        let failed = |why: &dyn std::fmt::Display| {
            Failure::new(Exit::Failed, format!("{}: {why}", folder.join(&file).display()))
        };
        let open = Folder::at(&folder).map_err(|error| failed(&error))?;
        if !open.has(file.as_ref()) {
            return Ok(None);
        }
        let bytes = open.read(file.as_ref(), MAX_FILE_BYTES).map_err(|error| failed(&error))?;
        let kept: Kept = serde_json::from_slice(&bytes)
            .map_err(|_| failed(&"the file is damaged; remove it to have another token made"))?;
        Ok(Some(kept.token))
    }

    /// Makes a token for the client and keeps it; if `replaces` is set, in place of an earlier one.
    pub(super) async fn make(
        &self,
        realm: &RealmAccess,
        data: &Path,
        name: Option<&str>,
        replaces: bool,
    ) -> Result<String, Failure> {
        let name = name.map_or_else(|| self.name(), str::to_owned);
        let params = TokenCreateParams { role: TokenRole::User, name, observe: false, expires_at: None };
        let made: TokenCreateResult = realm.call("token.create", params).await?;
        let kept = Kept {
            id: made.entry.id,
            token: made.token,
            client: self.client.clone(),
            directory: self.directory.clone(),
        };
        // Another process of the same client may have made one meanwhile, which then is the one to use.
        if !replaces && let Some(other) = self.kept(data)? {
            let params = TokenRevokeParams { id: Some(kept.id), token: None };
            drop(realm.call::<Token>("token.revoke", params).await);
            return Ok(other);
        }
        let folder = folder(data);
        make_private_directory(&folder)?;
        let written = Folder::at(&folder).and_then(|open| {
            open.replace(self.file().as_ref(), &serde_json::to_vec(&kept).unwrap_or_default(), 0o600)
        });
        written.map_err(|error| Failure::new(Exit::Failed, format!("{}: {error}", folder.display())))?;
        Ok(kept.token)
    }

    /// The client and its directory, for people.
    fn describe(kept: &Kept) -> String {
        format!("{} in {}", kept.client, kept.directory.display())
    }
}

/// The folder in the data directory that holds the files.
pub(super) fn folder(data: &Path) -> PathBuf {
    data.join("clients")
}

/// The client and directory of each token in the data directory, by the token's id; empty if another server is named.
pub(super) fn known(global: &GlobalArgs) -> HashMap<String, String> {
    let read = || -> Option<HashMap<String, String>> {
        let target = Target::of(global).ok().filter(|target| target.url.is_none());
        target?;
        let config = Config::load(global, &OfficeArgs::default(), &|name| std::env::var_os(name)).ok()?;
        let open = Folder::at(&folder(&config.data.value)).ok()?;
        let names = open.names(MAX_CLIENTS).ok()?;
        let kept = names.iter().filter_map(|name| {
            let bytes = open.read(name, MAX_FILE_BYTES).ok()?;
            serde_json::from_slice::<Kept>(&bytes).ok()
        });
        Some(kept.map(|kept| (kept.id.clone(), ClientDirectory::describe(&kept))).collect())
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    // F10, F11: one name for each directory.
    #[test]
    fn directories_of_the_same_name_differ() {
        let place = |directory: &str, realm: Option<&str>| ClientDirectory {
            client: "claude-code".to_owned(),
            directory: directory.into(),
            realm: realm.map(|realm| RealmName::new(realm).unwrap()),
        };
        let one = place("/srv/a/app", None).name();
        assert!(one.starts_with("claude-code-app-"), "{one}");
        assert_eq!(one, place("/srv/a/app", None).name());
        assert_ne!(one, place("/srv/b/app", None).name());
        assert_ne!(one, place("/srv/a/app", Some("other")).name());
        assert!(!place("/", None).name().contains("--"));
    }
}
