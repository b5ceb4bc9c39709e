//! A setting's value and its origin, so that users see which file or variable won.

use std::fmt;
use std::path::PathBuf;

/// One setting in force.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

/// Where a value came from; earlier variants win over later ones.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// Typed on the command line.
    Flag,
    /// Read from this environment variable.
    Env(&'static str),
    /// Read from this file.
    File(PathBuf),
    /// Given nowhere.
    Default,
}

impl<T> Setting<T> {
    pub fn by_default(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Env(variable) => f.write_str(variable),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}
