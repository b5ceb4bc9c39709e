//! The swarm file: which agents there are, who runs each, whom they may write to, and which actions they have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use posthaste_engine::nouns::{AgentId, RealmName};
use posthaste_wire::mail::{split, tools};
use serde::Deserialize;
use serde_json::{Map, Value};

/// A swarm that cannot be hosted: where its description is wrong, and how.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DefinitionError(String);

fn wrong<T>(problem: impl Into<String>) -> Result<T, DefinitionError> {
    Err(DefinitionError(problem.into()))
}

/// A swarm as its file describes it. The reference's fields keep their names and meaning; `driver` is ours.
#[derive(Clone, Debug, Deserialize)]
pub struct Swarm {
    pub name: String,
    pub version: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub keywords: Vec<String>,
    #[serde(default)]
    pub public: bool,
    pub entrypoint: String,
    #[serde(default)]
    pub enable_interswarm: bool,
    #[serde(default)]
    pub breakpoint_tools: Vec<String>,
    #[serde(default)]
    pub exclude_tools: Vec<String>,
    pub agents: Vec<AgentDefinition>,
    #[serde(default)]
    pub actions: Vec<ActionDefinition>,
    /// How many messages one turn of a task may take.
    #[serde(default = "usual_steps")]
    pub task_message_limit: i64,
    /// How many seconds one turn of a task may take.
    #[serde(default = "usual_timeout")]
    pub task_timeout: f64,
    /// How many seconds another swarm may be out of reach before the sender is told.
    #[serde(default = "usual_patience")]
    pub interswarm_patience: f64,
}

fn usual_steps() -> i64 {
    1_000
}

fn usual_timeout() -> f64 {
    3_600.0
}

fn usual_patience() -> f64 {
    3.0
}

/// An agent of a swarm.
#[derive(Clone, Debug, Deserialize)]
pub struct AgentDefinition {
    pub name: String,
    #[serde(default)]
    pub driver: DriverDefinition,
    #[serde(default)]
    pub comm_targets: Vec<String>,
    #[serde(default)]
    pub enable_entrypoint: bool,
    #[serde(default)]
    pub enable_interswarm: bool,
    #[serde(default)]
    pub can_complete_tasks: bool,
    #[serde(default)]
    pub actions: Vec<String>,
    #[serde(default)]
    pub exclude_tools: Vec<String>,
    /// Parameters of the reference's factories; a model driver takes `system` and `model` from here too.
    #[serde(default)]
    pub agent_params: Map<String, Value>,
}

/// AuthedCaller answers for an agent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverDefinition {
    /// Somebody who comes by another door and reads its mail there.
    #[default]
    Connected,
    /// A program that speaks lines of JSON on its standard input and output.
    #[serde(untagged)]
    Command(CommandDefinition),
    /// A web hook.
    #[serde(untagged)]
    Http(HttpDefinition),
    /// A language model behind an endpoint that speaks OpenAI's chat protocol.
    #[serde(untagged)]
    Model(ModelDefinition),
    /// One of the office's own.
    #[serde(untagged)]
    Builtin(BuiltinDefinition),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandDefinition {
    pub command: Vec<String>,
    /// Turns in its state at once.
    #[serde(default = "usual_turns")]
    pub turns: usize,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpDefinition {
    pub http: String,
    /// The environment variable that holds the bearer token to show.
    #[serde(default)]
    pub token_env: Option<String>,
    #[serde(default = "usual_turns")]
    pub turns: usize,
    /// Seconds for one turn.
    #[serde(default = "usual_turn_timeout")]
    pub timeout: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelDefinition {
    pub model: ModelEndpoint,
    #[serde(default = "usual_turns")]
    pub turns: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEndpoint {
    /// Base address, up to and including `/v1`; `${NAME}` is taken from the environment.
    pub url: String,
    /// The model's name there; `${NAME}` is taken from the environment.
    pub name: String,
    /// The environment variable that holds the key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// What the model is told about its part.
    #[serde(default)]
    pub system: String,
    /// Whether the answer is read as it is written.
    #[serde(default = "yes")]
    pub stream: bool,
    /// Seconds for one turn.
    #[serde(default = "usual_turn_timeout")]
    pub timeout: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltinDefinition {
    pub builtin: Builtin,
    /// Whom a relay passes requests on to.
    #[serde(default)]
    pub to: Option<String>,
    /// How an answer of an echo or a relay is worded: `{self}` is its name, `{body}` what it heard.
    #[serde(default)]
    pub say: Option<String>,
}

/// The office's own agents, for trying things out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Builtin {
    /// Says back what it is told.
    Echo,
    /// Passes requests on and answers back.
    Relay,
    /// Makes the calls that the message lists.
    Script,
}

fn usual_turns() -> usize {
    64
}

fn usual_turn_timeout() -> f64 {
    300.0
}

fn yes() -> bool {
    true
}

/// Something that agents may have done.
#[derive(Clone, Debug, Deserialize)]
pub struct ActionDefinition {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub parameters: Value,
    #[serde(default)]
    pub driver: Option<ActionDriver>,
}

/// How an action is carried out.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum ActionDriver {
    /// A program: arguments on its standard input, the result on its standard output.
    Command {
        command: Vec<String>,
        #[serde(default = "usual_action_timeout")]
        timeout: f64,
    },
    /// A web hook: arguments are posted, the result is the answer.
    Http {
        http: String,
        #[serde(default)]
        token_env: Option<String>,
        #[serde(default = "usual_action_timeout")]
        timeout: f64,
    },
}

fn usual_action_timeout() -> f64 {
    60.0
}

impl Swarm {
    /// Reads a swarm from a file; `{here}` in it is the file's folder.
    ///
    /// # Errors
    /// When the file cannot be read or what it describes cannot be hosted.
    pub fn from_file(path: &Path) -> Result<(Self, PathBuf), DefinitionError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| DefinitionError(format!("{}: {error}", path.display())))?;
        let here = path.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned));
        let here = here.unwrap_or_default();
        let swarm = Self::from_text(&text, &here)
            .map_err(|error| DefinitionError(format!("{}: {error}", path.display())))?;
        Ok((swarm, here))
    }

    /// Reads a swarm: one object, or a list with one in it.
    ///
    /// # Errors
    /// Says what cannot be hosted.
    pub fn from_text(text: &str, here: &Path) -> Result<Self, DefinitionError> {
        let mut value: Value =
            serde_json::from_str(text).map_err(|error| DefinitionError(format!("not JSON: {error}")))?;
        if let Value::Array(list) = &mut value {
            if list.len() != 1 {
                return wrong("a list must hold exactly one swarm");
            }
            value = list.remove(0);
        }
        if !value.is_object() {
            return wrong("a swarm is a JSON object");
        }
        fill_in(&mut value, &here.to_string_lossy());
        let swarm: Self =
            serde_json::from_value(value).map_err(|error| DefinitionError(error.to_string()))?;
        swarm.check()?;
        Ok(swarm)
    }

    /// The agent of that name.
    pub fn agent(&self, name: &str) -> Option<&AgentDefinition> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// The action of that name.
    pub fn action(&self, name: &str) -> Option<&ActionDefinition> {
        self.actions.iter().find(|action| action.name == name)
    }

    /// Whether a tool's call leaves the swarm instead of being carried out.
    pub fn is_breakpoint(&self, tool: &str) -> bool {
        self.breakpoint_tools.iter().any(|name| name == tool)
    }

    /// The tools of the protocol that an agent is offered.
    pub fn tools_of<'a>(&'a self, agent: &'a AgentDefinition) -> impl Iterator<Item = &'static str> + 'a {
        tools::NAMES.into_iter().filter(move |tool| {
            let leads = matches!(*tool, "task_complete" | "send_interrupt" | "send_broadcast");
            let excluded = |list: &[String]| list.iter().any(|name| name == tool);
            (!leads || agent.can_complete_tasks)
                && !excluded(&self.exclude_tools)
                && !excluded(&agent.exclude_tools)
        })
    }

    /// Everything that the description takes from the machine it runs on, spelled out: programs with the environment
    /// they are given, and variables of the environment with where their values are sent.
    pub fn machine_access(&self) -> BTreeSet<String> {
        let sends = |url: &str, name: &str| format!("the variable {name} for {url}");
        let agents = self.agents.iter().flat_map(|agent| match &agent.driver {
            DriverDefinition::Command(driver) if driver.env.is_empty() => {
                vec![format!("the program {:?}", driver.command)]
            }
            DriverDefinition::Command(driver) => {
                vec![format!("the program {:?} with {:?}", driver.command, driver.env)]
            }
            DriverDefinition::Http(driver) => {
                driver.token_env.iter().map(|name| sends(&driver.http, name)).collect()
            }
            DriverDefinition::Model(driver) => {
                let ModelEndpoint { url, name, key_env, .. } = &driver.model;
                let inside = [url, name].into_iter().filter(|text| text.contains("${"));
                let inside = inside.map(|text| sends(url, text));
                key_env.iter().map(|name| sends(url, name)).chain(inside).collect()
            }
            DriverDefinition::Builtin(_) | DriverDefinition::Connected => Vec::new(),
        });
        let actions = self.actions.iter().flat_map(|action| match &action.driver {
            Some(ActionDriver::Command { command, .. }) => vec![format!("the program {command:?}")],
            Some(ActionDriver::Http { http, token_env, .. }) => {
                token_env.iter().map(|name| sends(http, name)).collect()
            }
            None => Vec::new(),
        });
        agents.chain(actions).collect()
    }

    /// Every address that requests go to because the description says so.
    pub fn addresses(&self) -> BTreeSet<String> {
        let agents = self.agents.iter().filter_map(|agent| match &agent.driver {
            DriverDefinition::Http(driver) => Some(driver.http.clone()),
            DriverDefinition::Model(driver) => Some(driver.model.url.clone()),
            _ => None,
        });
        let actions = self.actions.iter().filter_map(|action| match &action.driver {
            Some(ActionDriver::Http { http, .. }) => Some(http.clone()),
            _ => None,
        });
        agents.chain(actions).collect()
    }

    /// How long one turn of a task may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.task_timeout)
    }

    fn check(&self) -> Result<(), DefinitionError> {
        if RealmName::new(&self.name).is_err() {
            return wrong(format!("`name`: {:?} cannot be a swarm's name", self.name));
        }
        if self.agents.is_empty() {
            return wrong("`agents`: a swarm needs at least one agent");
        }
        let counts = |seconds| Duration::try_from_secs_f64(seconds).is_ok_and(|span| !span.is_zero());
        let span = |seconds: f64| seconds < 1e9 && counts(seconds);
        if self.task_message_limit < 1 || !span(self.task_timeout) || !span(self.interswarm_patience) {
            return wrong("`task_message_limit`, `task_timeout` and `interswarm_patience` must be positive");
        }
        let mut seen = BTreeSet::new();
        for agent in &self.agents {
            let name = agent.name.as_str();
            if !seen.insert(name) {
                return wrong(format!("agent {name:?} is described twice"));
            }
            if name == "all" {
                return wrong("agent \"all\": the name stands for every agent");
            }
            let reserved = name == AgentId::office().as_str();
            if name.contains(['@', ':']) || AgentId::new(name).is_err() || reserved {
                return wrong(format!("agent {name:?}: this cannot be an agent's name"));
            }
        }
        for agent in &self.agents {
            self.check_agent(agent)
                .map_err(|error| DefinitionError(format!("agent {:?}: {error}", agent.name)))?;
        }
        match self.agent(&self.entrypoint) {
            None => return wrong(format!("`entrypoint`: there is no agent {:?}", self.entrypoint)),
            Some(agent) if !agent.enable_entrypoint => {
                return wrong(format!("`entrypoint`: agent {:?} needs enable_entrypoint", self.entrypoint));
            }
            Some(_) => {}
        }
        if !self.agents.iter().any(|agent| agent.can_complete_tasks) {
            return wrong("no agent has can_complete_tasks, so no task could ever end");
        }
        let mut seen = BTreeSet::new();
        for action in &self.actions {
            if !seen.insert(action.name.as_str()) || tools::NAMES.contains(&action.name.as_str()) {
                return wrong(format!("action {:?}: the name is taken", action.name));
            }
        }
        let is_tool = |name: &str| tools::NAMES.contains(&name);
        if let Some(name) = self.breakpoint_tools.iter().find(|n| !is_tool(n) && self.action(n).is_none()) {
            return wrong(format!("`breakpoint_tools`: {name:?} is neither a tool nor an action"));
        }
        if let Some(name) = self.exclude_tools.iter().find(|name| !is_tool(name)) {
            return wrong(format!("`exclude_tools`: {name:?} is not a tool"));
        }
        Ok(())
    }

    fn check_agent(&self, agent: &AgentDefinition) -> Result<(), DefinitionError> {
        if agent.comm_targets.is_empty() && !(agent.enable_entrypoint && agent.can_complete_tasks) {
            return wrong("without comm_targets it must be an entrypoint that can complete tasks");
        }
        for target in &agent.comm_targets {
            match split(target) {
                (local, None) if self.agent(local).is_none() => {
                    return wrong(format!("`comm_targets`: there is no agent {local:?}"));
                }
                (_, Some(swarm)) if swarm != self.name && !self.enable_interswarm => {
                    return wrong(format!("`comm_targets`: {target:?} needs enable_interswarm of the swarm"));
                }
                _ => {}
            }
        }
        if let Some(action) = agent.actions.iter().find(|action| self.action(action).is_none()) {
            return wrong(format!("`actions`: there is no action {action:?}"));
        }
        match &agent.driver {
            DriverDefinition::Command(driver) if driver.command.is_empty() || driver.turns == 0 => {
                wrong("`driver.command` must name a program, and `turns` be at least 1")
            }
            DriverDefinition::Builtin(BuiltinDefinition { builtin: Builtin::Relay, to: None, .. }) => {
                wrong("`driver.to`: whom does the relay pass requests on to?")
            }
            _ => Ok(()),
        }
    }
}

/// Puts the file's folder in place of `{here}`.
fn fill_in(value: &mut Value, here: &str) {
    match value {
        Value::String(text) if text.contains("{here}") => *text = text.replace("{here}", here),
        Value::Array(list) => list.iter_mut().for_each(|one| fill_in(one, here)),
        Value::Object(map) => map.values_mut().for_each(|one| fill_in(one, here)),
        _ => {}
    }
}

/// `${NAME}` in a text, taken from the environment.
pub(super) fn from_environment(text: &str) -> Result<String, DefinitionError> {
    let Some((before, rest)) = text.split_once("${") else { return Ok(text.to_owned()) };
    let Some((name, after)) = rest.split_once('}') else { return Ok(text.to_owned()) };
    match std::env::var(name) {
        Ok(value) => Ok(format!("{before}{value}{}", from_environment(after)?)),
        Err(_) => wrong(format!("the environment has no {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swarm(change: impl FnOnce(&mut Value)) -> Result<Swarm, DefinitionError> {
        let mut value = serde_json::json!({
            "name": "s", "version": "1.3", "entrypoint": "boss", "actions": [{ "name": "act" }],
            "agents": [
                { "name": "boss", "driver": { "builtin": "echo" }, "comm_targets": ["hand"],
                  "enable_entrypoint": true, "can_complete_tasks": true },
                { "name": "hand", "driver": { "command": ["{here}/x"] }, "comm_targets": ["boss"], "actions": ["act"] },
            ],
        });
        change(&mut value);
        Swarm::from_text(&value.to_string(), Path::new("/where"))
    }

    #[test]
    fn a_swarm_is_read_with_its_drivers() {
        let swarm = swarm(|_| {}).unwrap();
        assert!(matches!(swarm.agents[0].driver, DriverDefinition::Builtin(_)));
        let DriverDefinition::Command(driver) = &swarm.agents[1].driver else { panic!() };
        assert_eq!(driver.command, ["/where/x"]);
    }

    #[test]
    fn what_cannot_be_hosted_is_refused() {
        type Change = fn(&mut Value);
        let cases: [(&str, Change); 12] = [
            ("all", |s| s["agents"][1]["name"] = "all".into()),
            ("twice", |s| s["agents"][1]["name"] = "boss".into()),
            ("entrypoint", |s| s["entrypoint"] = "nobody".into()),
            ("enable_entrypoint", |s| s["agents"][0]["enable_entrypoint"] = false.into()),
            ("can_complete_tasks", |s| s["agents"][0]["can_complete_tasks"] = false.into()),
            ("no agent", |s| s["agents"][0]["comm_targets"] = serde_json::json!(["nobody"])),
            ("enable_interswarm", |s| s["agents"][0]["comm_targets"] = serde_json::json!(["x@far"])),
            ("no action", |s| s["agents"][0]["actions"] = serde_json::json!(["fly"])),
            ("breakpoint_tools", |s| s["breakpoint_tools"] = serde_json::json!(["fly"])),
            ("swarm's name", |s| s["name"] = "a b".into()),
            // Positive, but no time at all once it is counted in nanoseconds.
            ("task_timeout", |s| s["task_timeout"] = 1e-10.into()),
            ("interswarm_patience", |s| s["interswarm_patience"] = 1e-300.into()),
        ];
        for (word, change) in cases {
            let error = swarm(change).unwrap_err().to_string();
            assert!(error.contains(word), "{error:?} does not say {word:?}");
        }
    }
}
