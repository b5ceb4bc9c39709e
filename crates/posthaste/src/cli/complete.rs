//! Completion scripts and manual pages, made from the definition of the command line.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use serde::Serialize;

use super::args::Args;
use super::exit::{Exit, Failure};
use super::output::{Output, Page};

/// The script that teaches `shell` our commands.
pub(super) fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "posthaste", &mut script);
    script
}

/// The manual page of the command at `path`, in roff; of posthaste itself if `path` is empty.
pub(super) fn man(path: &[String]) -> Result<Vec<u8>, Failure> {
    let mut command = Args::command();
    // Builds names like `posthaste-token-create` and hands global flags down.
    command.build();
    for word in path {
        let inner = command.find_subcommand(word).cloned();
        command = inner.ok_or_else(|| Failure::new(Exit::Usage, format!("there is no command `{word}`")))?;
    }
    let name = command.get_display_name().unwrap_or("posthaste").to_owned();
    let page = clap_mangen::Man::new(command.display_name(name));
    let mut roff = Vec::new();
    page.render(&mut roff)?;
    Ok(roff)
}

/// Writes the page of every command into a directory, which is made if it is not there.
pub(super) fn write_pages(dir: &Path, output: &Output) -> Result<(), Failure> {
    std::fs::create_dir_all(dir)
        .map_err(|error| Failure::new(Exit::Failed, format!("{}: {error}", dir.display())))?;
    let mut command = Args::command();
    command.build();
    let mut files = Vec::new();
    let mut waiting = vec![command];
    while let Some(command) = waiting.pop() {
        let name = command.get_display_name().unwrap_or("posthaste").to_owned();
        // `help` repeats the pages of the others.
        waiting.extend(command.get_subcommands().filter(|inner| inner.get_name() != "help").cloned());
        let mut roff = Vec::new();
        clap_mangen::Man::new(command.display_name(&name)).render(&mut roff)?;
        let file = dir.join(format!("{name}.1"));
        std::fs::write(&file, roff)
            .map_err(|error| Failure::new(Exit::Failed, format!("{}: {error}", file.display())))?;
        files.push(format!("{name}.1"));
    }
    files.sort();
    if output.is_json() {
        return output.json(&Page::only("files", &files));
    }
    Ok(output.line(&format!("{} pages in {}", files.len(), dir.display()))?)
}

/// The version, as `--json` prints it.
#[derive(Serialize)]
struct Version {
    version: &'static str,
}

pub(super) fn version(output: &Output) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    match output.is_json() {
        true => output.json(&Version { version }),
        false => Ok(output.line(&format!("posthaste {version}"))?),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_gets_a_script() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(completions(*shell)).unwrap();
            assert!(script.contains("allow-remote"), "{shell}");
        }
    }

    #[test]
    fn pages_of_commands_carry_their_own_name() {
        let page = |path: &[&str]| {
            let path: Vec<String> = path.iter().map(ToString::to_string).collect();
            man(&path).map(|roff| String::from_utf8(roff).unwrap())
        };
        assert!(page(&[]).unwrap().contains(".TH posthaste 1"));
        assert!(page(&["serve"]).unwrap().contains(".TH posthaste-serve 1"));
        assert!(page(&["token", "create"]).unwrap().contains(".TH posthaste-token-create 1"));
        assert!(page(&["tokens"]).is_err());
    }
}
