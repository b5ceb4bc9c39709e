//! MAP's agents, scopes, tasks, sessions, connecting and federation: each text is read and written back unchanged.

use posthaste_wire::map::{agent, connect, error, federation, scope, session, task};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn round_trip<T: DeserializeOwned + Serialize>(text: &str) {
    let value: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(serde_json::to_string(&value).unwrap(), text);
}

const AGENT: &str = concat!(
    r#"{"id":"ann","ownerId":null,"state":"idle","visibility":"public","scopes":["s"],"#,
    r#""lifecycle":{"createdAt":1,"lastActiveAt":2},"metadata":{"b":1.0,"a":null},"name":"Ann","role":"writer","#,
    r#""capabilities":null,"permissionOverrides":{"canSee":{"agents":"direct"},"acceptsFrom":{"agents":{"include":["bob"]}}},"#,
    r#""environment":{"cwd":"/"},"kind":"user"}"#
);

const CAPABILITIES: &str = concat!(
    r#"{"observation":{"canObserve":true,"canQuery":true},"#,
    r#""messaging":{"canSend":true,"canReceive":true,"canBroadcast":true},"#,
    r#""lifecycle":{"canSpawn":true,"canRegister":true,"canUnregister":true,"canSteer":false,"canStop":false},"#,
    r#""scopes":{"canCreateScopes":true,"canManageScopes":true},"federation":{"canFederate":false},"#,
    r#""tasks":{"canCreate":true,"canAssign":true,"canUpdate":true,"canList":true},"#,
    r#""streaming":{"supportsAck":true,"supportsFlowControl":true,"supportsPause":true},"#,
    r#""mail":{"enabled":true,"canCreate":true,"canJoin":true,"canInvite":true,"canViewHistory":true,"canCreateThreads":true},"#,
    r#""extensions":[{"uri":"urn:map:ext:mail:1","version":"1.0"}]}"#
);

const SYSTEM: &str = r#"{"name":"posthaste","version":"0.1.0","systemId":"main"}"#;

#[test]
fn agents() {
    round_trip::<agent::Agent>(AGENT);
    round_trip::<agent::RegisterResult>(&format!(
        r#"{{"agent":{AGENT},"resumed":true,"resumedFrom":{{"previousSessionId":"session-1"}}}}"#
    ));
    round_trip::<agent::GetResult>(&format!(r#"{{"agent":{AGENT},"children":[{AGENT}]}}"#));
    round_trip::<agent::StopResult>(&format!(
        r#"{{"stopping":true,"stopped":true,"agent":{AGENT},"success":true}}"#
    ));
    round_trip::<agent::ListResult>(&format!(r#"{{"agents":[{AGENT}],"nextCursor":"ann"}}"#));
    round_trip::<agent::GraphResult>(&format!(
        r#"{{"nodes":[{AGENT}],"edges":[{{"from":"a","to":"b","type":"parent-child"}}]}}"#
    ));
    round_trip::<agent::GraphResult>(&format!(r#"{{"agents":[{AGENT}]}}"#));
    round_trip::<agent::Relatives>(r#"{"parent":null}"#);
    round_trip::<agent::Relatives>(&format!(r#"{{"siblings":[{AGENT}]}}"#));
    round_trip::<agent::UserListResult>(r#"{"users":[{"id":"u","name":null,"kind":"user"}]}"#);
}

#[test]
fn agent_filters_accept_singular_plural_and_members_beside_the_filter() {
    let asked: agent::ListParams = serde_json::from_str(
        r#"{"filter":{"state":"busy","roles":["a"]},"role":"b","states":["idle"],"capability":"x"}"#,
    )
    .unwrap();
    let merged = asked.filter.merged(asked.beside);
    assert_eq!(merged.states, ["busy", "idle"]);
    assert_eq!(merged.roles, ["a", "b"]);
    assert_eq!(merged.capability_id.as_deref(), Some("x"));
    assert!(serde_json::from_str::<agent::ListParams>(r#"{"filter":["x"]}"#).is_err());
}

#[test]
fn scopes() {
    let scope = concat!(
        r#"{"id":"s","joinPolicy":"open","visibility":"public","sendPolicy":"members","messageVisibility":"members","#,
        r#""autoDelete":false,"createdBy":"ann","createdAt":1,"metadata":{},"parent":"p","parentId":"p","#,
        r#""autoJoinRoles":["r"],"persistent":true}"#
    );
    round_trip::<scope::Scope>(scope);
    round_trip::<scope::MembershipResult>(&format!(
        r#"{{"scope":{scope},"agent":{AGENT},"left":true,"success":true}}"#
    ));
    round_trip::<scope::MembersResult>(r#"{"members":["ann"],"nextCursor":"ann"}"#);
}

#[test]
fn tasks() {
    let task = r#"{"id":"t","status":"open","owner":"ann","createdAt":1,"updatedAt":2,"assignee":"bob","result":null,"endedAt":3}"#;
    round_trip::<task::Task>(task);
    round_trip::<task::ListResult>(&format!(r#"{{"tasks":[{task}],"hasMore":true,"nextCursor":"7"}}"#));
    for (text, assignee) in [
        (r#"{"taskId":"t"}"#, None),
        (r#"{"taskId":"t","assignee":null}"#, Some(None)),
        (r#"{"taskId":"t","assignee":"bob"}"#, Some(Some("bob".to_owned()))),
    ] {
        let params: task::TaskParams = serde_json::from_str(text).unwrap();
        assert_eq!(params.changes.assignee, assignee, "{text}");
        round_trip::<task::TaskParams>(text);
    }
}

#[test]
fn connecting() {
    let connected = format!(
        r#"{{"protocolVersion":1,"sessionId":"session-1","participantId":"p","capabilities":{CAPABILITIES},"systemInfo":{SYSTEM},"principal":{{"id":"ann","expiresAt":5}},"resumeToken":"resume_1""#
    );
    round_trip::<connect::ConnectResult>(&format!("{connected}}}"));
    round_trip::<connect::ConnectResult>(&format!(
        r#"{connected},"reconnected":true,"ownedAgents":["ann"],"reclaimedAgents":[{AGENT}],"restored":true}}"#
    ));
    round_trip::<connect::AuthenticateResult>(&format!(r#"{connected},"success":true}}"#));
    round_trip::<connect::AuthenticateResult>(r#"{"success":true,"principal":null}"#);
    round_trip::<connect::AuthenticateResult>(
        r#"{"success":false,"error":{"code":"expired","message":"the token has expired"}}"#,
    );
    round_trip::<connect::RefreshResult>(
        r#"{"success":true,"accessToken":"x","expiresAt":5,"principal":{"id":"ann","expiresAt":5}}"#,
    );
    round_trip::<connect::AuthRequiredResult>(&format!(
        r#"{{"protocolVersion":1,"systemInfo":{SYSTEM},"authRequired":{{"methods":["bearer"],"required":true,"realm":"main"}}}}"#
    ));
    round_trip::<connect::InitializeResult>(&format!(
        concat!(
            r#"{{"protocolVersion":"2025-01-01","mode":"full","serverInfo":{},"capabilities":{{"streaming":true,"#,
            r#""scopes":true,"tasks":true,"roles":true,"environments":true,"federation":false,"replay":true,"#,
            r#""deliverySemantics":["best-effort"],"maxSubscriptions":1,"maxMessageSize":2,"mail":{{"enabled":true}}}},"#,
            r#""agentId":"ann"}}"#
        ),
        SYSTEM
    ));
}

#[test]
fn sessions() {
    round_trip::<session::SessionInfo>(r#"{"id":"session-1","createdAt":1,"lastActiveAt":2,"closedAt":2}"#);
    round_trip::<session::InfoResult>(
        r#"{"session":{"id":"session-1","createdAt":1,"lastActiveAt":2,"participantId":"p","participantType":"client","agents":[]}}"#,
    );
    round_trip::<session::ParticipantData>(
        r#"{"participantId":"p","participantType":"client","name":"n","resumed":true}"#,
    );
    round_trip::<session::PermissionResult>(&format!(
        r#"{{"success":true,"effectivePermissions":{CAPABILITIES}}}"#
    ));
}

#[test]
fn federation() {
    round_trip::<federation::RouteParams>(concat!(
        r#"{"systemId":"beta","envelope":{"payload":{"id":"m"},"federation":{"sourceSystem":"alpha","#,
        r#""targetSystem":"beta","hopCount":1,"maxHops":10,"path":["alpha"],"originTimestamp":1,"correlationId":null}}}"#
    ));
    round_trip::<federation::ConnectResult>(r#"{"connected":true,"systemInfo":null,"sessionId":null}"#);
    round_trip::<federation::ConnectResult>(r#"{"connected":false,"authRequired":{"methods":["bearer"]}}"#);
    round_trip::<federation::RouteResult>(r#"{"routed":true,"messageId":"m","delivered":["ann"]}"#);
    round_trip::<federation::GatewayParams>(
        r#"{"protocolVersion":1,"participantType":"gateway","name":"main","auth":{"credential":"x"}}"#,
    );
}

#[test]
fn errors() {
    // It borrows from the text, so the generic round trip does not fit.
    for text in [
        r#"{"category":"protocol","retryable":false}"#,
        r#"{"category":"mail","retryable":false,"details":{"name":"TURN_NOT_FOUND"},"retryAfterMs":5}"#,
    ] {
        let data: error::ErrorData<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&data).unwrap(), text);
    }
}
