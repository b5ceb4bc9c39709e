//! The settings: name, type, default, meaning and flag of each. Flags, environment variables, keys of posthaste.toml,
//! `posthaste config`, its schema, `--help` and docs/configuration.md are made from this list.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueHint;
use posthaste_engine::nouns::RealmName;
use posthaste_host::http::rate::{Quota, Rates};

use super::table::settings;
use super::{AllowRemote, LogLevel, Opening, Span, ToolSet};
use crate::logs::LogForm;

settings! {
    /// Where to listen; port 0 picks a free one
    listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 7678)),
        flag listen: Option<String>, value_name = "ADDR:PORT";

    /// The default realm
    realm: RealmName = RealmName::main(),
        flag realm: Option<String>, value_name = "NAME";

    /// Whether callers need a token; off only on loopback
    auth: bool = true,
        flag no_auth: bool, help = "Require no token; only on loopback [env: POSTHASTE_AUTH=off]";

    /// Whether durable conversations are kept for MAP; when off, `mail/*` is refused
    mail: bool = true,
        flag no_mail: bool,
        help = "Keep no durable conversations for MAP: `mail/*` is refused [env: POSTHASTE_MAIL=off]";

    /// Join this directory of mailboxes (mail-async) with the default realm
    mail_dir: Option<PathBuf> = None,
        flag mail_dir: Option<PathBuf>, value_name = "DIR", value_hint = ValueHint::DirPath;

    /// Let other accounts make mailboxes in the mail directory
    mail_dir_shared: bool = false,
        flag mail_dir_shared: bool;

    /// Copy the mail of this agent into its mailbox in the mail directory although it came by another door; may be
    /// repeated
    mail_dir_agents: Vec<String> = Vec::new(),
        flag mail_dir_agent: Vec<String>, value_name = "AGENT";

    /// How often old files of the mail directory are archived
    archive_every: Span = Span::of("1h", 3_600),
        flag archive_every: Option<String>, value_name = "SPAN";

    /// AIRC's Safe Mode, tokens without signatures; `auto`: for callers on this machine
    safe_mode: Opening = Opening::Auto,
        flag safe_mode: Option<Opening>, value_name = "WHEN", value_enum;

    /// Whether AIRC identities are made without a token; `auto`: for callers on this machine
    registration: Opening = Opening::Auto,
        flag registration: Option<Opening>, value_name = "WHEN", value_enum;

    /// A further path, repository address or key that stands for the default realm; agents on this machine can attach
    /// files below a directory named here; may be repeated
    projects: Vec<String> = Vec::new(),
        flag project: Vec<String>, value_name = "PATH";

    /// How many tools MCP clients are shown
    tools: ToolSet = ToolSet::default(),
        flag tools: Option<ToolSet>, value_name = "SET", value_enum;

    /// On this machine, let a bearer of any token act for any agent over MCP
    trust_local: bool = false,
        flag trust_local: bool;

    /// Certificate chain in PEM; read again on SIGHUP
    tls_cert: Option<PathBuf> = None,
        flag tls_cert: Option<PathBuf>, value_name = "FILE", value_hint = ValueHint::FilePath;

    /// Private key of the certificate in PEM
    tls_key: Option<PathBuf> = None,
        flag tls_key: Option<PathBuf>, value_name = "FILE", value_hint = ValueHint::FilePath;

    /// Further authorities to trust, in PEM, when the server calls others over TLS
    tls_ca: Option<PathBuf> = None,
        flag tls_ca: Option<PathBuf>, value_name = "FILE", value_hint = ValueHint::FilePath;

    /// Let other machines in: over TLS, or with `plaintext` in the clear
    allow_remote: AllowRemote = AllowRemote::No,
        flag allow_remote: Option<AllowRemote>, value_name = "HOW", value_enum, num_args = 0..=1,
        require_equals = true, default_missing_value = "tls";

    /// A further host name that requests may carry; may be repeated
    allowed_hosts: Vec<String> = Vec::new(),
        flag allowed_host: Vec<String>, value_name = "HOST[:PORT]";

    /// A further origin whose web pages may call the server; may be repeated
    allowed_origins: Vec<String> = Vec::new(),
        flag allowed_origin: Vec<String>, value_name = "ORIGIN";

    /// Connections at once, WebSockets included
    max_connections: usize = 16_384,
        flag max_connections: Option<usize>, value_name = "N";

    /// The form of log lines on standard error
    log: LogForm = LogForm::Text,
        flag log: Option<LogForm>, value_name = "FORM", value_enum;

    /// A level, or a list like `info,posthaste=debug`
    log_level: LogLevel = LogLevel::default(),
        flag log_level: Option<String>, value_name = "LEVEL";

    /// Host the swarm that this file describes; the default realm then has its name
    swarm: Option<PathBuf> = None,
        flag swarm: Option<PathBuf>, value_name = "FILE", value_hint = ValueHint::FilePath;

    /// Accept JSON web tokens signed with the key in this file, by HS256
    jwt_key: Option<PathBuf> = None,
        flag jwt_key: Option<PathBuf>, value_name = "FILE", value_hint = ValueHint::FilePath;

    /// Whether the server's own requests may go into private networks. `auto`: to addresses given by callers, only if
    /// all callers are on this machine; to addresses in the operator's files, always
    private_networks: Opening = Opening::Auto;

    /// How often a silent MAP peer or linked system is pinged
    ping_every: Span = Span::of("30s", 30);

    /// Calls with one token at any door; `off` counts nothing
    rate_calls: Quota = Rates::default().calls;

    /// Requests with one token, or from one address without a token
    rate_requests: Quota = Rates::default().requests;

    /// AIRC messages of one sender
    rate_messages: Quota = Rates::default().messages;

    /// AIRC messages of one sender to everyone
    rate_broadcasts: Quota = Rates::default().broadcasts;

    /// AIRC heartbeats of one agent
    rate_heartbeats: Quota = Rates::default().heartbeats;

    /// AIRC consent requests of one agent
    rate_consents: Quota = Rates::default().consents;

    /// New AIRC identities from one address
    rate_registrations: Quota = Rates::default().registrations;
}
