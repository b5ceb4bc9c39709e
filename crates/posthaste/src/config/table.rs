//! What the list of settings is made into: the `settings!` macro and the definition of one setting.

use std::ffi::OsStr;
use std::sync::LazyLock;

use serde_json::Value as Json;

use super::value::{Accepts, Value};

/// One setting, as documents and help describe it.
#[derive(Debug)]
pub struct Definition {
    /// Its key in posthaste.toml, and in the rows of `posthaste config`.
    pub name: &'static str,
    /// What it means.
    pub about: String,
    /// Its flag, if it has one, with the leading dashes.
    pub flag: Option<String>,
    /// Its environment variable.
    pub var: String,
    /// Its default as JSON; null if it is unset by default, or depends on the machine.
    pub default: Json,
    /// The values that it takes.
    pub accepts: Accepts,
}

impl Definition {
    fn new<T: Value>(name: &'static str, about: &str, flag: Option<&str>, default: Json) -> Self {
        let words = |part: &str| part.replace('_', "-");
        Self {
            name,
            about: about.trim().to_owned(),
            flag: flag.map(|field| format!("--{}", words(field))),
            var: format!("POSTHASTE_{}", name.to_ascii_uppercase()),
            default,
            accepts: T::accepts(),
        }
    }

    pub(super) fn of<T: Value>(
        name: &'static str,
        about: &str,
        flag: Option<&'static str>,
        default: &T,
    ) -> Self {
        Self::new::<T>(name, about, flag, default.to_json())
    }

    /// The help of its flag: the meaning, the default if there is one to name, and the variable.
    fn help(&self) -> String {
        let default = match &self.default {
            Json::String(text) => format!(" [default: {text}]"),
            Json::Number(number) => format!(" [default: {number}]"),
            _ => String::new(),
        };
        format!("{}{default} [env: {}]", self.about, self.var)
    }
}

/// All settings, in the order of `posthaste config`.
pub fn definitions() -> &'static [Definition] {
    // The data directory is chosen before the others, and its default depends on the machine.
    static ALL: LazyLock<Vec<Definition>> = LazyLock::new(|| {
        let about = "The data directory: mail, tokens, posthaste.toml";
        let data = Definition::new::<std::path::PathBuf>("data", about, Some("data"), Json::Null);
        std::iter::once(data).chain(super::settings::listed()).collect()
    });
    &ALL
}

/// The definition of the setting with this name, which must be in the list.
pub(super) fn definition(name: &str) -> &'static Definition {
    let found = definitions().iter().find(|definition| definition.name == name);
    found.unwrap_or_else(|| panic!("{name} is not a setting"))
}

/// The help of a setting's flag.
pub fn help(name: &str) -> String {
    definition(name).help()
}

/// A flag as clap reads it, and the setting that it gives.
pub(super) trait Flag<T> {
    /// The value that was typed, if the flag was.
    fn value(&self, default: &T) -> Option<Result<T, String>>;
}

/// A flag that is read by the setting's own rules.
impl<T: Value> Flag<T> for Option<String> {
    fn value(&self, _default: &T) -> Option<Result<T, String>> {
        self.as_deref().map(|text| T::from_os(OsStr::new(text)))
    }
}

/// A flag that clap reads.
impl<T: Value + Clone> Flag<T> for Option<T> {
    fn value(&self, _default: &T) -> Option<Result<T, String>> {
        self.clone().map(Ok)
    }
}

impl<T: Value + Clone> Flag<Self> for Option<T> {
    fn value(&self, _default: &Self) -> Option<Result<Self, String>> {
        self.is_some().then(|| Ok(self.clone()))
    }
}

impl Flag<Self> for Vec<String> {
    fn value(&self, _default: &Self) -> Option<Result<Self, String>> {
        (!self.is_empty()).then(|| Ok(self.clone()))
    }
}

/// A switch sets the opposite of the default: `--no-auth`, `--trust-local`.
impl Flag<Self> for bool {
    fn value(&self, default: &Self) -> Option<Result<Self, String>> {
        self.then_some(Ok(!default))
    }
}

/// Makes of the list of settings: [`super::Config`], the flags, how each is read, and their definitions.
macro_rules! settings {
    ($(
        $(#[doc = $about:literal])+
        $name:ident: $type:ty = $default:expr
        $(, flag $flag:ident: $given:ty $(, $option:ident $(= $setting:expr)?)*)?;
    )+) => {
        /// Every setting of a server, each with its origin. Made by [`Config::load`](super::Config::load); `serve`
        /// starts only after [`Config::check`](super::Config::check).
        #[derive(Clone, Debug)]
        pub struct Config {
            /// The data directory: mail, tokens, posthaste.toml
            pub data: super::Setting<PathBuf>,
            $( $(#[doc = $about])+ pub $name: super::Setting<$type>, )+
        }

        /// The settings as flags. Each can also stand in the environment and in posthaste.toml.
        #[derive(Clone, Debug, Default, clap::Args)]
        pub struct OfficeArgs {
            $($(
                #[arg(long, help = super::table::help(stringify!($name)) $(, $option $(= $setting)?)*)]
                pub $flag: $given,
            )?)+
        }

        impl Config {
            /// Reads every setting but the data directory, which is known by now.
            pub(super) fn read(
                data: super::Setting<PathBuf>,
                flags: &OfficeArgs,
                from: &super::load::Sources<'_>,
            ) -> Result<Self, super::ConfigError> {
                Ok(Self {
                    data,
                    $( $name: {
                        let default: $type = $default;
                        let flag: Option<Result<$type, String>> =
                            None $( .or(super::table::Flag::<$type>::value(&flags.$flag, &default)) )?;
                        from.setting(stringify!($name), flag, default)?
                    }, )+
                })
            }

            /// The settings in force, in the order of the list. None of them is a secret: keys and tokens are files,
            /// and only their paths are settings.
            pub fn rows(&self) -> Vec<super::Row> {
                vec![
                    self.row("data", &self.data),
                    $( self.row(stringify!($name), &self.$name), )+
                ]
            }
        }

        /// The definitions of the listed settings.
        pub(super) fn listed() -> Vec<super::table::Definition> {
            vec![$({
                let default: $type = $default;
                let flag: Option<&str> = None $( .or(Some(stringify!($flag))) )?;
                super::table::Definition::of(stringify!($name), concat!($($about),+), flag, &default)
            },)+]
        }
    };
}

pub(super) use settings;
