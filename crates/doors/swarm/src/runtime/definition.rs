//! The hosted swarm: its definition, read from the swarm file and checked.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posthaste_engine::nouns::{AgentId, RealmName};
use posthaste_wire::mail::definition::{
    ActionDefinition, ActionDriver, AgentDefinition, Builtin, BuiltinDefinition, DriverDefinition,
    ModelEndpoint, SwarmDefinition,
};
use posthaste_wire::mail::{split, tools};
use serde_json::Value;

/// A swarm that cannot be hosted: the member that is wrong, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DefinitionError(String);

fn wrong<T>(problem: impl Into<String>) -> Result<T, DefinitionError> {
    Err(DefinitionError(problem.into()))
}

/// A swarm that can be hosted: its definition was checked.
#[derive(Clone, Debug)]
pub struct Swarm(SwarmDefinition);

impl Deref for Swarm {
    type Target = SwarmDefinition;

    fn deref(&self) -> &SwarmDefinition {
        &self.0
    }
}

impl Swarm {
    /// Reads a swarm from a file; `{here}` in it is the file's directory.
    ///
    /// # Errors
    /// When the file cannot be read or the swarm cannot be hosted.
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
    /// Names the member that is wrong.
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
        let definition = serde_json::from_value(value).map_err(|error| DefinitionError(error.to_string()))?;
        let swarm = Self(definition);
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

    /// Whether a call of a tool pauses the task instead of being carried out.
    pub fn is_breakpoint(&self, tool: &str) -> bool {
        self.breakpoint_tools.iter().any(|name| name == tool)
    }

    /// The protocol's tools that an agent has.
    pub fn tools_of<'a>(&'a self, agent: &'a AgentDefinition) -> impl Iterator<Item = &'static str> + 'a {
        tools::NAMES.into_iter().filter(move |tool| {
            let leads = matches!(*tool, "task_complete" | "send_interrupt" | "send_broadcast");
            let excluded = |list: &[String]| list.iter().any(|name| name == tool);
            (!leads || agent.can_complete_tasks)
                && !excluded(&self.exclude_tools)
                && !excluded(&agent.exclude_tools)
        })
    }

    /// What the definition uses of the machine it runs on, as text: programs with their environment variables, and environment
    /// variables with the addresses that their values are sent to.
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

    /// The addresses in the definition that requests are sent to.
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

    /// Time limit of one turn of a task.
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

/// Replaces `{here}` by the file's directory.
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
            ("entrypoint", |s| s["entrypoint"] = "missing".into()),
            ("enable_entrypoint", |s| s["agents"][0]["enable_entrypoint"] = false.into()),
            ("can_complete_tasks", |s| s["agents"][0]["can_complete_tasks"] = false.into()),
            ("no agent", |s| s["agents"][0]["comm_targets"] = serde_json::json!(["missing"])),
            ("enable_interswarm", |s| s["agents"][0]["comm_targets"] = serde_json::json!(["x@far"])),
            ("no action", |s| s["agents"][0]["actions"] = serde_json::json!(["fly"])),
            ("breakpoint_tools", |s| s["breakpoint_tools"] = serde_json::json!(["fly"])),
            ("swarm's name", |s| s["name"] = "a b".into()),
            // Positive, but rounded to zero nanoseconds.
            ("task_timeout", |s| s["task_timeout"] = 1e-10.into()),
            ("interswarm_patience", |s| s["interswarm_patience"] = 1e-300.into()),
        ];
        for (word, change) in cases {
            let error = swarm(change).unwrap_err().to_string();
            assert!(error.contains(word), "{error:?} does not say {word:?}");
        }
    }
}
