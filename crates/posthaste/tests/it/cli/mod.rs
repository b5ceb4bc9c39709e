//! Help, completions, manual pages, colour and exit codes.

mod agents;
mod api;
pub(crate) mod backup;
mod commands;
mod config;
mod examples;
mod mail;
mod output;
mod projects;
mod readme;
mod tail;
mod target;

use std::process::Stdio;

use crate::harness::{Posthaste, TestDir};

#[test]
fn help_and_version_are_answers() {
    for args in
        [&["--help"][..], &["-h"], &["--version"], &["serve", "--help"], &["token", "create", "--help"]]
    {
        let ran = Posthaste::new().args(args.iter().copied()).run().ok();
        assert!(ran.stdout.contains("posthaste") || ran.stdout.contains("token"), "{args:?}");
        assert!(!ran.stdout.contains('\x1b'), "colour into a pipe: {args:?}");
    }
}

#[test]
fn exit_codes_are_documented() {
    let help = Posthaste::new().args(["--help"]).run().ok().stdout;
    for line in [
        "0  done",
        "2  wrong usage",
        "5  another process holds",
        "6  a check found a problem",
        "8  not found",
        "9  refused by a rule",
    ] {
        assert!(help.contains(line), "{line}");
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    for args in [
        &[][..],
        &["nonsense"],
        &["serve", "--listn", "x"],
        &["serve", "--allow-remote=maybe"],
        &["token", "create", "--role", "king", "--name", "n"],
        &["token", "create", "--role", "user", "--name", "n", "--expires", "soon"],
        &["man", "nonsense"],
        &["config", "--color", "green"],
    ] {
        let ran = Posthaste::new().args(args.iter().copied()).run();
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn completions_and_manual() {
    for (shell, word) in
        [("bash", "complete "), ("zsh", "#compdef"), ("fish", "complete -c"), ("powershell", "Register")]
    {
        let ran = Posthaste::new().args(["completions", shell]).run().ok();
        assert!(ran.stdout.contains(word), "{shell}");
    }
    let page = Posthaste::new().args(["man"]).run().ok().stdout;
    assert!(page.contains(".TH posthaste 1") && page.contains("Exit codes"), "{page}");
    let page = Posthaste::new().args(["man", "token", "create"]).run().ok().stdout;
    assert!(page.contains(".TH posthaste-token-create 1"), "{page}");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let mut posthaste = Posthaste::new().args(["completions", "bash"]);
    let mut child = posthaste.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // More is written than a pipe holds, so it must notice that the reader is gone.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty());
}

#[test]
fn colour_only_when_wanted() {
    let dir = TestDir::new();
    let colored = |args: &[&str], no_color: &str| {
        let ran = dir.posthaste().args(["config"]).args(args.iter().copied()).env("NO_COLOR", no_color).run();
        ran.ok().stdout.contains('\x1b')
    };
    // Into a pipe, so `auto` means no.
    for (args, no_color, expected) in [
        (&[][..], "", false),
        (&[][..], "1", false),
        (&["--color", "always"], "", true),
        (&["--color", "always"], "1", true),
        (&["--color", "never"], "", false),
        (&["--color=always", "--json"], "", false),
    ] {
        assert_eq!(colored(args, no_color), expected, "{args:?} NO_COLOR={no_color}");
    }
    let help = Posthaste::new().args(["--color", "always", "--help"]).run().ok().stdout;
    assert!(help.contains('\x1b'), "clap's own output follows the flag");
    let help =
        Posthaste::new().args(["--color=never", "--help"]).env("CLICOLOR_FORCE", "1").run().ok().stdout;
    assert!(!help.contains('\x1b'));
}

#[test]
fn complaints_in_json() {
    let dir = TestDir::new();
    let ran = dir.posthaste().args(["config", "--json", "--listen", "nowhere"]).run();
    assert_eq!(ran.code, 2);
    let said: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(said["error"]["exit"], 2);
    assert!(said["error"]["message"].as_str().unwrap().starts_with("--listen: "), "{said}");
}

// F27: what is wrong with the command line is JSON as well, if JSON was asked for.
#[test]
fn usage_errors_in_json() {
    for args in [&["--json", "nonsense"][..], &["send", "--json", "--too", "ann"], &["read", "--json"]] {
        let ran = Posthaste::new().args(args.iter().copied()).run();
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}");
        let said: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
        assert_eq!(said["error"]["exit"], 2, "{said}");
        let message = said["error"]["message"].as_str().unwrap();
        assert!(!message.is_empty() && !message.contains("Usage:"), "{said}");
    }
    assert!(Posthaste::new().args(["--json", "--help"]).run().ok().stdout.contains("Usage:"));
}

// F25
#[test]
fn help_and_version_are_commands_as_well() {
    let run = |args: &[&str]| Posthaste::new().args(args.iter().copied()).run().ok().stdout;
    assert_eq!(run(&["help"]), run(&["--help"]));
    assert_eq!(run(&["help", "send"]), run(&["send", "--help"]));
    assert_eq!(run(&["help", "token", "create"]), run(&["token", "create", "--help"]));
    assert_eq!(run(&["version"]), run(&["--version"]));
    assert_eq!(Posthaste::new().args(["version", "--json"]).run().ok().json()["version"], "0.1.0");
}

// F60
#[test]
fn all_manual_pages_are_written_at_once() {
    let dir = TestDir::new();
    let out = dir.path().join("man1");
    let ran = Posthaste::new().args(["man", "--json", "--out", out.to_str().unwrap()]).run().ok();
    let files = ran.json()["files"].as_array().unwrap().len();
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), files);
    for name in ["posthaste", "posthaste-send", "posthaste-token-create"] {
        let page = std::fs::read_to_string(out.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(&format!(".TH {name} 1")), "{name}");
    }
    // F26: the list of exit codes is in the manual page, too.
    assert!(std::fs::read_to_string(out.join("posthaste.1")).unwrap().contains("refused by a rule"));
}
