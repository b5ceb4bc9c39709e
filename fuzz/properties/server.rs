//! Properties of the parsers of the server itself: patterns, swarm files, tools' arguments, configuration, exported databases.

use posthaste_engine::globs::PathPattern;
use posthaste_engine::store;
use posthaste_swarm::runtime::definition::Swarm;
use rusqlite::Connection;
use sha2::{Digest, Sha256};

/// A property, by the name of its fuzz target.
pub(crate) type Property = (&'static str, fn(&[u8]), &'static [&'static str]);

pub(crate) const SERVER: &[Property] = &[
    (
        "path_patterns",
        path_patterns,
        &[
            "src/**/*.rs\nsrc/{a,b}/[a-z]?.rs\nsrc/a/b.rs",
            "**\n*\na/b",
            "a\\*b\n[!x]\na*b",
            "{a,{b,c}}/d\na/d\nc/d",
            "src/\nsrc/x\nsrc/x/y",
            "../x\n/x\nx",
        ],
    ),
    (
        "swarm_file",
        swarm_file,
        &[
            r#"{"name":"s","version":"1.3","entrypoint":"b","actions":[{"name":"act","driver":{"http":"http://x.test","token_env":"T"}}],"agents":[{"name":"b","driver":{"builtin":"echo"},"comm_targets":["h"],"enable_entrypoint":true,"can_complete_tasks":true},{"name":"h","driver":{"command":["{here}/x"]},"comm_targets":["b"],"actions":["act"]}]}"#,
            r#"[{"name":"s","version":"1","entrypoint":"a","agents":[{"name":"a","driver":{"model":{"url":"${U}/v1","name":"m","key_env":"K"}},"comm_targets":[],"enable_entrypoint":true,"can_complete_tasks":true}],"actions":[],"task_timeout":1e8}]"#,
        ],
    ),
    (
        "mcp_arguments",
        mcp_arguments,
        &[
            "send_message\n{\"project_key\":\"/x\",\"sender_name\":\"a\",\"to\":[\"b\"],\"subject\":\"s\",\"body_md\":\"b\"}",
            "fetch_inbox\n{\"project_key\":\"/x\",\"agent_name\":\"a\",\"limit\":\"5\",\"since_ts\":\"x\"}",
            "file_reservation_paths\n{\"project_key\":\"/x\",\"agent_name\":\"a\",\"paths\":\"src/**\",\"ttl_seconds\":1e3}",
        ],
    ),
    (
        "config_file",
        config_file,
        &[
            "listen = \"127.0.0.1:7678\"\nauth = false\nrate_messages = \"60/m\"\nmax_connections = 10\n",
            "allowed_hosts = [\"a.test\"]\nallowed_origins = [\"https://a.test:*\"]\nprivate_networks = \"auto\"\n",
            "archive_every = \"1h\"\ntools = \"core\"\nallow_remote = \"tls\"\nlog_level = \"info,hyper=warn\"\nrealm = \"main\"\n",
        ],
    ),
];

/// Overlap of two patterns is symmetric, and a path that both cover is an overlap.
pub(crate) fn path_patterns(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.lines();
    let (Some(a), Some(b)) = (lines.next(), lines.next()) else { return };
    let path = lines.next().unwrap_or(b);
    let (Ok(a), Ok(b)) = (PathPattern::parse(a), PathPattern::parse(b)) else { return };
    assert!(a.overlaps(&a), "{a} overlaps itself");
    let overlap = a.overlaps(&b);
    assert_eq!(overlap, b.overlaps(&a), "{a} and {b}");
    if a.covers(path) && b.covers(path) {
        assert!(overlap, "{a} and {b} both cover {path}");
    }
    if let (Some(x), Some(y)) = (a.head(), b.head())
        && x != y
    {
        assert!(!overlap, "{a} and {b} have different heads");
    }
}

pub(crate) fn swarm_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(swarm) = Swarm::from_text(text, std::path::Path::new("/where")) else { return };
    assert!(swarm.agent(&swarm.entrypoint).is_some());
    assert!(swarm.timeout() > std::time::Duration::ZERO);
    let _ = (swarm.machine_access(), swarm.addresses());
    for agent in &swarm.agents {
        let _ = swarm.tools_of(agent).count();
    }
}

pub(crate) fn mcp_arguments(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (tool, given) = text.split_once('\n').unwrap_or(("send_message", text));
    let _ = posthaste_mcp::read_arguments(tool, given);
}

pub(crate) fn config_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(config) = posthaste::config::Config::from_text(text) {
        let _ = (config.check(), config.warnings(), config.guard());
        for row in config.rows() {
            let _ = row.shown();
        }
    }
}

/// Exported databases: any lines give a new database or an error, and an error leaves the database unchanged. The checksum rejects
/// nearly every mutation, so the same rows are tried under a correct checksum too, as an attacker who can write the file would.
/// Accepted rows can be exported and imported again.
pub(crate) fn database_export(db: &mut Connection, bytes: &[u8]) {
    taken(db, bytes);
    if let Some(count) = taken(db, &sealed(bytes)) {
        let mut lines = Vec::new();
        let written = store::write_rows(db, "main", &mut lines, &mut |_| true).expect("it was read");
        // Rows about the progress of the full-text index and the key index are added if the lines had none.
        assert!((count..=count + 3).contains(&written), "{count} rows became {written}");
        assert_eq!(taken(db, &lines), Some(written), "exported rows can be imported");
    }
}

/// The number of rows that the database accepted; on an error it is unchanged.
fn taken(db: &mut Connection, mut lines: &[u8]) -> Option<u64> {
    let before = store::count_rows(db).expect("the database can be read");
    let read = store::read_rows(db, &mut lines, &mut |_| true);
    if read.is_err() {
        let after = store::count_rows(db).expect("the database can be read");
        assert_eq!(after, before, "a refusal changes nothing");
    }
    read.ok()
}

/// The rows among the lines, between a valid first and last line.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut out = b"{\"posthaste\":\"realm\",\"form\":2,\"database\":1}\n".to_vec();
    let mut count = 0;
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"{\"table\"")) {
        out.extend([line, b"\n"].concat());
        count += 1;
    }
    let seal: String = Sha256::digest(&out).iter().map(|byte| format!("{byte:02x}")).collect();
    out.extend(format!("{{\"end\":{{\"rows\":{count},\"sha256\":\"{seal}\"}}}}\n").bytes());
    out
}
