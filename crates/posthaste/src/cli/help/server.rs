//! Help of the commands for the server, its data directory and tokens.

pub(in crate::cli) const SERVE: &str = "\
Runs the server: one process that owns the data directory until SIGTERM or SIGINT. Once every door listens, `ready http://ADDR:PORT` is printed on standard output; logs go to \
standard error.

Only this machine can reach the server unless you say otherwise: another address needs \
--allow-remote and TLS, or --allow-remote=plaintext if you accept that everyone on the way can read \
tokens and mail. A server without authentication is never open to other machines.";

pub(in crate::cli) const SERVE_AFTER: &str = "\
Examples:
  posthaste serve
  posthaste serve --data /srv/mail --listen 127.0.0.1:0
  posthaste serve --mail-dir .chipset/state/mail
  posthaste serve --swarm examples/swarm/builtin.json
  posthaste serve --listen 0.0.0.0:443 --allow-remote --tls-cert cert.pem --tls-key key.pem";

pub(in crate::cli) const MAP: &str = "\
Speaks MAP (the Multi-Agent Protocol) on standard input and output, one JSON value per line, for agents \
that are started as subprocesses. The lines go to the server that is named or runs on the data directory; \
if there is none, this process opens the data directory itself for as long as its input lasts.";

pub(in crate::cli) const MAP_AFTER: &str = "\
Example:
  posthaste map --realm main
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"map/agents/list\"}' | posthaste map";

pub(in crate::cli) const MCP: &str = "\
Speaks MCP (the Model Context Protocol) on standard input and output, for clients that start their \
servers themselves. Everything is relayed to the server that is named or runs on the data directory; if \
there is none, this process starts one on a free port of this machine for as long as its input lasts. Any \
number of these can run on one data directory: the first has the server, and when it ends another takes \
over.

Without a token in POSTHASTE_TOKEN or --token-file, the client acts with a token of its own for the \
directory that it was started in; it is made at the first start and kept in the data directory. It acts \
for the agents of that token and for no others. To act as the operator, name the admin token yourself.";

pub(in crate::cli) const MCP_AFTER: &str = "\
Examples:
  posthaste mcp
  posthaste mcp --tools core
  posthaste mcp --token-file ~/.local/share/posthaste/admin.token
  posthaste mcp --context prod";

pub(in crate::cli) const API: &str = "\
Prints the reference of the methods that posthaste has beside the protocols it speaks (x-posthaste/...): names, \
params and results. No server is needed.";

pub(in crate::cli) const API_AFTER: &str = "\
Examples:
  posthaste api schema
  posthaste api markdown";

pub(in crate::cli) const API_SCHEMA: &str = "\
Prints a JSON schema (draft 2020-12) with one member per method, which has the members `params` and `result`.";

pub(in crate::cli) const API_SCHEMA_AFTER: &str = "\
Example:
  posthaste api schema > schema.json";

pub(in crate::cli) const API_MARKDOWN: &str = "\
Prints the reference of all methods in Markdown: docs/api.md is made this way.";

pub(in crate::cli) const API_MARKDOWN_AFTER: &str = "\
Example:
  posthaste api markdown > api.md";

pub(in crate::cli) const REALMS: &str = "\
Lists the realms of the server. A realm is a database of its own: an address book, mail, conversations, \
tasks and reservations that other realms do not see.";

pub(in crate::cli) const REALMS_AFTER: &str = "\
Example:
  posthaste realms list";

pub(in crate::cli) const REALMS_LIST: &str = "\
Lists the realms with their agents, messages, the size of their databases, and the paths that stand for \
them. One of them is the default: the realm of requests that name none.";

pub(in crate::cli) const REALMS_LIST_AFTER: &str = "\
Examples:
  posthaste realms list
  posthaste realms list --json";

pub(in crate::cli) const TOKEN: &str = "\
Makes, lists and revokes access tokens, at the server that commands use \
(`posthaste context show` says which), or in the data directory if no server is running.";

pub(in crate::cli) const TOKEN_AFTER: &str = "\
Example:
  posthaste token create --role agent --name ann --expires 30d";

pub(in crate::cli) const TOKEN_CREATE: &str = "\
Makes a token and prints it. This is the only time it can be seen: the server keeps a hash of it.";

pub(in crate::cli) const TOKEN_CREATE_AFTER: &str = "\
Examples:
  posthaste token create --role agent --name ann
  posthaste token create --role admin --name ops --realm shop --expires 30d";

pub(in crate::cli) const TOKEN_LIST: &str = "\
Lists the tokens of a realm with their ids, roles, names and ends. The tokens themselves are not \
kept and cannot be shown.";

pub(in crate::cli) const TOKEN_LIST_AFTER: &str = "\
Example:
  posthaste token list --realm shop --json";

pub(in crate::cli) const TOKEN_REVOKE: &str = "\
Revokes a token at once: the next request that carries it is refused. The token is named by its id or the \
beginning of its id as `token list` shows it, or by --name, which means every valid token of that name; several need --yes.";

pub(in crate::cli) const TOKEN_REVOKE_AFTER: &str = "\
Example:
  posthaste token revoke --name ann --yes";

pub(in crate::cli) const DOCTOR: &str = "\
Checks a data directory: who holds it, file modes, free space, \
the integrity and version of the database, whether acknowledged mail is missing, the clock; and at a mail directory, if there is one: files that \
are no messages, and messages that a power cut left whole but undelivered under a sender's temporary \
name (`.msg.tmp`). Changes nothing, unless --restore is given: then those messages are delivered; or \
--accept-loss: then a realm that has lost acknowledged mail opens again with what is left. Exits \
with 6 if something is wrong.";

pub(in crate::cli) const DOCTOR_AFTER: &str = "\
Example:
  posthaste doctor --data /srv/mail
  posthaste doctor --mail-dir .chipset/state/mail --restore";

pub(in crate::cli) const BACKUP: &str = "\
Writes a realm, or with --all every realm of the data directory, into one file: the database as it is at one \
moment, and the attachments of its messages. It can be taken while the server is running. Each database is \
checked before the file is put in its place; if one is damaged, nothing is written, an earlier backup stays as it \
is, and the exit code is 6.

Not in it: posthaste.toml, mail directories and, unless --with-keys is given, the keys: admin.token, which the \
registration tokens of agents depend on, tokens that `connect` keeps for clients, keys of `posthaste airc` and tokens \
of other swarms. With --with-keys the file is a secret: its reader can act as the operator. The list of projects is \
kept by the default realm. The file is a tar archive (`tar tf FILE` lists it). With --url a running server sends it, \
without keys.";

pub(in crate::cli) const BACKUP_AFTER: &str = "\
Example:
  posthaste backup main.posthaste
  posthaste backup everything.posthaste --all --with-keys --force";

pub(in crate::cli) const RESTORE: &str = "\
Brings a realm, or with --all every realm, back from a file that `posthaste backup` wrote, with its attachments. \
Everything is checked before anything is put in its place. A realm that exists is replaced only with --force and while \
the server is stopped; beside a running server a realm can be made that it does not have (--as NAME gives it another \
name). Keys in the backup are put where the data directory has none, and replace others only with --force. The tokens \
of a realm come along and open it; --without-tokens leaves them out, as you should with a file from someone else. \
Backups of earlier versions (plain databases) are restored, too.";

pub(in crate::cli) const RESTORE_AFTER: &str = "\
Example:
  posthaste restore main.posthaste --force
  posthaste restore main.posthaste --as copy
  posthaste restore everything.posthaste --all --force";

pub(in crate::cli) const CONFIG: &str = "\
Shows every setting, its value and where it came from: a flag, an environment variable, the file or \
the default, in this order of precedence. Takes the flags of `serve` to show what they would do. \
Secrets are never shown. Exits with 2 if `serve` would refuse these settings. With --schema prints a JSON schema of \
posthaste.toml instead, for editors.";

pub(in crate::cli) const CONFIG_AFTER: &str = "\
Examples:
  POSTHASTE_LOG=json posthaste config --listen 127.0.0.1:0
  posthaste config --schema

posthaste.toml (in the data directory, or named with --config):
  listen = \"127.0.0.1:7678\"
  realm = \"main\"
  log_level = \"info,posthaste=debug\"
  allowed_origins = [\"https://app.example\"]";

pub(in crate::cli) const STATUS: &str = "\
Shows the running server's health, figures and limits. Exits with 3 if no server answers and \
with 6 if the server reports that it is unhealthy. The data directory's admin key is shown to no server but the \
one that has the directory locked.";

pub(in crate::cli) const STATUS_AFTER: &str = "\
Example:
  posthaste status --json";

pub(in crate::cli) const DEMO: &str = "\
Fills a realm with a small fleet of agents that plan, build, review, test and ship, each through \
a real door of the server. Uses the running server of the data directory, or starts one for as long as \
the demo lasts. The page is full within a few seconds and stays alive until Ctrl-C. Touches no realm but \
its own.";

pub(in crate::cli) const DEMO_AFTER: &str = "\
Examples:
  posthaste demo                             then open http://127.0.0.1:7678/r/demo/ui
  posthaste demo --data /tmp/try --rounds 4  fill the realm and stop";

pub(in crate::cli) const COMPLETIONS: &str = "\
Prints a script that teaches a shell to complete posthaste's commands and flags.";

pub(in crate::cli) const COMPLETIONS_AFTER: &str = "\
Examples:
  posthaste completions bash > ~/.local/share/bash-completion/completions/posthaste
  posthaste completions zsh > ~/.zfunc/_posthaste
  posthaste completions fish > ~/.config/fish/completions/posthaste.fish";

pub(in crate::cli) const MAN: &str = "\
Prints the manual page of posthaste or of one of its commands, in roff; with --out writes those of all commands.";

pub(in crate::cli) const MAN_AFTER: &str = "\
Examples:
  posthaste man > posthaste.1
  posthaste man token create | man -l -
  posthaste man --out ~/.local/share/man/man1";

pub(in crate::cli) const VERSION: &str = "\
Prints the version, as --version does.";

pub(in crate::cli) const VERSION_AFTER: &str = "\
Example:
  posthaste version --json";

pub(in crate::cli) const EXPORT: &str = "\
Writes everything in a realm as JSON lines, one row each, after a first line that says what it is. It shows \
one moment and can be taken while the server is running. `import` makes a realm of it with the same rows: messages, \
their ids and sequence numbers, agents, tokens and events. Not the same are the name of the event log (cursors and \
bookmarks of the old realm do not fit the new one) and the layout of the database file. Not in it are attachments \
(messages still name them) and keys: use `posthaste backup` to keep those.";

pub(in crate::cli) const EXPORT_AFTER: &str = "\
Examples:
  posthaste export main.jsonl
  posthaste export - | gzip > main.jsonl.gz";

pub(in crate::cli) const IMPORT: &str = "\
Makes a realm from what `export` wrote. A realm that exists is replaced only with --force and while the \
server is stopped; beside a running server a new realm can be made. A file that is cut off or damaged \
changes nothing. The tokens in it come along and open the realm; --without-tokens leaves them out, as you \
should with a file from someone else.";

pub(in crate::cli) const IMPORT_AFTER: &str = "\
Example:
  posthaste import main.jsonl --realm copy";
