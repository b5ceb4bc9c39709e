//! Completion scripts and manual pages, made from the definition of the command line.

use clap::CommandFactory;
use clap_complete::Shell;

use super::args::Args;
use super::exit::{Exit, Failure};

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
