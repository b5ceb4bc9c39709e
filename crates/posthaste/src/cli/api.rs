//! `posthaste api`: the reference of posthaste's own methods, as a JSON schema or in Markdown.

use super::args::ApiCommand;
use super::exit::Failure;
use super::output::Output;

pub(super) fn run(command: ApiCommand, output: &Output) -> Result<(), Failure> {
    match command {
        ApiCommand::Schema => output.json(&posthaste_control::schema()),
        ApiCommand::Markdown => Ok(output.bytes(posthaste_control::markdown().as_bytes())?),
    }
}
