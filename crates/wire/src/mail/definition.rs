//! The swarm file: which agents there are, what answers for each, whom they may write to, and which actions they have.
//!
//! The reference's fields keep their names and meaning; `driver`, `task_message_limit`, `task_timeout` and
//! `interswarm_patience` are posthaste's own. Unknown fields are ignored, except in drivers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A swarm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwarmDefinition {
    /// Its name, which is also the realm's.
    pub name: String,
    /// The version of the definition.
    pub version: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Words to find it by.
    #[serde(default)]
    pub keywords: Vec<String>,
    /// Whether it is listed to everyone.
    #[serde(default)]
    pub public: bool,
    /// The agent that users write to unless they name another.
    pub entrypoint: String,
    /// Whether its agents may write to other swarms, and other swarms to them.
    #[serde(default)]
    pub enable_interswarm: bool,
    /// Tools whose calls pause the task until the user sends a result.
    #[serde(default)]
    pub breakpoint_tools: Vec<String>,
    /// Tools that no agent has.
    #[serde(default)]
    pub exclude_tools: Vec<String>,
    /// The agents.
    pub agents: Vec<AgentDefinition>,
    /// The actions.
    #[serde(default)]
    pub actions: Vec<ActionDefinition>,
    /// Maximum number of messages in one turn of a task.
    #[serde(default = "default_message_limit")]
    pub task_message_limit: i64,
    /// Maximum duration of one turn of a task, in seconds.
    #[serde(default = "default_task_timeout")]
    pub task_timeout: f64,
    /// How long a question to an unreachable swarm is retried before its sender is told, in seconds.
    #[serde(default = "default_interswarm_patience")]
    pub interswarm_patience: f64,
}

fn default_message_limit() -> i64 {
    1_000
}

fn default_task_timeout() -> f64 {
    3_600.0
}

fn default_interswarm_patience() -> f64 {
    3.0
}

/// An agent of a swarm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentDefinition {
    /// Its name.
    pub name: String,
    /// What answers for it.
    #[serde(default)]
    pub driver: DriverDefinition,
    /// The agents that it may write to; `name@swarm` for agents of other swarms.
    #[serde(default)]
    pub comm_targets: Vec<String>,
    /// Whether users may write to it.
    #[serde(default)]
    pub enable_entrypoint: bool,
    /// Whether it may write to other swarms.
    #[serde(default)]
    pub enable_interswarm: bool,
    /// Whether it may end tasks.
    #[serde(default)]
    pub can_complete_tasks: bool,
    /// The actions that it may call.
    #[serde(default)]
    pub actions: Vec<String>,
    /// Tools that it does not have.
    #[serde(default)]
    pub exclude_tools: Vec<String>,
    /// Parameters of the reference's factories; a model driver takes `system` from here.
    #[serde(default)]
    pub agent_params: Map<String, Value>,
}

/// What answers for an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverDefinition {
    /// The agent connects by another door and reads its messages there.
    #[default]
    Connected,
    /// A program that exchanges lines of JSON on its standard input and output.
    #[serde(untagged)]
    Command(CommandDefinition),
    /// A web hook.
    #[serde(untagged)]
    Http(HttpDefinition),
    /// A language model behind an endpoint that speaks OpenAI's chat protocol.
    #[serde(untagged)]
    Model(ModelDefinition),
    /// One of the server's own agents.
    #[serde(untagged)]
    Builtin(BuiltinDefinition),
}

/// A program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandDefinition {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Maximum number of turns at once.
    #[serde(default = "default_turns")]
    pub turns: usize,
    /// Further environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// A web hook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpDefinition {
    /// Its address.
    pub http: String,
    /// The environment variable that holds the bearer token.
    #[serde(default)]
    pub token_env: Option<String>,
    /// Maximum number of turns at once.
    #[serde(default = "default_turns")]
    pub turns: usize,
    /// Time limit of one turn, in seconds.
    #[serde(default = "default_turn_timeout")]
    pub timeout: f64,
}

/// A language model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelDefinition {
    /// Where it is.
    pub model: ModelEndpoint,
    /// Maximum number of turns at once.
    #[serde(default = "default_turns")]
    pub turns: usize,
}

/// The endpoint of a language model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEndpoint {
    /// Base address, up to and including `/v1`; `${NAME}` is taken from the environment.
    pub url: String,
    /// The model's name there; `${NAME}` is taken from the environment.
    pub name: String,
    /// The environment variable that holds the key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// Instructions for the model.
    #[serde(default)]
    pub system: String,
    /// Whether the answer is requested as an event stream.
    #[serde(default = "default_stream")]
    pub stream: bool,
    /// Time limit of one turn, in seconds.
    #[serde(default = "default_turn_timeout")]
    pub timeout: f64,
}

/// One of the server's own agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltinDefinition {
    /// Which one.
    pub builtin: Builtin,
    /// The agent that a relay passes requests on to.
    #[serde(default)]
    pub to: Option<String>,
    /// Template of the answers of an echo or a relay: `{self}` is the agent's name, `{body}` the message's body.
    #[serde(default)]
    pub say: Option<String>,
}

/// The server's own agents, for tests and demonstrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Builtin {
    /// Answers with what it receives.
    Echo,
    /// Passes requests on and answers back.
    Relay,
    /// Makes the calls that the message lists.
    Script,
}

fn default_turns() -> usize {
    64
}

fn default_turn_timeout() -> f64 {
    300.0
}

fn default_stream() -> bool {
    true
}

/// An action that agents may call like a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionDefinition {
    /// Its name.
    pub name: String,
    /// What it does, for agents.
    #[serde(default)]
    pub description: String,
    /// JSON schema of its arguments.
    #[serde(default)]
    pub parameters: Value,
    /// What carries it out.
    #[serde(default)]
    pub driver: Option<ActionDriver>,
}

/// What carries out an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ActionDriver {
    /// A program: arguments on its standard input, the result on its standard output.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// Time limit, in seconds.
        #[serde(default = "default_action_timeout")]
        timeout: f64,
    },
    /// A web hook: the arguments are posted, the answer is the result.
    Http {
        /// Its address.
        http: String,
        /// The environment variable that holds the bearer token.
        #[serde(default)]
        token_env: Option<String>,
        /// Time limit, in seconds.
        #[serde(default = "default_action_timeout")]
        timeout: f64,
    },
}

fn default_action_timeout() -> f64 {
    60.0
}
