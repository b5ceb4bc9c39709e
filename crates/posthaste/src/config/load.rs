//! Reads every setting: from the flag, else the environment variable, else the file, else the default.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::file::File;
use super::table::{Definition, definition, definitions};
use super::value::Value;
use super::{Config, ConfigError, OfficeArgs, Origin, Setting, data_dir};
use crate::cli::args::GlobalArgs;

/// How the program asks for an environment variable; tests ask a table instead.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl Config {
    /// Reads every setting. Nothing is created and nothing is checked against anything else;
    /// that is the work of [`Config::check`].
    pub fn load(global: &GlobalArgs, flags: &OfficeArgs, env: Env<'_>) -> Result<Self, ConfigError> {
        let (data, file) = locate(global, env)?;
        Self::read(data, flags, &Sources { env, file: file.as_ref() })
    }

    /// The settings of a file alone, by its text: a seam for tests and fuzz targets.
    #[doc(hidden)]
    pub fn from_text(text: &str) -> Result<Self, ConfigError> {
        let file = File::parse(Path::new("posthaste.toml"), text, &known_keys())?;
        let data = Setting::by_default(PathBuf::from("data"));
        Self::read(data, &OfficeArgs::default(), &Sources { env: &|_| None, file: Some(&file) })
    }
}

/// The two settings that say where the others are.
fn locate(global: &GlobalArgs, env: Env<'_>) -> Result<(Setting<PathBuf>, Option<File>), ConfigError> {
    let named = global.config.clone().or_else(|| env("POSTHASTE_CONFIG").filter(is_set).map(PathBuf::from));
    let named = named.map(absolute).transpose()?;
    let file = match &named {
        None => None,
        // A file that was named must be there; the one in the data directory may be missing.
        Some(path) => match File::read(path, &known_keys())? {
            Some(file) => Some(file),
            None => return Err(ConfigError::new(path.display(), "no such configuration file")),
        },
    };

    let from = Sources { env, file: file.as_ref() };
    let data: Option<Setting<PathBuf>> = from.given(definition("data"), global.data.clone().map(Ok))?;
    let (path, origin) = match data {
        Some(Setting { value, origin }) => (value, origin),
        None => {
            let path = data_dir::default_data(env).map_err(|problem| ConfigError::new("data", problem))?;
            (path, Origin::Default)
        }
    };
    let data = Setting { value: absolute(path)?, origin };
    if named.is_some() {
        return Ok((data, file));
    }

    let file = File::read(&data.value.join("posthaste.toml"), &known_keys())?;
    match file {
        // By then the directory is already chosen, so the key could only be ignored.
        Some(file) if file.get("data").is_some() => Err(ConfigError::new(
            file.path.display(),
            "`data` has no meaning inside the data directory; use it in a file named with --config",
        )),
        file => Ok((data, file)),
    }
}

/// The environment and the file, which are read where no flag was typed.
pub(super) struct Sources<'a> {
    env: Env<'a>,
    file: Option<&'a File>,
}

impl Sources<'_> {
    /// The setting with this name: what was typed, else what the environment or the file has, else the default.
    pub(super) fn setting<T: Value>(
        &self,
        name: &str,
        flag: Option<Result<T, String>>,
        default: T,
    ) -> Result<Setting<T>, ConfigError> {
        Ok(self.given(definition(name), flag)?.unwrap_or_else(|| Setting::by_default(default)))
    }

    fn given<T: Value>(
        &self,
        setting: &'static Definition,
        flag: Option<Result<T, String>>,
    ) -> Result<Option<Setting<T>>, ConfigError> {
        if let Some(typed) = flag {
            let name = setting.flag.as_deref().unwrap_or(setting.name);
            let value = typed.map_err(|problem| ConfigError::new(name, problem))?;
            return Ok(Some(Setting { value, origin: Origin::Flag }));
        }
        if let Some(text) = (self.env)(&setting.var).filter(is_set) {
            let value = T::from_os(&text).map_err(|problem| ConfigError::new(&setting.var, problem))?;
            return Ok(Some(Setting { value, origin: Origin::Env(&setting.var) }));
        }
        let Some((file, value)) = self.file.and_then(|file| Some((file, file.get(setting.name)?))) else {
            return Ok(None);
        };
        let value = T::from_toml(value, file.base()).map_err(|problem| {
            ConfigError::new(format_args!("{}: {}", file.path.display(), setting.name), problem)
        })?;
        Ok(Some(Setting { value, origin: Origin::File(file.path.clone()) }))
    }
}

/// The keys of posthaste.toml. `data` is only for a file named with `--config`: see [`Config::load`].
fn known_keys() -> Vec<&'static str> {
    definitions().iter().map(|definition| definition.name).collect()
}

/// False for an empty variable: many tools unset one by setting it to nothing.
fn is_set(value: &OsString) -> bool {
    value.as_os_str() != OsStr::new("")
}

fn absolute(path: PathBuf) -> Result<PathBuf, ConfigError> {
    std::path::absolute(&path).map_err(|error| ConfigError::new(path.display(), error))
}
