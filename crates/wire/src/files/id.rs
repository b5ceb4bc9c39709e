//! Names of agents that are safe as one part of a path.

/// The longest name; with a stamp and `.json` it stays below what file systems allow.
pub const LONGEST: usize = 128;

/// Why a name cannot be an agent's in a mail directory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is not an agent's name here: 1 to {LONGEST} letters, digits, '.', '_' or '-', the first a letter, digit or '_'"
)]
pub struct BadAgent {
    /// What was given.
    pub given: String,
}

/// Refuses every name that could lead out of its directory, or be taken for something else there.
///
/// # Errors
/// Says what a name looks like.
pub fn check_agent(name: &str) -> Result<&str, BadAgent> {
    let mut letters = name.bytes();
    let starts_well = letters.next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    let goes_on_well = letters.all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if starts_well && goes_on_well && name.len() <= LONGEST {
        Ok(name)
    } else {
        // What is shown is bounded: the name may be megabytes of somebody's idea of a joke.
        Err(BadAgent { given: name.chars().take(LONGEST).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path() {
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
