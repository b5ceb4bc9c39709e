//! The numbers of MAP's errors. Mail's are the seed's, not the SDK's, which gave some of them other meanings.

/// Nobody has said who they are yet.
pub const AUTH_REQUIRED: i64 = 1000;
/// The credentials were not accepted.
pub const AUTH_FAILED: i64 = 1001;
/// The token was good once.
pub const TOKEN_EXPIRED: i64 = 1002;
/// The caller may not do this.
pub const PERMISSION_DENIED: i64 = 1003;
/// The way of authenticating is not offered.
pub const METHOD_NOT_SUPPORTED: i64 = 1005;
/// The address reaches nobody.
pub const ADDRESS_NOT_FOUND: i64 = 2000;
/// No such agent.
pub const AGENT_NOT_FOUND: i64 = 2001;
/// No such scope.
pub const SCOPE_NOT_FOUND: i64 = 2002;
/// The message could not be handed over in time.
pub const DELIVERY_FAILED: i64 = 2003;
/// The address could mean two things.
pub const ADDRESS_AMBIGUOUS: i64 = 2004;
/// The name is taken.
pub const AGENT_EXISTS: i64 = 3000;
/// The agent's state does not allow this.
pub const STATE_INVALID: i64 = 3001;
/// The child could not be made.
pub const SPAWN_FAILED: i64 = 3004;
/// No room; try again later.
pub const RESOURCE_EXHAUSTED: i64 = 4000;
/// Too often; the error says when to try again.
pub const RATE_LIMITED: i64 = 4001;
/// Too much at once.
pub const QUOTA_EXCEEDED: i64 = 4002;
/// The other system cannot be reached.
pub const FEDERATION_UNAVAILABLE: i64 = 5000;
/// No such system.
pub const FEDERATION_SYSTEM_NOT_FOUND: i64 = 5001;
/// The other system did not let us in.
pub const FEDERATION_AUTH_FAILED: i64 = 5002;
/// The message may not take this route.
pub const FEDERATION_ROUTE_REJECTED: i64 = 5003;
/// The message has been here before.
pub const FEDERATION_LOOP_DETECTED: i64 = 5010;
/// The message has come too far.
pub const FEDERATION_MAX_HOPS_EXCEEDED: i64 = 5011;
/// No such conversation.
pub const CONVERSATION_NOT_FOUND: i64 = 10000;
/// The conversation has ended.
pub const CONVERSATION_CLOSED: i64 = 10001;
/// The caller does not take part.
pub const NOT_A_PARTICIPANT: i64 = 10002;
/// The caller lacks a permission in the conversation, or the mail capability.
pub const MAIL_PERMISSION_DENIED: i64 = 10003;
/// The participant takes part already.
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
/// This office keeps no mail for MAP.
pub const MAIL_NOT_ENABLED: i64 = 10010;
/// No such task.
pub const TASK_NOT_FOUND: i64 = 14000;
/// The task's name is taken, or it has ended.
pub const TASK_CONFLICT: i64 = 14001;

/// What family an error belongs to, as the protocol calls them.
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

/// Whether the same call may succeed later.
#[must_use]
pub fn is_retryable(code: i64) -> bool {
    matches!(code, 1002 | DELIVERY_FAILED | 3002 | RESOURCE_EXHAUSTED | RATE_LIMITED | FEDERATION_UNAVAILABLE)
}

/// The name of an error, for callers that cannot go by numbers with two meanings.
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
