//! Which server a command uses, with which token, and why: flag over environment over context over the running server
//! of the data directory over the data directory itself.

pub(super) mod contexts;

use std::path::Path;

use posthaste_engine::nouns::RealmName;

use self::contexts::Contexts;
use super::args::GlobalArgs;
use super::args::read_token;
use super::client::Client;
use super::exit::{Exit, Failure};
use crate::config::{Config, Env, Origin};
use crate::serve::Whereabouts;
use posthaste_host::keys::AdminKey;

/// Names a server by its address.
pub(super) const URL: &str = "POSTHASTE_URL";
/// Holds the token to show it.
pub(super) const TOKEN: &str = "POSTHASTE_TOKEN";
/// Names one of the contexts.
const CONTEXT: &str = "POSTHASTE_CONTEXT";

/// Where a command's server, or its token, was named.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Source {
    Flag(&'static str),
    Env(&'static str),
    /// A context, and the flag, variable or command that chose it.
    Context {
        name: String,
        by: &'static str,
    },
    /// Nothing was named: the data directory, and the server that has it open.
    Data,
}

impl Source {
    /// In words, for `posthaste context show`.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Flag(name) => format!("by {name}"),
            Self::Env(name) => format!("by {name} in the environment"),
            Self::Context { name, by } => format!("by the context {name}, chosen by {by}"),
            Self::Data => "by the data directory".to_owned(),
        }
    }
}

/// The server that a command uses.
#[derive(Clone)]
pub(super) struct Target {
    /// Its address; the data directory is meant if absent.
    pub(super) url: Option<String>,
    pub(super) url_from: Source,
    /// The token that was named. The data directory's own key is not among them: see [`Target::server`].
    pub(super) token: Option<String>,
    pub(super) token_from: Option<Source>,
    /// The realm that the context names.
    pub(super) realm: Option<RealmName>,
}

/// A server that can be asked: an address, and the token to show there.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) url: String,
    pub(super) token: Option<String>,
    /// Whether it is the one that has the data directory open.
    pub(super) is_own: bool,
}

impl Target {
    /// The target by the flags, the environment and the contexts of this process.
    pub(super) fn of(global: &GlobalArgs) -> Result<Self, Failure> {
        Self::choose(global, &|name| std::env::var_os(name), &Contexts::load)
    }

    fn choose(
        global: &GlobalArgs,
        env: Env<'_>,
        contexts: &dyn Fn() -> Result<Contexts, Failure>,
    ) -> Result<Self, Failure> {
        let variable =
            |name: &str| env(name).and_then(|value| value.into_string().ok()).filter(|value| is_set(value));
        let named = |url: String, url_from: Source| -> Result<Self, Failure> {
            let (token, token_from) = given_token(global, &variable)?;
            Ok(Self { url: Some(checked(&url)?), url_from, token, token_from, realm: None })
        };
        if let Some(url) = &global.url {
            return named(url.clone(), Source::Flag("--url"));
        }
        let by_context = |name: &str, by: &'static str| -> Result<Self, Failure> {
            let known = contexts()?;
            let context = known.get(name)?;
            let from = Source::Context { name: name.to_owned(), by };
            let (given, given_from) = given_token(global, &variable)?;
            // A token in the environment belongs to the address in the environment, if there is one.
            let is_strangers = matches!(given_from, Some(Source::Env(_)))
                && by == "--context"
                && (context.token.is_some() || variable(URL).is_some());
            let (token, token_from) = match given {
                Some(token) if !is_strangers => (Some(token), given_from),
                _ => (context.token.clone(), context.token.is_some().then(|| from.clone())),
            };
            let url = Some(checked(&context.url)?);
            Ok(Self { url, url_from: from, token, token_from, realm: context.realm.clone() })
        };
        if let Some(name) = &global.context {
            return by_context(name, "--context");
        }
        if let Some(url) = variable(URL) {
            return named(url, Source::Env(URL));
        }
        if let Some(name) = variable(CONTEXT) {
            return by_context(&name, CONTEXT);
        }
        // Naming a data directory names its server, so that the context which was chosen once does not count.
        let names_data = global.data.is_some() || variable("POSTHASTE_DATA").is_some();
        if !names_data && let Some(name) = contexts()?.current {
            return by_context(&name, "`posthaste context use`");
        }
        let (token, token_from) = given_token(global, &variable)?;
        Ok(Self { url: None, url_from: Source::Data, token, token_from, realm: None })
    }

    /// The server to ask, if one is named or runs on the data directory. The data directory's own key is shown to no
    /// server but the one that has the directory locked.
    pub(super) fn server(&self, data: &Path) -> Result<Option<Server>, Failure> {
        let own = Whereabouts::live(data).map(|running| running.url);
        let Some(url) = self.url.clone().or_else(|| own.clone()) else { return Ok(None) };
        let is_own = own.as_ref() == Some(&url);
        let token = match &self.token {
            Some(token) => Some(token.clone()),
            None if is_own => own_key(data)?,
            None => None,
        };
        Ok(Some(Server { url, token, is_own }))
    }

    /// The realm to ask for; the server's default if absent. What the local settings say is of no use elsewhere.
    pub(super) fn realm(&self, config: &Config) -> Option<RealmName> {
        let local = || (self.url.is_none() && config.realm.origin != Origin::Default).then_some(());
        match &config.realm.origin {
            Origin::Flag | Origin::Env(_) => Some(config.realm.value.clone()),
            _ => self.realm.clone().or_else(|| local().map(|()| config.realm.value.clone())),
        }
    }

    /// Refuses a server that is named, for a command that works on files of this machine.
    pub(super) fn must_be_local(&self, command: &str, instead: &str) -> Result<(), Failure> {
        let Some(url) = &self.url else { return Ok(()) };
        let text = format!(
            "`posthaste {command}` works on the data directory of this machine, but {url} is named {}; {instead}",
            self.url_from.describe()
        );
        Err(Failure::new(Exit::Usage, text))
    }
}

impl Server {
    pub(super) fn client(&self) -> Result<Client, Failure> {
        Ok(Client::bare(self.url.clone())?.with_token(self.token.clone()))
    }
}

/// The key of a data directory, for the server that has it. A user who may not read it has none.
pub(super) fn own_key(data: &Path) -> Result<Option<String>, Failure> {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    match AdminKey::read(data) {
        Ok(key) => Ok(Some(key)),
        Err(error) if matches!(error.kind(), NotFound | PermissionDenied) => Ok(None),
        Err(error) => Err(Failure::new(Exit::Failed, error)),
    }
}

/// The token of the flags or of the environment.
fn given_token(
    global: &GlobalArgs,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(Option<String>, Option<Source>), Failure> {
    if let Some(token) = &global.token {
        return Ok((Some(token.trim().to_owned()), Some(Source::Flag("--token"))));
    }
    if let Some(file) = &global.token_file {
        return Ok((Some(read_token(file)?), Some(Source::Flag("--token-file"))));
    }
    let token = variable(TOKEN);
    let from = token.is_some().then_some(Source::Env(TOKEN));
    Ok((token, from))
}

/// A variable that is set to nothing is unset, and so is one that a client passed on without expanding it.
fn is_set(value: &str) -> bool {
    !value.trim().is_empty() && !value.starts_with('$')
}

/// An address as it is kept and compared: with its scheme and without a slash at its end.
pub(super) fn checked(url: &str) -> Result<String, Failure> {
    let url = url.trim().trim_end_matches('/');
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    match host {
        Some(host) if !host.is_empty() && !host.contains(['@', '?', '#', ' ']) => Ok(url.to_owned()),
        _ => {
            let text =
                format!("{url} is not an address like https://mail.example.org or http://127.0.0.1:7678");
            Err(Failure::new(Exit::Usage, text))
        }
    }
}

/// A listening address as clients were told it before `--url`: `HOST:PORT`, or an address.
pub(super) fn from_listen(listen: &str) -> String {
    if listen.contains("://") { listen.to_owned() } else { format!("http://{listen}") }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::contexts::Context;
    use super::*;

    fn contexts() -> Contexts {
        let mut contexts = Contexts::default();
        let prod = Context {
            url: "https://prod.test".to_owned(),
            token: Some("ph_prod".to_owned()),
            realm: RealmName::new("team").ok(),
        };
        contexts.contexts.insert("prod".to_owned(), prod);
        let bare = Context { url: "https://bare.test".to_owned(), token: None, realm: None };
        contexts.contexts.insert("bare".to_owned(), bare);
        contexts
    }

    fn chosen(flags: &[(&str, &str)], env: &[(&str, &str)], current: Option<&str>) -> (String, String) {
        let flag =
            |name: &str| flags.iter().find(|(flag, _)| *flag == name).map(|(_, value)| (*value).to_owned());
        let global = GlobalArgs {
            url: flag("url"),
            token: flag("token"),
            context: flag("context"),
            data: flag("data").map(Into::into),
            ..GlobalArgs::default()
        };
        let variables = |name: &str| {
            env.iter().find(|(variable, _)| *variable == name).map(|(_, value)| OsString::from(*value))
        };
        let known = || Ok(Contexts { current: current.map(str::to_owned), ..contexts() });
        let target = Target::choose(&global, &variables, &known).unwrap();
        (target.url.unwrap_or_default(), target.token.unwrap_or_default())
    }

    // F7, F28: one order for every command.
    #[test]
    fn a_flag_counts_before_the_environment_and_that_before_a_context() {
        let env = [("POSTHASTE_URL", "http://env.test"), ("POSTHASTE_TOKEN", "ph_env")];
        type Pairs<'a> = &'a [(&'a str, &'a str)];
        let table: &[(Pairs<'_>, Pairs<'_>, Option<&str>, &str, &str)] = &[
            (&[], &[], None, "", ""),
            (&[("url", "http://flag.test/")], &env, Some("prod"), "http://flag.test", "ph_env"),
            (&[("url", "http://flag.test"), ("token", "ph_flag")], &env, None, "http://flag.test", "ph_flag"),
            (&[], &env, Some("prod"), "http://env.test", "ph_env"),
            (&[("data", "/d")], &env, None, "http://env.test", "ph_env"),
            (&[], &[("POSTHASTE_CONTEXT", "prod")], Some("bare"), "https://prod.test", "ph_prod"),
            (&[], &[], Some("prod"), "https://prod.test", "ph_prod"),
            (&[], &[("POSTHASTE_TOKEN", "ph_env")], Some("prod"), "https://prod.test", "ph_env"),
            // A data directory that is named is meant, whatever context was chosen once.
            (&[("data", "/d")], &[], Some("prod"), "", ""),
            (&[], &[("POSTHASTE_DATA", "/d")], Some("prod"), "", ""),
            // What is not expanded is not set.
            (
                &[],
                &[("POSTHASTE_URL", "${POSTHASTE_URL}"), ("POSTHASTE_TOKEN", "$POSTHASTE_TOKEN")],
                None,
                "",
                "",
            ),
        ];
        for (flags, env, current, url, token) in table {
            let (chosen_url, chosen_token) = chosen(flags, env, *current);
            assert_eq!((&*chosen_url, &*chosen_token), (*url, *token), "{flags:?} {env:?} {current:?}");
        }
    }

    // F7: a context's token goes to that context's server, and the environment's to the environment's.
    #[test]
    fn a_token_goes_to_the_server_it_was_given_for() {
        let env = [("POSTHASTE_URL", "http://env.test"), ("POSTHASTE_TOKEN", "ph_env")];
        let by_flag = |name: &'static str| chosen(&[("context", name)], &env, None);
        assert_eq!(by_flag("prod"), ("https://prod.test".to_owned(), "ph_prod".to_owned()));
        assert_eq!(by_flag("bare"), ("https://bare.test".to_owned(), String::new()));
        let (_, token) = chosen(&[("url", "http://flag.test")], &[], Some("prod"));
        assert_eq!(token, "", "the context's token is not shown to another server");
    }

    #[test]
    fn an_address_has_a_scheme_and_a_host() {
        assert_eq!(checked(" http://127.0.0.1:1/ ").unwrap(), "http://127.0.0.1:1");
        for wrong in ["ftp://x", "x:1", "http://", "http://user:pass@host"] {
            assert_eq!(checked(wrong).unwrap_err().exit, Exit::Usage, "{wrong}");
        }
    }
}
