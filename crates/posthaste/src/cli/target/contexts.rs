//! Named servers: addresses and tokens in one private file of the user.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use posthaste_engine::nouns::RealmName;
use serde::{Deserialize, Serialize};

use super::super::exit::{Exit, Failure};
use crate::config::Env;
use posthaste_host::safe_open::Folder;
use posthaste_host::safe_open::make_private_directory;

/// The file's name.
const FILE: &str = "contexts.toml";
/// The longest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The contexts of this user.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::cli) struct Contexts {
    /// The one that counts unless a flag or the environment says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) current: Option<String>,
    #[serde(default)]
    pub(in crate::cli) contexts: BTreeMap<String, Context>,
}

/// One server.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::cli) struct Context {
    pub(in crate::cli) url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) realm: Option<RealmName>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("url", &self.url).field("realm", &self.realm).finish_non_exhaustive()
    }
}

impl Contexts {
    /// Reads the user's file; no contexts if there is none.
    pub(in crate::cli) fn load() -> Result<Self, Failure> {
        match folder(&|name| std::env::var_os(name)) {
            Some(folder) => Self::read(&folder.join(FILE)),
            None => Ok(Self::default()),
        }
    }

    /// Writes the user's file, for its owner only.
    pub(in crate::cli) fn save(&self) -> Result<PathBuf, Failure> {
        let folder = folder(&|name| std::env::var_os(name)).ok_or_else(|| {
            Failure::new(Exit::Usage, "no home directory is known; set HOME or XDG_CONFIG_HOME")
        })?;
        self.write(&folder)
    }

    /// A context, or which there are.
    pub(in crate::cli) fn get(&self, name: &str) -> Result<&Context, Failure> {
        self.contexts.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
            let known = match known.is_empty() {
                true => "`posthaste context add NAME URL` makes one".to_owned(),
                false => format!("there are {}", known.join(", ")),
            };
            Failure::new(Exit::Usage, format!("there is no context {name}; {known}"))
        })
    }

    fn read(path: &Path) -> Result<Self, Failure> {
        let failed =
            |why: &dyn std::fmt::Display| Failure::new(Exit::Usage, format!("{}: {why}", path.display()));
        let mut file = match std::fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(failed(&error)),
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = file.metadata().map_err(|error| failed(&error))?.permissions().mode();
            if mode & 0o077 != 0 {
                return Err(failed(&format!(
                    "other accounts can read the tokens in it; run `chmod 600 {}`",
                    path.display()
                )));
            }
        }
        let mut text = String::new();
        let mut bounded = std::io::Read::take(&mut file, MAX_FILE_BYTES);
        std::io::Read::read_to_string(&mut bounded, &mut text).map_err(|error| failed(&error))?;
        // The parser's own rendering quotes the line, which may hold a token.
        toml::from_str(&text).map_err(|error| failed(&error.message()))
    }

    fn write(&self, folder: &Path) -> Result<PathBuf, Failure> {
        let path = folder.join(FILE);
        let failed =
            |why: &dyn std::fmt::Display| Failure::new(Exit::Failed, format!("{}: {why}", path.display()));
        make_private_directory(folder).map_err(|error| failed(&error))?;
        let text = toml::to_string(self).map_err(|error| failed(&error))?;
        let open = Folder::at(folder).map_err(|error| failed(&error))?;
        open.replace(FILE.as_ref(), text.as_bytes(), 0o600).map_err(|error| failed(&error))?;
        Ok(path)
    }
}

/// Where the user's settings of this program are.
fn folder(env: Env<'_>) -> Option<PathBuf> {
    let var = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = if cfg!(windows) {
        var("APPDATA")
    } else {
        // The specification says that a relative XDG path is invalid and to be ignored.
        let xdg = var("XDG_CONFIG_HOME").filter(|base| base.is_absolute());
        xdg.or_else(|| var("HOME").map(|home| home.join(".config")))
    };
    base.map(|base| base.join("posthaste"))
}

/// A token as it may be shown: enough to tell two apart, too little to use.
pub(in crate::cli) fn hint(token: &str) -> String {
    match token.get(..7).filter(|_| token.len() >= 20) {
        Some(start) => format!("{start}…"),
        None => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_kept_for_their_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("posthaste");
        let mut contexts = Contexts { current: Some("a".to_owned()), ..Contexts::default() };
        let one = Context { url: "http://x".to_owned(), token: Some("ph_secret".to_owned()), realm: None };
        assert!(!format!("{one:?}").contains("secret"));
        contexts.contexts.insert("a".to_owned(), one);
        let path = contexts.write(&folder).unwrap();
        let read = Contexts::read(&path).unwrap();
        assert_eq!(read.get("a").unwrap().token.as_deref(), Some("ph_secret"));
        assert!(read.get("b").unwrap_err().error.to_string().contains("there are a"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            set(0o644);
            assert!(Contexts::read(&path).unwrap_err().error.to_string().contains("chmod 600"));
            set(0o600);
        }
        std::fs::write(&path, "token = \"ph_secret").unwrap();
        assert!(!Contexts::read(&path).unwrap_err().error.to_string().contains("ph_secret"));
    }

    #[test]
    fn a_hint_tells_no_token() {
        assert_eq!(hint("ph_0123456789abcdef0123"), "ph_0123…");
        assert_eq!(hint("short"), "…");
    }
}
