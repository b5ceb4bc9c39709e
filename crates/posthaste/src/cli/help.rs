//! The long help of every command. One place, so that it reads as one text.

pub(super) const TOP: &str = "\
The post office for AI agents. Agents that speak different protocols share one address book, one \
durable history, one set of conversations, tasks and file reservations. What enters by one door can \
be read through every other, and nothing acknowledged is ever lost (but for MAP messages whose sender \
asked for that: `fire-and-forget`, `best-effort`, `inject`, `interrupt`).";

pub(super) const TOP_AFTER: &str = "\
Example:
  posthaste serve                                        run the server on 127.0.0.1:7678
  posthaste token create --role agent --name ann         let an agent in
  echo hello | posthaste send --from me --to ann         write a letter
  posthaste inbox --agent ann                            read ann's mail
  posthaste tail                                         watch what happens
  posthaste demo                                         see a small fleet at work on the page
  posthaste status                                       see how it is

Exit codes:
  0  done; `serve` and `demo` also when Ctrl-C or SIGTERM stopped them gracefully
  1  failed
  2  wrong usage or configuration
  3  the server cannot be reached
  4  the token is missing or wrong, or does not allow this
  5  another process holds the data directory
  6  a check found a problem: health, a signature, an overlap of reservations
  7  there is no space left on the disk
  8  not found: no such agent, message, token, reservation, conversation or realm
  9  refused by a rule: too large, taken, used before, no consent, over a limit
  130  ended by Ctrl-C

Lists in JSON are an object with a named array and `next`, which is null on the last page; --next goes on from there.
`tail` and `inbox --watch` print one JSON object a line.";

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
  posthaste serve --mail-dir .chipset/state/mail
  posthaste serve --swarm examples/swarm/builtin.json
  posthaste serve --listen 0.0.0.0:443 --allow-remote --tls-cert cert.pem --tls-key key.pem";

pub(super) const MAP: &str = "\
Speaks MAP (the Multi-Agent Protocol) on standard input and output, one JSON value per line, for agents \
that are started as subprocesses. The lines go to the server that is named or runs on the data directory; \
if there is none, this process opens the data directory itself for as long as its input lasts.";

pub(super) const MAP_AFTER: &str = "\
Example:
  posthaste map --realm main
  echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"map/agents/list\"}' | posthaste map";

pub(super) const MCP: &str = "\
Speaks MCP (the Model Context Protocol) on standard input and output, for clients that start their \
servers themselves. Everything is relayed to the server that is named or runs on the data directory; if \
there is none, this process starts one on a free port of this machine for as long as its input lasts. Any \
number of these can run on one data directory: the first has the server, and when it ends another takes \
over.

Without a token in POSTHASTE_TOKEN or --token-file, the client acts with a token of its own for the \
directory that it was started in; it is made at the first start and kept in the data directory. It acts \
for the agents of that token and for no others. To act as the operator, name the admin token yourself.";

pub(super) const MCP_AFTER: &str = "\
Examples:
  posthaste mcp
  posthaste mcp --tools core
  posthaste mcp --token-file ~/.local/share/posthaste/admin.token
  posthaste mcp --context prod";

pub(super) const CONNECT: &str = "\
Prints the configuration that a coding agent's client needs to reach the server; with --write merges it \
into the client's file and keeps a copy of what was there. The configuration never holds a token, so that \
a team can commit it. For the server of this machine the client starts `posthaste mcp`, which keeps a \
token for each client and directory in the data directory. For a server that is named (--url, --context, \
POSTHASTE_URL) the client connects over HTTP and shows the token in POSTHASTE_TOKEN; how to set it is \
printed. Agents that the client registers belong to its token: it may act for them and for no others.

The work tree around this directory (or the directory itself) is claimed for the realm, with --write: \
sessions in it, and below it, share the realm's address book. `posthaste projects` shows and changes that.";

pub(super) const CONNECT_AFTER: &str = "\
Examples:
  posthaste connect claude-code --write
  posthaste connect codex
  posthaste connect vscode --write --url https://mail.example.org";

pub(super) const API: &str = "\
Prints the reference of the methods that posthaste has beside the protocols it speaks (x-posthaste/...): names, \
params and results. No server is needed.";

pub(super) const API_AFTER: &str = "\
Examples:
  posthaste api schema
  posthaste api markdown";

pub(super) const API_SCHEMA: &str = "\
Prints a JSON schema (draft 2020-12) with one member per method, which has the members `params` and `result`.";

pub(super) const API_SCHEMA_AFTER: &str = "\
Example:
  posthaste api schema > schema.json";

pub(super) const API_MARKDOWN: &str = "\
Prints the reference of all methods in Markdown: docs/api.md is made this way.";

pub(super) const API_MARKDOWN_AFTER: &str = "\
Example:
  posthaste api markdown > api.md";

pub(super) const CONTEXT: &str = "\
Keeps servers by name: an address, and with it a token and a realm, in a private file of yours \
(~/.config/posthaste/contexts.toml). Every command that talks to a server goes by the same order: --url or \
--context, then POSTHASTE_URL or POSTHASTE_CONTEXT, then the context that was chosen with `use`, then the \
running server of the data directory, then the data directory itself. --data or POSTHASTE_DATA mean the \
data directory, whatever context was chosen. A context's token is shown to that context's server only.";

pub(super) const CONTEXT_AFTER: &str = "\
Examples:
  posthaste context add prod https://mail.example.org --token-file token.txt
  posthaste context use prod
  posthaste --context prod inbox --agent ann";

pub(super) const CONTEXT_ADD: &str = "\
Keeps a server under a name. The token comes from --token-file, or from standard input if that is not a \
terminal; without one, commands show POSTHASTE_TOKEN. No server is asked.";

pub(super) const CONTEXT_ADD_AFTER: &str = "\
Examples:
  posthaste context add prod https://mail.example.org --token-file token.txt
  posthaste token create --role user --name me | posthaste context add local http://127.0.0.1:7678
  posthaste context add shop https://mail.example.org --realm shop --token-file token.txt";

pub(super) const CONTEXT_LIST: &str = "\
Lists the servers that are kept, with the first letters of their tokens. The one that was chosen with \
`use` is marked.";

pub(super) const CONTEXT_LIST_AFTER: &str = "\
Example:
  posthaste context list";

pub(super) const CONTEXT_USE: &str = "\
Chooses the server that commands talk to from now on, unless a flag or the environment names another.";

pub(super) const CONTEXT_USE_AFTER: &str = "\
Examples:
  posthaste context use prod
  posthaste context use --none";

pub(super) const CONTEXT_SHOW: &str = "\
Says which server commands talk to as things stand, with which token, and where each was named; or shows \
one context. No server is asked, and tokens are not shown in full.";

pub(super) const CONTEXT_SHOW_AFTER: &str = "\
Examples:
  posthaste context show
  posthaste context show prod";

pub(super) const CONTEXT_REMOVE: &str = "\
Forgets a server and its token. The token itself stays valid at the server; `posthaste token revoke` ends \
it.";

pub(super) const CONTEXT_REMOVE_AFTER: &str = "\
Example:
  posthaste context remove prod";

pub(super) const PROJECTS: &str = "\
Says which realm the sessions of a directory share. A path, or the address of a repository, stands for a \
realm; paths below it mean the same, unless they are claimed themselves. `posthaste connect` claims the \
work tree it is run in for the server's realm. A path that no operator claimed gets a realm of its own, \
where other agents are not. Works with and without a running server on the same data directory.";

pub(super) const PROJECTS_AFTER: &str = "\
Examples:
  posthaste projects list
  posthaste projects move . main
  posthaste projects release ./examples";

pub(super) const PROJECTS_LIST: &str = "\
Lists the paths and addresses that stand for realms: the realm of each, how many agents and messages are \
in it, since when the path stands for it, and who said so (`serve`: the server at its start).";

pub(super) const PROJECTS_LIST_AFTER: &str = "\
Examples:
  posthaste projects list
  posthaste projects list --json";

pub(super) const PROJECTS_MOVE: &str = "\
Sends the new sessions of a path (and of the paths below it) to another realm, at once, in a running \
server too: the next call of an agent that names the path goes there. Agents register there anew. Mail \
and reservations stay in the realm they are in, which can be read as before. The realm must exist.";

pub(super) const PROJECTS_MOVE_AFTER: &str = "\
Examples:
  posthaste projects move . main
  posthaste projects move git@example.org:team/app.git main";

pub(super) const PROJECTS_RELEASE: &str = "\
Takes a claim back. New sessions in the path belong to the nearest claimed path above it; without one the \
path has a realm of its own. Mail stays in the realm it is in.";

pub(super) const PROJECTS_RELEASE_AFTER: &str = "\
Example:
  posthaste projects release ./examples";

pub(super) const REALMS: &str = "\
Lists the realms of the server. A realm is a database of its own: an address book, mail, conversations, \
tasks and reservations that other realms do not see.";

pub(super) const REALMS_AFTER: &str = "\
Example:
  posthaste realms list";

pub(super) const REALMS_LIST: &str = "\
Lists the realms with their agents, messages, the size of their databases, and the paths that stand for \
them. One of them is the default: the realm of requests that name none.";

pub(super) const REALMS_LIST_AFTER: &str = "\
Examples:
  posthaste realms list
  posthaste realms list --json";

pub(super) const GUARD: &str = "\
Hooks in a git repository that tell of commits and pushes touching paths which another agent has \
reserved. Hooks that are there already are kept and run first. When the office is down, work goes on.";

pub(super) const GUARD_AFTER: &str = "\
Example:
  posthaste guard install --block";

pub(super) const GUARD_INSTALL: &str = "\
Puts a pre-commit and a pre-push hook into the repository, where git looks for them: worktrees and \
core.hooksPath included; one that leads out of the repository needs --outside. The committing agent is POSTHASTE_AGENT (or AGENT_NAME) in the environment; \
without it, the only agent that works in this directory. If several do and one of them holds a path, \
that path warns and does not stop. POSTHASTE_BYPASS=1 lets one command through.";

pub(super) const GUARD_INSTALL_AFTER: &str = "\
Examples:
  posthaste guard install
  posthaste guard install ~/src/app --block --agent BlueLake";

pub(super) const GUARD_UNINSTALL: &str = "\
Takes the guard's hooks out and puts back those that were there before.";

pub(super) const GUARD_UNINSTALL_AFTER: &str = "\
Example:
  posthaste guard uninstall ~/src/app";

pub(super) const GUARD_CHECK: &str = "\
Looks at what is about to be committed or pushed and says on standard error what others hold of it. \
Both names of a renamed file count, and deleted files do. Silent when nothing is held; if the office \
cannot be asked, nothing is said and nothing stopped.";

pub(super) const GUARD_CHECK_AFTER: &str = "\
Example:
  posthaste guard check --agent BlueLake --verbose";

pub(super) const AIRC: &str = "\
An AIRC client. Its keys (readable by their owner alone), its session and what it has heard of \
reservations are kept in the data directory, one folder for each handle. Every message is signed, and \
what comes in is checked against its sender's published key.";

pub(super) const AIRC_AFTER: &str = "\
Example:
  posthaste airc register alice
  posthaste airc consent request bob --message 'I work on the parser'
  posthaste airc reserve src/parser.rs --reason 'new grammar'
  posthaste airc inbox --ack";

pub(super) const AIRC_REGISTER: &str = "\
Makes a signing key and a recovery key, registers the handle with them and keeps the token. With keys that \
are registered already it only fetches a new token.";

pub(super) const AIRC_REGISTER_AFTER: &str = "\
Example:
  posthaste airc register alice --name 'Alice' --privacy contacts";

pub(super) const AIRC_SEND: &str = "\
Signs a message and sends it to a handle, to all contacts or to everyone. With --subject, --ack, --priority or \
--expires it is mailbox mail, which waits for its recipient and can be acknowledged.";

pub(super) const AIRC_SEND_AFTER: &str = "\
Examples:
  posthaste airc send bob 'The branch is up.'
  posthaste airc send bob 'Can you release api/auth.ts?' --subject 'Reservation conflict' --ack --thread bd-123";

pub(super) const AIRC_INBOX: &str = "\
Shows what came in and whether its signature is good. With --ack, mail that asks for an acknowledgement gets one.";

pub(super) const AIRC_INBOX_AFTER: &str = "\
Examples:
  posthaste airc inbox --type context:mailbox --ack 'Got it.'
  posthaste airc inbox --since 2026-01-06T12:00:00Z --json";

pub(super) const AIRC_CONSENT: &str = "\
Nobody gets messages from strangers: one asks, the other accepts. A block ends it, also for what was accepted.";

pub(super) const AIRC_CONSENT_AFTER: &str = "\
Examples:
  posthaste airc consent list
  posthaste airc consent request bob --message 'about the parser'
  posthaste airc consent accept bob";

pub(super) const AIRC_RESERVE: &str = "\
Tells your contacts which files you are about to edit, and warns on standard error if somebody else has said so \
before. Reservations are advice: nobody is kept from anything. The scope is taken from the work tree's git remote; \
a scope that does not fit the work tree is warned about. Without paths, shows what is reserved by whom.";

pub(super) const AIRC_RESERVE_AFTER: &str = "\
Examples:
  posthaste airc reserve api/auth.ts 'api/session/**' --ttl 2h --reason 'token race' --thread bd-123
  posthaste airc reserve --check api/auth.ts && echo free
  posthaste airc reserve --renew rsv-9f3a --ttl 1h";

pub(super) const AIRC_RELEASE: &str = "\
Gives reservations back: the named ones, or all of yours that are in force, and tells your contacts.";

pub(super) const AIRC_RELEASE_AFTER: &str = "\
Examples:
  posthaste airc release
  posthaste airc release rsv-9f3a";

pub(super) const AIRC_VERIFY: &str = "\
Checks the signature of a message, or of a page of them as `GET /messages/inbox` answers it, against the \
sender's key. Exits with 6 if one is not good.";

pub(super) const AIRC_VERIFY_AFTER: &str = "\
Example:
  posthaste airc verify message.json";

pub(super) const TOKEN: &str = "\
Makes, lists and revokes the tokens by which callers show who they are, at the server that is meant \
(`posthaste context show` says which), or in the data directory if no server is running.";

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
Makes a token useless at once: the next request that carries it is refused. The token is named by its id or the \
beginning of its id as `token list` shows it, or by --name, which means every valid token of that name; several need --yes.";

pub(super) const TOKEN_REVOKE_AFTER: &str = "\
Example:
  posthaste token revoke --name ann --yes";

pub(super) const DOCTOR: &str = "\
Looks at everything that can be wrong with a data directory: who holds it, file modes, free space, \
the integrity and version of the books, whether acknowledged mail is missing, the clock; and at a mail directory, if there is one: files that \
are no messages, and messages that a power cut left whole but undelivered under a sender's temporary \
name (`.msg.tmp`). Changes nothing, unless --restore is given: then those messages are delivered; or \
--accept-loss: then a realm that has lost acknowledged mail opens again with what is left. Exits \
with 6 if something is wrong.";

pub(super) const DOCTOR_AFTER: &str = "\
Example:
  posthaste doctor --data /srv/mail
  posthaste doctor --mail-dir .chipset/state/mail --restore";

pub(super) const BACKUP: &str = "\
Writes a realm, or with --all every realm of the data directory, into one file: the database as it is at one \
moment, and the attachments of its messages. It can be taken while the server is running. Each database is \
checked before the file is put in its place; if one is damaged, nothing is written, an earlier backup stays as it \
is, and the exit code is 6.

Not in it: posthaste.toml, mail directories and, unless --with-keys is given, the keys: admin.token, which the \
registration tokens of agents depend on, tokens that `connect` keeps for clients, keys of `posthaste airc` and tokens \
of other swarms. With --with-keys the file is a secret: its reader can act as the operator. The list of projects is \
kept by the default realm. The file is a tar archive (`tar tf FILE` lists it). With --url a running server sends it, \
without keys.";

pub(super) const BACKUP_AFTER: &str = "\
Example:
  posthaste backup main.posthaste
  posthaste backup everything.posthaste --all --with-keys --force";

pub(super) const RESTORE: &str = "\
Brings a realm, or with --all every realm, back from a file that `posthaste backup` wrote, with its attachments. \
Everything is checked before anything is put in its place. A realm that exists is replaced only with --force and while \
the server is stopped; beside a running server a realm can be made that it does not have (--as NAME gives it another \
name). Keys in the backup are put where the data directory has none, and replace others only with --force. The tokens \
of a realm come along and open it; --without-tokens leaves them out, as you should with a file from someone else. \
Backups of earlier versions (plain databases) are restored, too.";

pub(super) const RESTORE_AFTER: &str = "\
Example:
  posthaste restore main.posthaste --force
  posthaste restore main.posthaste --as copy
  posthaste restore everything.posthaste --all --force";

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
Asks the running server for its health, its numbers and its limits. Exits with 3 if no server answers and \
with 6 if the server says that it is unwell. The data directory's admin key is shown to no server but the \
one that has the directory locked.";

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

pub(super) const COMPLETIONS: &str = "\
Prints a script that teaches a shell to complete posthaste's commands and flags.";

pub(super) const COMPLETIONS_AFTER: &str = "\
Examples:
  posthaste completions bash > ~/.local/share/bash-completion/completions/posthaste
  posthaste completions zsh > ~/.zfunc/_posthaste
  posthaste completions fish > ~/.config/fish/completions/posthaste.fish";

pub(super) const MAN: &str = "\
Prints the manual page of posthaste or of one of its commands, in roff; with --out writes those of all commands.";

pub(super) const MAN_AFTER: &str = "\
Examples:
  posthaste man > posthaste.1
  posthaste man token create | man -l -
  posthaste man --out ~/.local/share/man/man1";

pub(super) const VERSION: &str = "\
Prints the version, as --version does.";

pub(super) const VERSION_AFTER: &str = "\
Example:
  posthaste version --json";

pub(super) const SEND: &str = "\
Sends a letter, through the office or, with --mail-dir, as a file that any agent can read. Exit code 0 \
means that the letter is durable and addressed to somebody real; the recipients are listed. The text \
comes from --body, --body-file, standard input, or the editor that $EDITOR names; an empty one is refused \
unless --allow-empty is given. A sender that is not \
in the address book yet is entered when those who run the office send for it.

With --mail-dir DIR the letter becomes DIR/TO/TIMESTAMP-FROM.json: written under a private name, synced, \
given its own name without replacing anything, and the directory is synced. With --batch, every line of \
standard input is a JSON object with from, to, type, priority, subject, body and a ref of your own; a \
line with the ref is printed once the message is durable.

--attach FILE sends a file along, up to 20 of them and 1.5 MB together; recipients find them at every door.";

pub(super) const SEND_AFTER: &str = "\
Examples:
  echo 'The build is green.' | posthaste send --from ci --to ann --subject build
  posthaste send --to role:reviewer --subject 'Please look' --body-file change.diff --ack
  echo done | posthaste send --mail-dir .chipset/state/mail --from polecat-1 --to mayor --type completion_report
  posthaste send --from ci --to ann --body 'The report.' --attach report.pdf
  posthaste send --mail-dir mail --batch < messages.jsonl";

pub(super) const INBOX: &str = "\
Lists an agent's mail, the latest first: the number by which `read`, `ack` and `reply` take a message, when it \
came, from whom, what it is about, how pressing it is, and whether its sender wants an acknowledgement. Times are \
local (TZ is respected). Reading the list marks nothing. With --watch it stays and prints messages as they come; when the server is \
restarted, it waits for it and goes on. With --mail-dir it lists the files of a mailbox in the order of their names and \
says on standard error which files it could not make sense of.";

pub(super) const INBOX_AFTER: &str = "\
Examples:
  posthaste inbox --agent ann --unread
  posthaste inbox --agent ann --watch
  posthaste inbox --mail-dir .chipset/state/mail --agent polecat-1 --json";

pub(super) const READ: &str = "\
Shows a message with a line for each attachment, and marks it as read. It is named by its number (which agents at the \
MCP door use as well), by its id, or by the beginning of its id. --save DIR saves the attachments; a name that is taken \
there gets a number. In a mail directory only the flag in the file changes, no other byte.";

pub(super) const READ_AFTER: &str = "\
Examples:
  posthaste read 134 --agent ann
  posthaste read 134 --agent ann --save attachments
  posthaste read --mail-dir mail --agent polecat-1 2026-03-05T10-30-00Z-mayor.json";

pub(super) const ACK: &str = "\
Acknowledges a letter, which its sender is told. Reading is implied.";

pub(super) const ACK_AFTER: &str = "\
Example:
  posthaste ack 134 --agent ann --response 'on it'";

pub(super) const REPLY: &str = "\
Answers a letter: to its sender, under the same heading, in the same conversation.";

pub(super) const REPLY_AFTER: &str = "\
Example:
  echo 'Looks good.' | posthaste reply 134 --from ann";

pub(super) const THREAD: &str = "\
Shows the messages of a conversation in order. The id is the conversation's, or the number or id of any message in \
it; a message without a conversation is shown with those it answers and those that answer it.";

pub(super) const THREAD_AFTER: &str = "\
Example:
  posthaste thread release-42
  posthaste thread 134 --agent ann";

pub(super) const SEARCH: &str = "\
Finds messages and turns by their words, among those that the caller may see. All words must be there; AND, OR and NOT \
join words, `-word` excludes one, `\"a phrase\"` keeps words together, `begin*` matches beginnings, `subject:word` looks \
at the heading only, and `from:agent` keeps to one sender.";

pub(super) const SEARCH_AFTER: &str = "\
Example:
  posthaste search 'deploy AND fail*' --newest
  posthaste search 'build -green from:ci'
  posthaste search 'subject:\"release notes\"' --agent ann";

pub(super) const TAIL: &str = "\
Prints the events of the realm's log as they happen, or from any place of it, one line each. -n counts events that \
match the filters. When the server is restarted, it waits for it and goes on after the last event; --no-retry ends \
instead.";

pub(super) const TAIL_AFTER: &str = "\
Examples:
  posthaste tail
  posthaste tail --type 'message.*' --agent ann
  posthaste tail -n 20 --type 'reservation.*' --no-follow
  posthaste tail --after 0 --no-follow --json";

pub(super) const AGENTS: &str = "\
Lists the address book: every agent, its role and state, whether it is connected now, and the door it came by. \
Names of valid tokens that have not come or been written to yet are not listed, but mail to them waits.";

pub(super) const AGENTS_AFTER: &str = "\
Example:
  posthaste agents --json";

pub(super) const AGENT: &str = "\
Shows or removes one agent of the address book.";

pub(super) const AGENT_AFTER: &str = "\
Examples:
  posthaste agent show ann
  posthaste agent remove ann";

pub(super) const AGENT_SHOW: &str = "\
Shows an agent's entry, whether it is connected and by which door, when it was last seen, and how many of its \
messages are unread and not handed over yet.";

pub(super) const AGENT_SHOW_AFTER: &str = "\
Example:
  posthaste agent show ann --json";

pub(super) const AGENT_REMOVE: &str = "\
Takes an agent out of the address book: messages to it are refused from then on, and its name is free. Messages \
that it sent or got stay in the event log. An agent that is connected is removed with --force only. While a valid \
token carries its name, the next message to it opens its mailbox again. Takes an administrator's token.";

pub(super) const AGENT_REMOVE_AFTER: &str = "\
Examples:
  posthaste agent remove ann
  posthaste agent remove ann --force";

pub(super) const REGISTER: &str = "\
Enters an agent into the address book, so that others can write to it and its mail waits. An entry that is there \
already keeps its mail and gets the role and the display name that are given. An administrator enters any name; \
the bearer of another token enters the name on its token, or further names of its own.";

pub(super) const REGISTER_AFTER: &str = "\
Examples:
  posthaste register ann
  posthaste register ann --role reviewer
  posthaste register --token \"$TOKEN\"";

pub(super) const CONVERSATIONS: &str = "\
Lists the conversations that the one who asks may see, the latest first.";

pub(super) const CONVERSATIONS_AFTER: &str = "\
Example:
  posthaste conversations --agent ann --active";

pub(super) const RESERVE: &str = "\
Reserves path patterns for an agent. Reservations are advisory: overlaps with others are listed and both \
sides are told. Exits with 0 if nothing overlaps, with 6 if something does; the reservation stands. It \
lasts 30 days at most.";

pub(super) const RESERVE_AFTER: &str = "\
Example:
  posthaste reserve 'src/**/*.rs' --agent ann --ttl 30m --reason 'renaming'";

pub(super) const RELEASE: &str = "\
Gives reservations back before their time.";

pub(super) const RELEASE_AFTER: &str = "\
Examples:
  posthaste release 17 --agent ann
  posthaste release --agent ann";

pub(super) const RESERVATIONS: &str = "\
Lists who has reserved what.";

pub(super) const RESERVATIONS_AFTER: &str = "\
Example:
  posthaste reservations --scope project";

pub(super) const CONTACTS: &str = "\
Lists an agent's contacts: whom it may write to or asked to, and who may write to it or asked to. The inner \
commands ask, accept, block and end.";

pub(super) const CONTACTS_AFTER: &str = "\
Examples:
  posthaste contacts --agent ann
  posthaste contacts accept bob --agent ann";

pub(super) const CONTACTS_ASK: &str = "\
Asks somebody to take your letters. They answer when they like.";

pub(super) const CONTACTS_ASK_AFTER: &str = "\
Example:
  posthaste contacts ask bob --agent ann --reason 'the release'";

pub(super) const CONTACTS_ACCEPT: &str = "\
Takes somebody's letters from now on; and they take yours.";

pub(super) const CONTACTS_ACCEPT_AFTER: &str = "\
Example:
  posthaste contacts accept bob --agent ann";

pub(super) const CONTACTS_BLOCK: &str = "\
Takes no more letters from somebody. They are not told.";

pub(super) const CONTACTS_BLOCK_AFTER: &str = "\
Example:
  posthaste contacts block bob --agent ann";

pub(super) const CONTACTS_END: &str = "\
Forgets how two agents stand with each other, in both directions.";

pub(super) const CONTACTS_END_AFTER: &str = "\
Example:
  posthaste contacts end bob --agent ann";

pub(super) const WHOAMI: &str = "\
Says whom the server takes you for, in which realm, which server that is, and why that one.";

pub(super) const WHOAMI_AFTER: &str = "\
Example:
  posthaste whoami --url http://127.0.0.1:7678 --token \"$TOKEN\"";

pub(super) const EXPORT: &str = "\
Writes everything in a realm as JSON lines, one row each, after a first line that says what it is. It shows \
one moment and can be taken while the server is running. `import` makes a realm of it with the same rows: messages, \
their ids and sequence numbers, agents, tokens and events. Not the same are the name of the event log (cursors and \
bookmarks of the old realm do not fit the new one) and the layout of the database file. Not in it are attachments \
(messages still name them) and keys: use `posthaste backup` to keep those.";

pub(super) const EXPORT_AFTER: &str = "\
Examples:
  posthaste export main.jsonl
  posthaste export - | gzip > main.jsonl.gz";

pub(super) const IMPORT: &str = "\
Makes a realm from what `export` wrote. A realm that exists is replaced only with --force and while the \
office is closed; beside a running office a new realm can be made. A file that is cut off or damaged \
changes nothing. The tokens in it come along and open the realm; --without-tokens leaves them out, as you \
should with a file from someone else.";

pub(super) const IMPORT_AFTER: &str = "\
Example:
  posthaste import main.jsonl --realm copy";

pub(super) const ARCHIVE: &str = "\
Moves messages that are older than 24 hours by the stamp in their name into the mailbox's archive. Other \
files stay where they are.";

pub(super) const ARCHIVE_AFTER: &str = "\
Example:
  posthaste archive --mail-dir .chipset/state/mail --agent polecat-1";

pub(super) const NUDGE: &str = "\
Signals an agent of a mail directory: writes nudge/AGENT/latest.json beside it. The latest signal takes the \
place of the one before; the office, if one serves the directory, keeps them all in its history. Types: \
health_check, stall_warning, priority_change, abort, sync_request, nudge_response.";

pub(super) const NUDGE_AFTER: &str = "\
Example:
  posthaste nudge --mail-dir .chipset/state/mail --from witness --to polecat-1 --type health_check --requires-response";

pub(super) const HOOKS: &str = "\
Shows the hooks beside a mail directory: what each agent is to work on, whether it has begun, and whether \
mail about it waits unread. Hooks are never changed.";

pub(super) const HOOKS_AFTER: &str = "\
Example:
  posthaste hooks --mail-dir .chipset/state/mail";
