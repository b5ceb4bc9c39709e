//! MCP: requests, results, notifications and errors of every revision that the server speaks, its HTTP headers, and what the
//! mail tools and resources answer.

pub mod answers;
pub mod errors;
pub mod headers;
pub mod lifecycle;
pub mod meta;
pub mod notifications;
pub mod prompts;
pub mod resources;
pub mod revision;
pub mod tools;

pub use revision::Revision;

/// Names of the methods and notifications.
pub mod methods {
    /// The handshake of revisions with sessions.
    pub const INITIALIZE: &str = "initialize";
    /// The client has read the handshake's result.
    pub const INITIALIZED: &str = "notifications/initialized";
    /// What the server offers, in revisions without sessions.
    pub const DISCOVER: &str = "server/discover";
    /// A stream of notifications, in revisions without sessions.
    pub const LISTEN: &str = "subscriptions/listen";
    /// A sign of life.
    pub const PING: &str = "ping";
    /// Calls a tool.
    pub const TOOLS_CALL: &str = "tools/call";
    /// Lists the tools.
    pub const TOOLS_LIST: &str = "tools/list";
    /// Lists the resources.
    pub const RESOURCES_LIST: &str = "resources/list";
    /// Lists the resource templates.
    pub const TEMPLATES_LIST: &str = "resources/templates/list";
    /// Reads a resource.
    pub const RESOURCES_READ: &str = "resources/read";
    /// Asks to be notified of changes to a resource.
    pub const SUBSCRIBE: &str = "resources/subscribe";
    /// Ends a subscription.
    pub const UNSUBSCRIBE: &str = "resources/unsubscribe";
    /// Lists the prompts.
    pub const PROMPTS_LIST: &str = "prompts/list";
    /// Fills a prompt in.
    pub const PROMPTS_GET: &str = "prompts/get";
    /// Sets the level of log notifications.
    pub const SET_LEVEL: &str = "logging/setLevel";
    /// Completes an argument.
    pub const COMPLETE: &str = "completion/complete";
    /// The client cancels a request.
    pub const CANCELLED: &str = "notifications/cancelled";
    /// How far a request has come.
    pub const PROGRESS: &str = "notifications/progress";
    /// A resource has changed.
    pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
    /// What a `subscriptions/listen` stream will tell of.
    pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
}
