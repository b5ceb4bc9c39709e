//! How people and scripts write an address in one word.

use posthaste_engine::nouns::{Address, AgentId, IdError, RealmName, ScopeId};

/// `ann`, `ann@realm`, `scope:team`, `role:reviewer`, `role:reviewer@team`, `parent`, `children`, `all`, `@contacts`, ….
/// An agent whose name looks like one of the others is written `agent:NAME`.
pub fn parse(word: &str) -> Result<Address, IdError> {
    Ok(match word {
        "all" => Address::All,
        "@contacts" => Address::Contacts,
        "@public" => Address::Public,
        "parent" => Address::Parent,
        "children" => Address::Children { depth: None },
        "siblings" => Address::Siblings,
        "ancestors" => Address::Ancestors { depth: None },
        "descendants" => Address::Descendants { depth: None },
        _ => return prefixed(word),
    })
}

/// An address as people write it.
pub fn write(address: &Address) -> String {
    match address {
        Address::Agent(agent) => agent.to_string(),
        Address::Scope(scope) => format!("scope:{scope}"),
        Address::Role { role, within: None } => format!("role:{role}"),
        Address::Role { role, within: Some(scope) } => format!("role:{role}@{scope}"),
        Address::Parent => "parent".to_owned(),
        Address::Children { .. } => "children".to_owned(),
        Address::Siblings => "siblings".to_owned(),
        Address::Ancestors { .. } => "ancestors".to_owned(),
        Address::Descendants { .. } => "descendants".to_owned(),
        Address::Kind(kind) => format!("every {}", kind.as_str()),
        Address::All => "all".to_owned(),
        Address::Contacts => "@contacts".to_owned(),
        Address::Public => "@public".to_owned(),
        Address::Remote { agent, realm } => format!("{agent}@{realm}"),
    }
}

fn prefixed(word: &str) -> Result<Address, IdError> {
    if let Some(name) = word.strip_prefix("agent:") {
        return Ok(Address::Agent(AgentId::new(name)?));
    }
    if let Some(name) = word.strip_prefix("scope:") {
        return Ok(Address::Scope(ScopeId::new(name)?));
    }
    if let Some(rest) = word.strip_prefix("role:") {
        let (role, within) = match rest.split_once('@') {
            Some((role, scope)) => (role, Some(ScopeId::new(scope)?)),
            None => (rest, None),
        };
        AgentId::new(role)?;
        return Ok(Address::Role { role: role.to_owned(), within });
    }
    match word.rsplit_once('@') {
        Some((agent, realm)) if !agent.is_empty() => {
            Ok(Address::Remote { agent: agent.to_owned(), realm: RealmName::new(realm)? })
        }
        _ => Ok(Address::Agent(AgentId::new(word)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_has_one_reading() {
        let agent = |name| Address::Agent(AgentId::new(name).unwrap());
        let scope = |name| ScopeId::new(name).unwrap();
        for (word, meant) in [
            ("ann", agent("ann")),
            ("agent:all", agent("all")),
            ("agent:a@b", agent("a@b")),
            ("all", Address::All),
            ("scope:team", Address::Scope(scope("team"))),
            ("role:cook", Address::Role { role: "cook".into(), within: None }),
            ("role:cook@team", Address::Role { role: "cook".into(), within: Some(scope("team")) }),
            ("ann@shop", Address::Remote { agent: "ann".into(), realm: RealmName::new("shop").unwrap() }),
            ("@contacts", Address::Contacts),
            ("@public", Address::Public),
        ] {
            assert_eq!(parse(word), Ok(meant), "{word}");
        }
        for bad in ["", "scope:", "role:", "ann@", "ann@../x", "agent:"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
