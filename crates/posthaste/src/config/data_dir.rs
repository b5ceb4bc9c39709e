//! The default data directory of each platform.

use std::ffi::OsString;
use std::path::PathBuf;

/// The default data directory, or why there is none.
pub(super) fn default_data(env: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, String> {
    let var = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let found = if cfg!(windows) {
        var("LOCALAPPDATA").map(|base| base.join("posthaste"))
    } else if cfg!(target_os = "macos") {
        var("HOME").map(|home| home.join("Library/Application Support/posthaste"))
    } else {
        // The specification says that a relative XDG path is invalid and to be ignored.
        var("XDG_DATA_HOME")
            .filter(|base| base.is_absolute())
            .or_else(|| var("HOME").map(|home| home.join(".local/share")))
            .map(|base| base.join("posthaste"))
    };
    found.ok_or_else(|| "no home directory is known; give one with --data DIR or POSTHASTE_DATA".to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn xdg_then_home_then_a_clear_error() {
        let table = [
            (Some("/x"), Some("/home/ann"), Some("/x/posthaste")),
            (Some("relative"), Some("/home/ann"), Some("/home/ann/.local/share/posthaste")),
            (Some(""), Some("/home/ann"), Some("/home/ann/.local/share/posthaste")),
            (None, None, None),
        ];
        for (xdg, home, expected) in table {
            let env = |name: &str| match name {
                "XDG_DATA_HOME" => xdg.map(OsString::from),
                "HOME" => home.map(OsString::from),
                _ => None,
            };
            assert_eq!(default_data(&env).ok(), expected.map(PathBuf::from), "{xdg:?} {home:?}");
        }
    }
}
