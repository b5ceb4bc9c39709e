//! `posthaste config --markdown`: docs/configuration.md.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::table::{Definition, definitions};

const INTRODUCTION: &str = "\
# Configuration

Made by `posthaste config --markdown`; do not edit.

Each setting can be given as a flag of `posthaste serve`, as an environment variable, or as a key of `posthaste.toml` in the
data directory (or in the file named with `--config` or `POSTHASTE_CONFIG`). Flags win over the environment, the environment over the file, the
file over the default. An empty variable counts as unset. In the environment a list is separated by commas, and true and false are also
`on` and `off`. Relative paths in a file are relative to the file.

`posthaste config` shows every setting in force and where it came from; `posthaste config --schema` prints a JSON schema of the
file. `data` is allowed only in a file named with `--config`.

| Setting | Values | Default | Flag | Environment | Meaning |
| --- | --- | --- | --- | --- | --- |
";

/// The page about settings.
pub fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    for setting in definitions() {
        let Definition { name, about, flag, var, default, accepts } = setting;
        let default = match default {
            Json::Null => String::new(),
            Json::Array(list) if list.is_empty() => String::new(),
            Json::String(text) => format!("`{text}`"),
            other => format!("`{other}`"),
        };
        let flag = flag.as_ref().map(|flag| format!("`{flag}`")).unwrap_or_default();
        let values = accepts.in_words();
        // Writing into a string does not fail.
        let _ = writeln!(page, "| `{name}` | {values} | {default} | {flag} | `{var}` | {about} |");
    }
    page
}
