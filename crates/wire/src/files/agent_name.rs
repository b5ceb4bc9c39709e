//! Agent names that are safe as one path component.

/// Longest agent name, in bytes; with timestamp and `.json` it stays below the limits of file systems.
pub const MAX_AGENT_NAME_BYTES: usize = 128;

/// A name that is not allowed for an agent in a mail directory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is not a valid agent name: 1 to {MAX_AGENT_NAME_BYTES} of a-z, A-Z, 0-9, '.', '_' and '-', not starting with '.' or '-'"
)]
pub struct InvalidAgentName {
    /// The refused name, truncated.
    pub given: String,
}

/// Refuses names that could escape the mail directory or be mistaken for another file in it.
///
/// # Errors
/// Describes the allowed names.
pub fn check_agent(name: &str) -> Result<&str, InvalidAgentName> {
    let mut bytes = name.bytes();
    let valid_first = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    let valid_rest = bytes.all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if valid_first && valid_rest && name.len() <= MAX_AGENT_NAME_BYTES {
        Ok(name)
    } else {
        // Truncated, because the input may be of any size.
        Err(InvalidAgentName { given: name.chars().take(MAX_AGENT_NAME_BYTES).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_name_is_one_path_component() {
        for good in ["mayor-a1b2c", "polecat-alpha", "_x", "a..b", "0", "A.b_c-d", &"x".repeat(128)] {
            assert!(check_agent(good).is_ok(), "{good}");
        }
        let long = "x".repeat(129);
        for bad in [
            "", ".", "..", "../evil", "a/b", "a\\b", ".hidden", "-flag", "a b", "a\n", "a\0", "\u{e4}", &long,
        ] {
            assert!(check_agent(bad).is_err(), "{bad:?}");
        }
    }
}
