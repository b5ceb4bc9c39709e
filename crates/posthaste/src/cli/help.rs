//! The long help of every command. One place, so that it reads as one text.

pub(super) const TOP: &str = "\
The post office for AI agents. Agents that speak different protocols share one address book, one \
durable history, one set of conversations, tasks and file reservations. What enters by one door can \
be read through every other, and nothing acknowledged is ever lost.";

pub(super) const TOP_AFTER: &str = "\
Example:
  posthaste serve                                        open the office on 127.0.0.1:7678
  posthaste token create --role agent --name ann         let an agent in
  posthaste demo                                         see a small fleet at work on the page
  posthaste status                                       see how it is

Exit codes:
  0  done
  1  failed
  2  wrong usage or configuration
  3  the office cannot be reached
  4  refused: the token is missing, wrong or not allowed to do this
  5  another process holds the data directory
  6  a health check found a problem
  130  ended by Ctrl-C, in good order";

pub(super) const SERVE: &str = "\
Opens the office: one process that answers for the mail in the data directory until SIGTERM or \
SIGINT. Once every door listens, `ready http://ADDR:PORT` is printed on standard output; logs go to \
standard error.

Only this machine can reach the office unless you say otherwise: another address needs \
--allow-remote and TLS, or --allow-remote=plaintext if you accept that everyone on the way can read \
tokens and mail. An office without authentication is never opened to other machines.";

pub(super) const SERVE_AFTER: &str = "\
Examples:
  posthaste serve
  posthaste serve --data /srv/mail --listen 127.0.0.1:0
  posthaste serve --listen 0.0.0.0:443 --allow-remote --tls-cert cert.pem --tls-key key.pem";

pub(super) const MAP: &str = "\
Speaks MAP (the Multi-Agent Protocol) on standard input and output, one JSON value per line, for agents \
that are started as subprocesses. If an office is running on the data directory, the lines go there; if \
not, this process opens the mail itself for as long as its input lasts.";

pub(super) const MAP_AFTER: &str = "\
Example:
  posthaste map --realm main
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"map/agents/list\"}' | posthaste map";

pub(super) const TOKEN: &str = "\
Makes, lists and revokes the tokens by which callers show who they are. Works with and without a \
running office on the same data directory.";

pub(super) const TOKEN_AFTER: &str = "\
Example:
  posthaste token create --role agent --name ann --expires 30d";

pub(super) const TOKEN_CREATE: &str = "\
Makes a token and prints it. This is the only time it can be seen: the office keeps a hash of it.";

pub(super) const TOKEN_CREATE_AFTER: &str = "\
Examples:
  posthaste token create --role agent --name ann
  posthaste token create --role admin --name ops --realm shop --expires 30d";

pub(super) const TOKEN_LIST: &str = "\
Lists the tokens of a realm with their ids, roles, names and ends. The tokens themselves are not \
kept and cannot be shown.";

pub(super) const TOKEN_LIST_AFTER: &str = "\
Example:
  posthaste token list --realm shop --json";

pub(super) const TOKEN_REVOKE: &str = "\
Makes a token useless at once: the next request that carries it is refused.";

pub(super) const TOKEN_REVOKE_AFTER: &str = "\
Example:
  posthaste token revoke 4f2a";

pub(super) const DOCTOR: &str = "\
Looks at everything that can be wrong with a data directory: who holds it, file modes, free space, \
the integrity and version of the books, the clock. Changes nothing. Exits with 6 if something is wrong.";

pub(super) const DOCTOR_AFTER: &str = "\
Example:
  posthaste doctor --data /srv/mail";

pub(super) const BACKUP: &str = "\
Writes a complete and consistent copy of a realm into one file, also while the office is running.";

pub(super) const BACKUP_AFTER: &str = "\
Example:
  posthaste backup /backup/main.posthaste --realm main";

pub(super) const RESTORE: &str = "\
Brings a realm back from a file that `posthaste backup` wrote. The office must not be running, and a \
realm that exists is replaced only with --force.";

pub(super) const RESTORE_AFTER: &str = "\
Example:
  posthaste restore /backup/main.posthaste --realm main --force";

pub(super) const CONFIG: &str = "\
Shows every setting, its value and where it came from: a flag, an environment variable, the file or \
the default, in this order of precedence. Takes the flags of `serve` to show what they would do. \
Secrets are never shown. Exits with 2 if `serve` would refuse these settings.";

pub(super) const CONFIG_AFTER: &str = "\
Example:
  POSTHASTE_LOG=json posthaste config --listen 127.0.0.1:0

posthaste.toml (in the data directory, or named with --config):
  listen = \"127.0.0.1:7678\"
  realm = \"main\"
  log_level = \"info,posthaste=debug\"
  allowed_origins = [\"https://app.example\"]";

pub(super) const STATUS: &str = "\
Asks the running office for its health, its numbers and its limits. Exits with 3 if nobody answers and \
with 6 if the office says that it is unwell.";

pub(super) const STATUS_AFTER: &str = "\
Example:
  posthaste status --json";

pub(super) const DEMO: &str = "\
Fills a realm with a believable small fleet: agents that plan, build, review, test and ship, each through \
a real door of the office. Plays at the running office of the data directory, or opens one for as long as \
the demo lasts. The page is full within a few seconds and stays alive until Ctrl-C. Touches no realm but \
its own.";

pub(super) const DEMO_AFTER: &str = "\
Examples:
  posthaste demo                             then open http://127.0.0.1:7678/r/demo/ui
  posthaste demo --data /tmp/try --rounds 4  fill the realm and stop";

pub(super) const BENCH: &str = "\
Opens an office of its own in a temporary directory, sends mail through it and reports messages per \
second and the time each took, with every answer durable on this machine's disk, beside a loop that \
writes the same rows with SQLite alone. Touches no real mail.";

pub(super) const BENCH_AFTER: &str = "\
Example:
  posthaste bench --in-flight 1,64 --seconds 10 --agents 32";

pub(super) const COMPLETIONS: &str = "\
Prints a script that teaches a shell to complete posthaste's commands and flags.";

pub(super) const COMPLETIONS_AFTER: &str = "\
Examples:
  posthaste completions bash > ~/.local/share/bash-completion/completions/posthaste
  posthaste completions zsh > ~/.zfunc/_posthaste
  posthaste completions fish > ~/.config/fish/completions/posthaste.fish";

pub(super) const MAN: &str = "\
Prints the manual page of posthaste or of one of its commands, in roff.";

pub(super) const MAN_AFTER: &str = "\
Examples:
  posthaste man > posthaste.1
  posthaste man token create | man -l -";
