//! MAP error codes. The mail codes follow the protocol draft; the SDK uses some of the same numbers for other errors.

/// The connection is not authenticated.
pub const AUTH_REQUIRED: i64 = 1000;
/// The credentials were not accepted.
pub const AUTH_FAILED: i64 = 1001;
/// The token has expired.
pub const TOKEN_EXPIRED: i64 = 1002;
/// The caller may not do this.
pub const PERMISSION_DENIED: i64 = 1003;
/// The authentication method is not supported.
pub const METHOD_NOT_SUPPORTED: i64 = 1005;
/// The address resolves to no recipient.
pub const ADDRESS_NOT_FOUND: i64 = 2000;
/// No such agent.
pub const AGENT_NOT_FOUND: i64 = 2001;
/// No such scope.
pub const SCOPE_NOT_FOUND: i64 = 2002;
/// The message could not be delivered in time.
pub const DELIVERY_FAILED: i64 = 2003;
/// The address is ambiguous.
pub const ADDRESS_AMBIGUOUS: i64 = 2004;
/// The agent id is already in use.
pub const AGENT_EXISTS: i64 = 3000;
/// The agent's state does not allow this.
pub const STATE_INVALID: i64 = 3001;
/// The child agent could not be created.
pub const SPAWN_FAILED: i64 = 3004;
/// The server is out of a resource; the caller may retry later.
pub const RESOURCE_EXHAUSTED: i64 = 4000;
/// Too many requests; the error says when to retry.
pub const RATE_LIMITED: i64 = 4001;
/// The request exceeds a size or count limit.
pub const QUOTA_EXCEEDED: i64 = 4002;
/// The other system cannot be reached.
pub const FEDERATION_UNAVAILABLE: i64 = 5000;
/// No such system.
pub const FEDERATION_SYSTEM_NOT_FOUND: i64 = 5001;
/// The other system refused our credentials.
pub const FEDERATION_AUTH_FAILED: i64 = 5002;
/// The message may not take this route.
pub const FEDERATION_ROUTE_REJECTED: i64 = 5003;
/// The message has already passed through this server.
pub const FEDERATION_LOOP_DETECTED: i64 = 5010;
/// The message has passed through too many systems.
pub const FEDERATION_MAX_HOPS_EXCEEDED: i64 = 5011;
/// No such conversation.
pub const CONVERSATION_NOT_FOUND: i64 = 10000;
/// The conversation is closed.
pub const CONVERSATION_CLOSED: i64 = 10001;
/// The caller is not a participant of the conversation.
pub const NOT_A_PARTICIPANT: i64 = 10002;
/// The caller lacks a permission in the conversation, or the mail capability.
pub const MAIL_PERMISSION_DENIED: i64 = 10003;
/// The participant has already joined.
pub const PARTICIPANT_ALREADY_JOINED: i64 = 10004;
/// No such participant.
pub const PARTICIPANT_NOT_FOUND: i64 = 10005;
/// No such turn.
pub const TURN_NOT_FOUND: i64 = 10006;
/// No such thread.
pub const THREAD_NOT_FOUND: i64 = 10007;
/// Neither a well-known content type nor an extension.
pub const INVALID_CONTENT_TYPE: i64 = 10008;
/// Threads nest too deeply.
pub const THREAD_NESTING_LIMIT: i64 = 10009;
/// Mail over MAP is disabled on this server.
pub const MAIL_NOT_ENABLED: i64 = 10010;
/// No such task.
pub const TASK_NOT_FOUND: i64 = 14000;
/// The task id is already in use, or the task has ended.
pub const TASK_CONFLICT: i64 = 14001;

/// The protocol's category of an error code.
#[must_use]
pub fn category(code: i64) -> &'static str {
    match code {
        1000..=1999 => "auth",
        2000..=2999 | TASK_NOT_FOUND => "routing",
        3000..=3999 | TASK_CONFLICT => "agent",
        4000..=4999 => "resource",
        5000..=5999 => "federation",
        10_000..=10_999 => "mail",
        -32_602..=-32_600 | -32_700 => "protocol",
        _ => "internal",
    }
}

/// Whether the same request may succeed later.
#[must_use]
pub fn is_retryable(code: i64) -> bool {
    matches!(code, 1002 | DELIVERY_FAILED | 3002 | RESOURCE_EXHAUSTED | RATE_LIMITED | FEDERATION_UNAVAILABLE)
}

/// The name of a mail error code, because the SDK gives some of these numbers another meaning.
#[must_use]
pub fn name(code: i64) -> Option<&'static str> {
    Some(match code {
        CONVERSATION_NOT_FOUND => "CONVERSATION_NOT_FOUND",
        CONVERSATION_CLOSED => "CONVERSATION_CLOSED",
        NOT_A_PARTICIPANT => "NOT_A_PARTICIPANT",
        MAIL_PERMISSION_DENIED => "MAIL_PERMISSION_DENIED",
        PARTICIPANT_ALREADY_JOINED => "PARTICIPANT_ALREADY_JOINED",
        PARTICIPANT_NOT_FOUND => "PARTICIPANT_NOT_FOUND",
        TURN_NOT_FOUND => "TURN_NOT_FOUND",
        THREAD_NOT_FOUND => "THREAD_NOT_FOUND",
        INVALID_CONTENT_TYPE => "INVALID_CONTENT_TYPE",
        THREAD_NESTING_LIMIT => "THREAD_NESTING_LIMIT",
        MAIL_NOT_ENABLED => "MAIL_NOT_ENABLED",
        _ => return None,
    })
}
