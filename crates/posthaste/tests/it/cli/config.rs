//! Which value wins, what is refused, and that the command says so.

use std::collections::HashMap;
use std::ffi::OsString;

use posthaste::cli::args::{GlobalArgs, OfficeArgs};
use posthaste::config::{AllowRemote, Config, Origin};
use serde_json::{Value, json};

use crate::harness::{Ran, TestDir};

/// Value and origin of one setting, as `posthaste config --json` shows them.
fn setting(ran: &Ran, name: &str) -> (Value, String) {
    let all = ran.json();
    let row = all["settings"].as_array().unwrap().iter().find(|row| row["setting"] == name).cloned();
    let row = row.unwrap_or_else(|| panic!("no setting {name}"));
    (row["value"].clone(), row["origin"].as_str().unwrap().to_owned())
}

/// What `serve --help` calls a default is the default.
#[test]
fn help_names_the_defaults_in_force() {
    use clap::CommandFactory as _;
    let rows = Config::from_text("").unwrap().rows();
    let program = posthaste::cli::args::Args::command();
    let serve = program.find_subcommand("serve").unwrap();
    let mut compared = 0;
    for arg in serve.get_arguments() {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let Some((_, rest)) = help.split_once("[default: ") else { continue };
        let said = rest.split([']', ',']).next().unwrap();
        let name = arg.get_long().unwrap().replace('-', "_");
        let Some(row) = rows.iter().find(|row| row.setting == name) else { continue };
        let value = row.value.as_str().map_or_else(|| row.value.to_string(), str::to_owned);
        assert_eq!(said, value, "--help on {name}");
        compared += 1;
    }
    assert!(compared >= 7, "only {compared} were found");
}

#[test]
fn docs_configuration_md_is_what_the_program_prints() {
    let printed = crate::harness::Posthaste::new().args(["config", "--markdown"]).run().ok().stdout;
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        printed == written,
        "docs/configuration.md is out of date; make it anew with \
         `cargo run -- config --markdown > docs/configuration.md`"
    );
}

/// The schema has every setting, and posthaste.toml takes the values that it names.
#[test]
fn schema_and_file_agree() {
    let schema = crate::harness::Posthaste::new().args(["config", "--schema"]).run().ok().json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["additionalProperties"], false);
    let properties = schema["properties"].as_object().unwrap();
    let rows = Config::from_text("").unwrap().rows();
    assert!(properties.keys().eq(rows.iter().map(|row| row.setting)), "{properties:#?}");
    for row in rows {
        let property = &properties[row.setting];
        assert!(property["description"].as_str().is_some_and(|text| !text.is_empty()), "{}", row.setting);
        let is_set = row.setting != "data" && !row.value.is_null();
        assert_eq!(property.get("default"), is_set.then_some(&row.value), "{}", row.setting);
        let named = ["enum", "examples"].iter().filter_map(|member| property[member].as_array()).flatten();
        for value in named.chain(property.get("default")) {
            // A JSON string, number, list or boolean is one of TOML, too.
            let line = format!("{} = {value}", row.setting);
            assert!(Config::from_text(&line).is_ok(), "{line}");
        }
    }
    assert_eq!(properties["max_connections"]["type"], "integer");
    assert_eq!(properties["allowed_hosts"]["items"]["type"], "string");
    assert_eq!(properties["safe_mode"]["enum"], json!(["auto", "on", "off", true, false]));
    assert_eq!(properties["tools"]["enum"], json!(["core", "full"]));
}

#[test]
fn flag_over_environment_over_file_over_default() {
    // name, flag, value by flag, variable and its text, value by environment, line, value by file, default
    type Row =
        (&'static str, &'static [&'static str], Value, [&'static str; 2], Value, &'static str, Value, Value);
    let table: Vec<Row> = vec![
        (
            "listen",
            &["--listen", "127.0.0.1:1"],
            json!("127.0.0.1:1"),
            ["POSTHASTE_LISTEN", "localhost:2"],
            json!("127.0.0.1:2"),
            "listen = '[::1]:3'",
            json!("[::1]:3"),
            json!("127.0.0.1:7678"),
        ),
        (
            "realm",
            &["--realm", "a"],
            json!("a"),
            ["POSTHASTE_REALM", "b"],
            json!("b"),
            "realm = 'c'",
            json!("c"),
            json!("main"),
        ),
        (
            "auth",
            &["--no-auth"],
            json!(false),
            ["POSTHASTE_AUTH", "on"],
            json!(true),
            "auth = false",
            json!(false),
            json!(true),
        ),
        (
            "mail",
            &["--no-mail"],
            json!(false),
            ["POSTHASTE_MAIL", "yes"],
            json!(true),
            "mail = false",
            json!(false),
            json!(true),
        ),
        (
            "allow_remote",
            &["--allow-remote"],
            json!("tls"),
            ["POSTHASTE_ALLOW_REMOTE", "no"],
            json!("no"),
            "allow_remote = 'plaintext'",
            json!("plaintext"),
            json!("no"),
        ),
        (
            "allowed_hosts",
            &["--allowed-host", "a.test", "--allowed-host", "b.test"],
            json!(["a.test", "b.test"]),
            ["POSTHASTE_ALLOWED_HOSTS", "c.test, d.test:8"],
            json!(["c.test", "d.test:8"]),
            "allowed_hosts = ['e.test']",
            json!(["e.test"]),
            json!([]),
        ),
        (
            "allowed_origins",
            &["--allowed-origin", "https://a.test"],
            json!(["https://a.test"]),
            ["POSTHASTE_ALLOWED_ORIGINS", "http://b.test:*"],
            json!(["http://b.test:*"]),
            "allowed_origins = []",
            json!([]),
            json!([]),
        ),
        (
            "tls_ca",
            &["--tls-ca", "/a.pem"],
            json!("/a.pem"),
            ["POSTHASTE_TLS_CA", "/b.pem"],
            json!("/b.pem"),
            "tls_ca = '/c.pem'",
            json!("/c.pem"),
            json!(null),
        ),
        (
            "max_connections",
            &["--max-connections", "1"],
            json!(1),
            ["POSTHASTE_MAX_CONNECTIONS", "2"],
            json!(2),
            "max_connections = 3",
            json!(3),
            json!(16384),
        ),
        (
            "log",
            &["--log", "json"],
            json!("json"),
            ["POSTHASTE_LOG", "TEXT"],
            json!("text"),
            "log = 'json'",
            json!("json"),
            json!("text"),
        ),
        (
            "log_level",
            &["--log-level", "warn"],
            json!("warn"),
            ["POSTHASTE_LOG_LEVEL", "posthaste=debug"],
            json!("posthaste=debug"),
            "log_level = 'off'",
            json!("off"),
            json!("info"),
        ),
    ];
    for (name, flags, by_flag, [variable, text], by_env, line, by_file, by_default) in table {
        let dir = TestDir::new();
        let file = dir.path().join("posthaste.toml").display().to_string();
        let run = |flags: &[&str], env: &str| {
            let ran = dir
                .posthaste()
                .args(["config", "--json"])
                .args(flags.iter().copied())
                .env(variable, env)
                .run();
            setting(&ran.ok(), name)
        };
        assert_eq!(run(&[], ""), (by_default, "default".into()), "an empty {variable} is none");
        dir.write("posthaste.toml", line);
        assert_eq!(run(&[], ""), (by_file, file), "{name} by file");
        assert_eq!(run(&[], text), (by_env, variable.into()), "{name} by environment");
        assert_eq!(run(flags, text), (by_flag, "flag".into()), "{name} by flag");
    }
}

#[test]
fn where_the_data_directory_and_the_file_come_from() {
    let (home, data, elsewhere) = (TestDir::new(), TestDir::new(), TestDir::new());
    let show = |posthaste: crate::harness::Posthaste, name| {
        setting(&posthaste.args(["config", "--json"]).env("HOME", home.path()).run().ok(), name)
    };
    let text = |dir: &TestDir| json!(dir.path().to_str().unwrap());
    let new = crate::harness::Posthaste::new;

    assert_eq!(show(new(), "data").1, "default");
    assert_eq!(
        show(new().env("POSTHASTE_DATA", data.path()), "data"),
        (text(&data), "POSTHASTE_DATA".into())
    );
    assert_eq!(
        show(data.posthaste().env("POSTHASTE_DATA", home.path()), "data"),
        (text(&data), "flag".into())
    );

    // A file named on the command line may choose the directory; its own directory's file is then not read.
    data.write("posthaste.toml", "realm = 'from-data'");
    let named = elsewhere
        .write("office.toml", &format!("data = {}\ntls_cert = 'c.pem'\ntls_key = '/k.pem'", text(&data)));
    let path = named.to_str().unwrap();
    assert_eq!(show(new().args(["--config", path]), "data"), (text(&data), path.into()));
    assert_eq!(show(new().env("POSTHASTE_CONFIG", path), "data"), (text(&data), path.into()));
    assert_eq!(show(new().args(["--config", path]), "realm"), (json!("main"), "default".into()));
    assert_eq!(show(data.posthaste(), "realm").0, json!("from-data"));
    // A path in a file is relative to the file.
    let cert = elsewhere.path().join("c.pem");
    assert_eq!(show(new().args(["--config", path]), "tls_cert"), (json!(cert), path.into()));
    assert_eq!(show(new().args(["--config", path]), "tls_key"), (json!("/k.pem"), path.into()));
}

#[test]
fn errors_in_the_file_are_reported() {
    let table = [
        ("lisen = 'x'", "unknown key `lisen`; did you mean `listen`?"),
        ("log-level = 'x'", "unknown key `log-level`; did you mean `log_level`?"),
        ("wallpaper = 'x'", "unknown key `wallpaper`; known are data, listen,"),
        ("[listen]\nport = 1", "posthaste.toml: listen: expected a string, found a table"),
        ("max_connections = '7'", "max_connections: expected a number, found a string"),
        ("max_connections = -1", "max_connections: -1 is out of range"),
        ("max_connections = 0", "max_connections: a server needs at least one connection"),
        ("auth = 'no'", "auth: expected true or false, found a string"),
        ("allowed_hosts = 'a'", "allowed_hosts: expected a list, found a string"),
        ("allowed_hosts = ['a/b']", "`a/b` is not a host name"),
        ("allowed_origins = ['app.test']", "`app.test` is not an origin"),
        ("realm = '../x'", "realm: `../x` cannot name a realm"),
        ("log = 'xml'", "log: `xml` is not one of text, json"),
        ("log_level = 'posthaste=loud'", "log_level: `posthaste=loud` is not a log level"),
        ("data = '/x'", "`data` has no meaning inside the data directory"),
        ("tls_cert = 'c.pem'", "tls_cert: needs tls_key"),
    ];
    for (text, expected) in table {
        let dir = TestDir::new();
        dir.write("posthaste.toml", text);
        let ran = dir.posthaste().args(["config"]).run();
        assert_eq!(ran.code, 2, "{text}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{text}: {}", ran.stderr);
    }
}

#[test]
fn a_syntax_error_names_the_line_but_does_not_quote_it() {
    let dir = TestDir::new();
    dir.write("posthaste.toml", "realm = 'a'\n\nlisten = hunter2\n");
    let ran = dir.posthaste().args(["config"]).run();
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("posthaste.toml:3: "), "{}", ran.stderr);
    assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
}

#[test]
fn a_named_file_must_exist() {
    let dir = TestDir::new();
    let missing = dir.path().join("no.toml");
    let ran = dir.posthaste().args(["config", "--config", missing.to_str().unwrap()]).run();
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("no such configuration file"), "{}", ran.stderr);
}

#[test]
fn listening_for_other_machines_needs_a_setting() {
    let tls = ["--tls-cert", "c", "--tls-key", "k"];
    let table: [(&[&str], bool, Option<&str>); 13] = [
        (&["--listen", "127.0.0.1:0"], false, None),
        (&["--listen", "127.9.9.9:0", "--no-auth"], false, None),
        (&["--listen", "[::1]:0", "--no-auth"], false, None),
        (&["--listen", "[::ffff:127.0.0.1]:0", "--no-auth"], false, None),
        (&["--listen", "0.0.0.0:0"], false, Some("say so with --allow-remote and give --tls-cert")),
        (&["--listen", "[::]:0"], true, Some("say so with --allow-remote")),
        (&["--listen", "192.0.2.1:0", "--allow-remote"], false, Some("there is no TLS")),
        (&["--listen", "192.0.2.1:0", "--allow-remote"], true, None),
        (&["--listen", "192.0.2.1:0", "--allow-remote=tls"], true, None),
        (&["--listen", "192.0.2.1:0", "--allow-remote=plaintext"], false, None),
        (&["--listen", "192.0.2.1:0", "--allow-remote", "--no-auth"], true, Some("without authentication")),
        (
            &["--listen", "[::]:0", "--allow-remote=plaintext", "--no-auth"],
            false,
            Some("without authentication"),
        ),
        (&["--tls-key", "k"], false, Some("tls_key: needs tls_cert")),
    ];
    let dir = TestDir::new();
    for (args, with_tls, refusal) in table {
        let tls = if with_tls { &tls[..] } else { &[] };
        let ran = dir.posthaste().args(["config"]).args(args.iter().chain(tls).copied()).run();
        assert!(ran.stdout.contains("allow_remote"), "the table is shown in any case");
        match refusal {
            None => assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr),
            Some(expected) => {
                assert_eq!(ran.code, 2, "{args:?}");
                assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
            }
        }
    }
}

#[test]
fn the_library_keeps_origins_and_warns() {
    let env = HashMap::from([("POSTHASTE_ALLOW_REMOTE", "plaintext"), ("HOME", "/home/ann")]);
    let env = |name: &str| env.get(name).map(OsString::from);
    let office = OfficeArgs { listen: Some("0.0.0.0:1".into()), ..OfficeArgs::default() };
    let config = Config::load(&GlobalArgs::default(), &office, &env).unwrap();
    assert_eq!(config.listen.origin, Origin::Flag);
    assert_eq!(config.allow_remote.value, AllowRemote::Plaintext);
    assert_eq!(config.allow_remote.origin, Origin::Env("POSTHASTE_ALLOW_REMOTE"));
    assert_eq!(config.log.origin, Origin::Default);
    config.check().unwrap();
    assert_eq!(config.warnings(), ["0.0.0.0:1 is open to other machines without TLS"]);
}

#[test]
fn the_table_is_aligned() {
    let dir = TestDir::new();
    let ran = dir.posthaste().args(["config", "--realm", "shop"]).run().ok();
    let column = ran.stdout.lines().next().unwrap().find("from").unwrap();
    for line in ran.stdout.lines() {
        assert!(line.is_char_boundary(column) && line.as_bytes()[column - 1] == b' ', "{line}");
    }
    assert!(
        ran.stdout.lines().any(|line| line.split_whitespace().eq(["realm", "shop", "flag"])),
        "{}",
        ran.stdout
    );
}
