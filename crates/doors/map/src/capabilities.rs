//! What a session may do: what the server grants to its kind of caller, without what the participant turned off.

use std::sync::{Arc, LazyLock};

use posthaste_wire::map::Capabilities;
use serde_json::{Map, Value};

/// The capabilities of a new session. Most sessions have exactly what the server grants, so they share it.
pub(super) fn grant(mail: bool, steers: bool, asked: Option<&Map<String, Value>>) -> Arc<Capabilities> {
    static GRANTS: [LazyLock<Arc<Capabilities>>; 4] = [
        LazyLock::new(|| Arc::new(Capabilities::granted(false, false))),
        LazyLock::new(|| Arc::new(Capabilities::granted(false, true))),
        LazyLock::new(|| Arc::new(Capabilities::granted(true, false))),
        LazyLock::new(|| Arc::new(Capabilities::granted(true, true))),
    ];
    let granted = &*GRANTS[usize::from(mail) * 2 + usize::from(steers)];
    match asked.map(|asked| granted.narrowed(asked)) {
        Some(narrowed) if narrowed != **granted => Arc::new(narrowed),
        _ => granted.clone(),
    }
}
