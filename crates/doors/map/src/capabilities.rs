//! What a participant may do, as MAP names it. Groups of switches; what the office grants is laid over by what the
//! participant itself does without and by what a system participant changes later.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

/// The capabilities in force for one session.
///
/// Most sessions have exactly what the office grants, so they share it.
#[derive(Clone, Debug)]
pub(super) struct Capabilities(Arc<Map<String, Value>>);

impl Capabilities {
    /// What the office grants, less what the participant says it does without.
    pub(super) fn grant(mail: bool, steers: bool, asked: Option<&Map<String, Value>>) -> Self {
        static GRANTS: [LazyLock<Capabilities>; 4] = [
            LazyLock::new(|| Capabilities::all(false, false)),
            LazyLock::new(|| Capabilities::all(false, true)),
            LazyLock::new(|| Capabilities::all(true, false)),
            LazyLock::new(|| Capabilities::all(true, true)),
        ];
        let mut granted = GRANTS[usize::from(mail) * 2 + usize::from(steers)].clone();
        if let Some(asked) = asked {
            granted.narrow(asked);
        }
        granted
    }

    /// `canObserve` is the switch for subscribing and replaying. Whose traffic a participant sees there is decided by its
    /// token's right to observe.
    fn all(mail: bool, steers: bool) -> Self {
        let mut all = json!({
            "observation": { "canObserve": true, "canQuery": true },
            "messaging": { "canSend": true, "canReceive": true, "canBroadcast": true },
            "lifecycle": {
                "canSpawn": true, "canRegister": true, "canUnregister": true, "canSteer": steers, "canStop": steers,
            },
            "scopes": { "canCreateScopes": true, "canManageScopes": true },
            "federation": { "canFederate": steers },
            "tasks": { "canCreate": true, "canAssign": true, "canUpdate": true, "canList": true },
            "streaming": { "supportsAck": true, "supportsFlowControl": true, "supportsPause": true },
        });
        if mail {
            all["mail"] = json!({
                "enabled": true, "canCreate": true, "canJoin": true, "canInvite": true, "canViewHistory": true,
                "canCreateThreads": true,
            });
            all["extensions"] = json!([{ "uri": "urn:map:ext:mail:1", "version": "1.0" }]);
        }
        Self(Arc::new(match all {
            Value::Object(all) => all,
            _ => Map::new(),
        }))
    }

    /// Whether a switch is on. What the office does not know is off.
    pub(super) fn allow(&self, group: &str, switch: &str) -> bool {
        self.0.get(group).and_then(|group| group.get(switch)) == Some(&Value::Bool(true))
    }

    /// Lays other switches over these, for those the office knows.
    pub(super) fn lay_over(&mut self, given: &Map<String, Value>) {
        let all = Arc::make_mut(&mut self.0);
        for (group, switches) in given {
            let (Some(Value::Object(known)), Value::Object(switches)) = (all.get_mut(group), switches) else {
                continue;
            };
            for (name, value) in switches {
                if value.is_boolean() && known.contains_key(name) {
                    known.insert(name.clone(), value.clone());
                }
            }
        }
    }

    /// Turns off what is asked to be off, and nothing on.
    fn narrow(&mut self, asked: &Map<String, Value>) {
        let off = |value: &Value| *value == Value::Bool(false);
        if !asked.values().filter_map(Value::as_object).flat_map(Map::values).any(off) {
            return;
        }
        let all = Arc::make_mut(&mut self.0);
        for (group, switches) in asked {
            // What the server can do with a stream is not the participant's to turn off.
            if group == "streaming" {
                continue;
            }
            let (Some(Value::Object(known)), Value::Object(switches)) = (all.get_mut(group), switches) else {
                continue;
            };
            for (name, value) in switches {
                if *value == Value::Bool(false) && name != "enabled" && known.contains_key(name) {
                    known.insert(name.clone(), Value::Bool(false));
                }
            }
        }
    }

    pub(super) fn to_json(&self) -> Value {
        Value::Object(Map::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_participant_can_do_without_but_not_take() {
        let asked = json!({ "messaging": { "canSend": false }, "lifecycle": { "canStop": true }, "x": { "y": true } });
        let caps = Capabilities::grant(true, false, asked.as_object());
        assert!(!caps.allow("messaging", "canSend"));
        assert!(!caps.allow("lifecycle", "canStop"));
        assert!(!caps.allow("x", "y"));
        assert!(caps.allow("mail", "canCreate"));
        assert!(!Capabilities::grant(false, true, None).allow("mail", "canCreate"));
    }
}
