//! What a participant may do: groups of switches, as `map/connect` and `map/permissions/update` exchange them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The switches in force for one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Subscriptions and queries.
    pub observation: Observation,
    /// Messages.
    pub messaging: Messaging,
    /// Agents.
    pub lifecycle: Lifecycle,
    /// Scopes.
    pub scopes: Scopes,
    /// Other systems.
    pub federation: Federation,
    /// Tasks.
    pub tasks: Tasks,
    /// What the server can do with a stream.
    pub streaming: Streaming,
    /// Conversations, if the server has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mail: Option<Mail>,
    /// Extensions of the protocol that the server speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Vec<Extension>>,
}

/// Subscriptions and queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// Subscribe and replay. The token decides whose traffic is visible there.
    pub can_observe: bool,
    /// List and look up.
    pub can_query: bool,
}

/// Messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Messaging {
    /// Send messages.
    pub can_send: bool,
    /// Receive messages.
    pub can_receive: bool,
    /// Send to all agents.
    pub can_broadcast: bool,
}

/// Agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// Spawn child agents.
    pub can_spawn: bool,
    /// Register agents.
    pub can_register: bool,
    /// Unregister agents.
    pub can_unregister: bool,
    /// Inject messages into agents of others.
    pub can_steer: bool,
    /// Stop, suspend and resume agents of others.
    pub can_stop: bool,
}

/// Scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scopes {
    /// Create scopes.
    pub can_create_scopes: bool,
    /// Delete scopes, and change the membership of agents of others.
    pub can_manage_scopes: bool,
}

/// Other systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Federation {
    /// Connect to other systems and route messages.
    pub can_federate: bool,
}

/// Tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tasks {
    /// Create tasks.
    pub can_create: bool,
    /// Assign tasks.
    pub can_assign: bool,
    /// Update tasks.
    pub can_update: bool,
    /// List and look up tasks.
    pub can_list: bool,
}

/// What the server can do with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Streaming {
    /// Acknowledged events.
    pub supports_ack: bool,
    /// Flow control by acknowledgement.
    pub supports_flow_control: bool,
    /// Pause and resume.
    pub supports_pause: bool,
}

/// Conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mail {
    /// Whether the server has them.
    pub enabled: bool,
    /// Create, close and reopen conversations.
    pub can_create: bool,
    /// Join conversations and take part in them.
    pub can_join: bool,
    /// Invite participants.
    pub can_invite: bool,
    /// Read earlier turns.
    pub can_view_history: bool,
    /// Create threads.
    pub can_create_threads: bool,
}

/// An extension of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extension {
    /// Its name.
    pub uri: String,
    /// Its version.
    pub version: String,
}

/// The switches that methods check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named for the members they stand for")]
pub enum Switch {
    Observe,
    Query,
    Send,
    Receive,
    Broadcast,
    Spawn,
    Register,
    Unregister,
    Steer,
    Stop,
    CreateScopes,
    ManageScopes,
    Federate,
    CreateTasks,
    AssignTasks,
    UpdateTasks,
    ListTasks,
    CreateMail,
    JoinMail,
    InviteMail,
    ViewMailHistory,
    CreateMailThreads,
}

impl Switch {
    /// The group and the member on the wire.
    #[must_use]
    pub fn path(self) -> (&'static str, &'static str) {
        match self {
            Self::Observe => ("observation", "canObserve"),
            Self::Query => ("observation", "canQuery"),
            Self::Send => ("messaging", "canSend"),
            Self::Receive => ("messaging", "canReceive"),
            Self::Broadcast => ("messaging", "canBroadcast"),
            Self::Spawn => ("lifecycle", "canSpawn"),
            Self::Register => ("lifecycle", "canRegister"),
            Self::Unregister => ("lifecycle", "canUnregister"),
            Self::Steer => ("lifecycle", "canSteer"),
            Self::Stop => ("lifecycle", "canStop"),
            Self::CreateScopes => ("scopes", "canCreateScopes"),
            Self::ManageScopes => ("scopes", "canManageScopes"),
            Self::Federate => ("federation", "canFederate"),
            Self::CreateTasks => ("tasks", "canCreate"),
            Self::AssignTasks => ("tasks", "canAssign"),
            Self::UpdateTasks => ("tasks", "canUpdate"),
            Self::ListTasks => ("tasks", "canList"),
            Self::CreateMail => ("mail", "canCreate"),
            Self::JoinMail => ("mail", "canJoin"),
            Self::InviteMail => ("mail", "canInvite"),
            Self::ViewMailHistory => ("mail", "canViewHistory"),
            Self::CreateMailThreads => ("mail", "canCreateThreads"),
        }
    }
}

impl Capabilities {
    /// What a server grants: everything but what its kind of caller may not do.
    #[must_use]
    pub fn granted(mail: bool, steers: bool) -> Self {
        Self {
            observation: Observation { can_observe: true, can_query: true },
            messaging: Messaging { can_send: true, can_receive: true, can_broadcast: true },
            lifecycle: Lifecycle {
                can_spawn: true,
                can_register: true,
                can_unregister: true,
                can_steer: steers,
                can_stop: steers,
            },
            scopes: Scopes { can_create_scopes: true, can_manage_scopes: true },
            federation: Federation { can_federate: steers },
            tasks: Tasks { can_create: true, can_assign: true, can_update: true, can_list: true },
            streaming: Streaming { supports_ack: true, supports_flow_control: true, supports_pause: true },
            mail: mail.then_some(Mail {
                enabled: true,
                can_create: true,
                can_join: true,
                can_invite: true,
                can_view_history: true,
                can_create_threads: true,
            }),
            extensions: mail
                .then(|| vec![Extension { uri: "urn:map:ext:mail:1".to_owned(), version: "1.0".to_owned() }]),
        }
    }

    /// Whether a switch is on.
    #[must_use]
    pub fn allows(&self, switch: Switch) -> bool {
        let mail = |on: fn(&Mail) -> bool| self.mail.as_ref().is_some_and(on);
        match switch {
            Switch::Observe => self.observation.can_observe,
            Switch::Query => self.observation.can_query,
            Switch::Send => self.messaging.can_send,
            Switch::Receive => self.messaging.can_receive,
            Switch::Broadcast => self.messaging.can_broadcast,
            Switch::Spawn => self.lifecycle.can_spawn,
            Switch::Register => self.lifecycle.can_register,
            Switch::Unregister => self.lifecycle.can_unregister,
            Switch::Steer => self.lifecycle.can_steer,
            Switch::Stop => self.lifecycle.can_stop,
            Switch::CreateScopes => self.scopes.can_create_scopes,
            Switch::ManageScopes => self.scopes.can_manage_scopes,
            Switch::Federate => self.federation.can_federate,
            Switch::CreateTasks => self.tasks.can_create,
            Switch::AssignTasks => self.tasks.can_assign,
            Switch::UpdateTasks => self.tasks.can_update,
            Switch::ListTasks => self.tasks.can_list,
            Switch::CreateMail => mail(|mail| mail.can_create),
            Switch::JoinMail => mail(|mail| mail.can_join),
            Switch::InviteMail => mail(|mail| mail.can_invite),
            Switch::ViewMailHistory => mail(|mail| mail.can_view_history),
            Switch::CreateMailThreads => mail(|mail| mail.can_create_threads),
        }
    }

    /// Sets the given switches; groups, switches and values that are not known change nothing.
    #[must_use]
    pub fn changed(&self, given: &Map<String, Value>) -> Self {
        self.with(given, |_, _, value| value.is_boolean())
    }

    /// Turns off the switches that the participant turns off, and none on. What the server can do with a stream, and
    /// whether it has mail, is not the participant's to turn off.
    #[must_use]
    pub fn narrowed(&self, asked: &Map<String, Value>) -> Self {
        self.with(asked, |group, name, value| {
            *value == Value::Bool(false) && group != "streaming" && name != "enabled"
        })
    }

    fn with(&self, given: &Map<String, Value>, applies: impl Fn(&str, &str, &Value) -> bool) -> Self {
        let Ok(Value::Object(mut all)) = serde_json::to_value(self) else { return self.clone() };
        for (group, switches) in given {
            let (Some(Value::Object(known)), Value::Object(switches)) = (all.get_mut(group), switches) else {
                continue;
            };
            for (name, value) in switches {
                if known.contains_key(name) && applies(group, name, value) {
                    known.insert(name.clone(), value.clone());
                }
            }
        }
        serde_json::from_value(Value::Object(all)).unwrap_or_else(|_| self.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn participants_can_turn_switches_off_but_not_on() {
        let asked = json!({
            "messaging": { "canSend": false }, "lifecycle": { "canStop": true }, "x": { "y": true },
            "streaming": { "supportsAck": false }, "mail": { "enabled": false, "canInvite": false },
            "observation": { "canQuery": "no" },
        });
        let caps = Capabilities::granted(true, false).narrowed(asked.as_object().unwrap());
        assert!(!caps.allows(Switch::Send));
        assert!(!caps.allows(Switch::Stop));
        assert!(caps.allows(Switch::Query));
        assert!(caps.allows(Switch::CreateMail));
        assert!(!caps.allows(Switch::InviteMail));
        assert!(caps.streaming.supports_ack);
        assert!(caps.mail.unwrap().enabled);
        assert!(!Capabilities::granted(false, true).allows(Switch::CreateMail));
    }

    #[test]
    fn changes_can_turn_known_switches_on() {
        let given =
            json!({ "lifecycle": { "canStop": true, "canFly": true }, "extensions": [], "scopes": 1 });
        let before = Capabilities::granted(false, false);
        let after = before.changed(given.as_object().unwrap());
        assert!(after.allows(Switch::Stop));
        assert_eq!(Capabilities { lifecycle: before.lifecycle, ..after }, before);
    }

    #[test]
    fn every_switch_is_the_member_that_it_names() {
        let all = Capabilities::granted(true, true);
        for switch in [
            Switch::Observe,
            Switch::Query,
            Switch::Send,
            Switch::Receive,
            Switch::Broadcast,
            Switch::Spawn,
            Switch::Register,
            Switch::Unregister,
            Switch::Steer,
            Switch::Stop,
            Switch::CreateScopes,
            Switch::ManageScopes,
            Switch::Federate,
            Switch::CreateTasks,
            Switch::AssignTasks,
            Switch::UpdateTasks,
            Switch::ListTasks,
            Switch::CreateMail,
            Switch::JoinMail,
            Switch::InviteMail,
            Switch::ViewMailHistory,
            Switch::CreateMailThreads,
        ] {
            let (group, name) = switch.path();
            assert!(all.allows(switch), "{group}.{name}");
            let off = all.changed(json!({ group: { name: false } }).as_object().unwrap());
            assert!(!off.allows(switch), "{group}.{name}");
        }
    }
}
