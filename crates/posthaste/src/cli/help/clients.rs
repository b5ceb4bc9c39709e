//! Help of the commands that say which server clients, directories and repositories use.

pub(in crate::cli) const CONNECT: &str = "\
Prints the configuration that a coding agent's client needs to reach the server; with --write merges it \
into the client's file and keeps a copy of what was there. The configuration never holds a token, so that \
a team can commit it. For the server of this machine the client starts `posthaste mcp`, which keeps a \
token for each client and directory in the data directory. For a server that is named (--url, --context, \
POSTHASTE_URL) the client connects over HTTP and shows the token in POSTHASTE_TOKEN; how to set it is \
printed. Agents that the client registers belong to its token: it may act for them and for no others.

The work tree around this directory (or the directory itself) is claimed for the realm, with --write: \
sessions in it, and below it, share the realm's address book. `posthaste projects` shows and changes that.";

pub(in crate::cli) const CONNECT_AFTER: &str = "\
Examples:
  posthaste connect claude-code --write
  posthaste connect codex
  posthaste connect vscode --write --url https://mail.example.org";

pub(in crate::cli) const CONTEXT: &str = "\
Keeps servers by name: an address, and with it a token and a realm, in a private file of yours \
(~/.config/posthaste/contexts.toml). Every command that talks to a server goes by the same order: --url or \
--context, then POSTHASTE_URL or POSTHASTE_CONTEXT, then the context that was chosen with `use`, then the \
running server of the data directory, then the data directory itself. --data or POSTHASTE_DATA mean the \
data directory, whatever context was chosen. A context's token is shown to that context's server only.";

pub(in crate::cli) const CONTEXT_AFTER: &str = "\
Examples:
  posthaste context add prod https://mail.example.org --token-file token.txt
  posthaste context use prod
  posthaste --context prod inbox --agent ann";

pub(in crate::cli) const CONTEXT_ADD: &str = "\
Keeps a server under a name. The token comes from --token-file, or from standard input if that is not a \
terminal; without one, commands show POSTHASTE_TOKEN. No server is asked.";

pub(in crate::cli) const CONTEXT_ADD_AFTER: &str = "\
Examples:
  posthaste context add prod https://mail.example.org --token-file token.txt
  posthaste token create --role user --name me | posthaste context add local http://127.0.0.1:7678
  posthaste context add shop https://mail.example.org --realm shop --token-file token.txt";

pub(in crate::cli) const CONTEXT_LIST: &str = "\
Lists the servers that are kept, with the first characters of their tokens. The one that was chosen with \
`use` is marked.";

pub(in crate::cli) const CONTEXT_LIST_AFTER: &str = "\
Example:
  posthaste context list";

pub(in crate::cli) const CONTEXT_USE: &str = "\
Chooses the server that commands talk to from now on, unless a flag or the environment names another.";

pub(in crate::cli) const CONTEXT_USE_AFTER: &str = "\
Examples:
  posthaste context use prod
  posthaste context use --none";

pub(in crate::cli) const CONTEXT_SHOW: &str = "\
Shows which server commands use, with which token, and where each was named; or shows \
one context. No server is asked, and tokens are not shown in full.";

pub(in crate::cli) const CONTEXT_SHOW_AFTER: &str = "\
Examples:
  posthaste context show
  posthaste context show prod";

pub(in crate::cli) const CONTEXT_REMOVE: &str = "\
Forgets a server and its token. The token itself stays valid at the server; `posthaste token revoke` ends \
it.";

pub(in crate::cli) const CONTEXT_REMOVE_AFTER: &str = "\
Example:
  posthaste context remove prod";

pub(in crate::cli) const PROJECTS: &str = "\
Says which realm the sessions of a directory share. A path, or the address of a repository, stands for a \
realm; paths below it mean the same, unless they are claimed themselves. `posthaste connect` claims the \
work tree it is run in for the server's realm. A path that no operator claimed gets a realm of its own, \
where other agents are not. Works with and without a running server on the same data directory.";

pub(in crate::cli) const PROJECTS_AFTER: &str = "\
Examples:
  posthaste projects list
  posthaste projects move . main
  posthaste projects release ./examples";

pub(in crate::cli) const PROJECTS_LIST: &str = "\
Lists the paths and addresses that stand for realms: the realm of each, how many agents and messages are \
in it, since when the path stands for it, and who said so (`serve`: the server at its start).";

pub(in crate::cli) const PROJECTS_LIST_AFTER: &str = "\
Examples:
  posthaste projects list
  posthaste projects list --json";

pub(in crate::cli) const PROJECTS_MOVE: &str = "\
Sends the new sessions of a path (and of the paths below it) to another realm, at once, in a running \
server too: the next call of an agent that names the path goes there. Agents register there anew. Mail \
and reservations stay in the realm they are in, which can be read as before. The realm must exist.";

pub(in crate::cli) const PROJECTS_MOVE_AFTER: &str = "\
Examples:
  posthaste projects move . main
  posthaste projects move git@example.org:team/app.git main";

pub(in crate::cli) const PROJECTS_RELEASE: &str = "\
Takes a claim back. New sessions in the path belong to the nearest claimed path above it; without one the \
path has a realm of its own. Mail stays in the realm it is in.";

pub(in crate::cli) const PROJECTS_RELEASE_AFTER: &str = "\
Example:
  posthaste projects release ./examples";

pub(in crate::cli) const GUARD: &str = "\
Hooks in a git repository that warn of commits and pushes touching paths which another agent has \
reserved. Hooks that are there already are kept and run first. When the server is down, work goes on.";

pub(in crate::cli) const GUARD_AFTER: &str = "\
Example:
  posthaste guard install --block";

pub(in crate::cli) const GUARD_INSTALL: &str = "\
Puts a pre-commit and a pre-push hook into the repository, where git looks for them: worktrees and \
core.hooksPath included; one that leads out of the repository needs --outside. The committing agent is POSTHASTE_AGENT (or AGENT_NAME) in the environment; \
without it, the only agent that works in this directory. If several do and one of them holds a path, \
that path warns and does not stop. POSTHASTE_BYPASS=1 lets one command through.";

pub(in crate::cli) const GUARD_INSTALL_AFTER: &str = "\
Examples:
  posthaste guard install
  posthaste guard install ~/src/app --block --agent BlueLake";

pub(in crate::cli) const GUARD_UNINSTALL: &str = "\
Takes the guard's hooks out and puts back those that were there before.";

pub(in crate::cli) const GUARD_UNINSTALL_AFTER: &str = "\
Example:
  posthaste guard uninstall ~/src/app";

pub(in crate::cli) const GUARD_CHECK: &str = "\
Looks at what is about to be committed or pushed and says on standard error what others hold of it. \
Both names of a renamed file count, and deleted files do. Silent when nothing is held; if the server \
cannot be asked, nothing is said and nothing stopped.";

pub(in crate::cli) const GUARD_CHECK_AFTER: &str = "\
Example:
  posthaste guard check --agent BlueLake --verbose";
