//! The method that shows and changes a realm's rules.

use posthaste_engine::verbs::office::SetRules;
use posthaste_wire::control as wire;
use posthaste_wire::rpc::ErrorObject;

use super::errors::{bad_params, refused};
use super::table::Call;
use super::{VIA, to_wire};

pub(super) async fn rules(call: Call<'_>, given: wire::RulesParams) -> Result<wire::Rules, ErrorObject> {
    let present = call.engine.read(|view| view.rules()).await.map_err(refused)?;
    if given.0.is_empty() {
        return Ok(to_wire::rules(present));
    }
    let mut rules = serde_json::to_value(present).map_err(bad_params)?;
    for (name, value) in given.0 {
        match rules.get_mut(&name) {
            Some(rule) => *rule = value,
            None => return Err(bad_params(format!("there is no rule {name}"))),
        }
    }
    let rules = serde_json::from_value(rules).map_err(bad_params)?;
    let rules = call.engine.submit(&call.identity.caller(VIA), SetRules { rules }).await.map_err(refused)?;
    Ok(to_wire::rules(rules))
}
