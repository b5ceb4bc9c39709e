//! Help of the commands for mail.

pub(in crate::cli) const SEND: &str = "\
Sends a message, through the server or, with --mail-dir, as a file that any agent can read. Exit code 0 \
means that the message is durable and its recipients exist; the recipients are listed. The text \
comes from --body, --body-file, standard input, or the editor that $EDITOR names; an empty one is refused \
unless --allow-empty is given. A sender that is not \
in the address book yet is entered when the operator sends for it.

With --mail-dir DIR the message becomes DIR/TO/TIMESTAMP-FROM.json: written under a private name, synced, \
given its own name without replacing anything, and the directory is synced. With --batch, every line of \
standard input is a JSON object with from, to, type, priority, subject, body and a ref of your own; a \
line with the ref is printed once the message is durable.

--attach FILE sends a file along, up to 20 of them and 1.5 MB together; recipients find them at every door.";

pub(in crate::cli) const SEND_AFTER: &str = "\
Examples:
  echo 'The build is green.' | posthaste send --from ci --to ann --subject build
  posthaste send --to role:reviewer --subject 'Please look' --body-file change.diff --ack
  echo done | posthaste send --mail-dir .chipset/state/mail --from polecat-1 --to mayor --type completion_report
  posthaste send --from ci --to ann --body 'The report.' --attach report.pdf
  posthaste send --mail-dir mail --batch < messages.jsonl";

pub(in crate::cli) const INBOX: &str = "\
Lists an agent's mail, the latest first: the number by which `read`, `ack` and `reply` take a message, when it \
came, from whom, what it is about, its priority, and whether its sender wants an acknowledgement. Times are \
local (TZ is respected). Reading the list marks nothing. With --watch it stays and prints messages as they come; when the server is \
restarted, it waits for it and goes on. With --mail-dir it lists the files of a mailbox in the order of their names and \
says on standard error which files it could not make sense of.";

pub(in crate::cli) const INBOX_AFTER: &str = "\
Examples:
  posthaste inbox --agent ann --unread
  posthaste inbox --agent ann --watch
  posthaste inbox --mail-dir .chipset/state/mail --agent polecat-1 --json";

pub(in crate::cli) const READ: &str = "\
Shows a message with a line for each attachment, and marks it as read. It is named by its number (which agents at the \
MCP door use as well), by its id, or by the beginning of its id. --save DIR saves the attachments; a name that is taken \
there gets a number. In a mail directory only the flag in the file changes, no other byte.";

pub(in crate::cli) const READ_AFTER: &str = "\
Examples:
  posthaste read 134 --agent ann
  posthaste read 134 --agent ann --save attachments
  posthaste read --mail-dir mail --agent polecat-1 2026-03-05T10-30-00Z-mayor.json";

pub(in crate::cli) const ACK: &str = "\
Acknowledges a message, which its sender is told. Reading is implied.";

pub(in crate::cli) const ACK_AFTER: &str = "\
Example:
  posthaste ack 134 --agent ann --response 'on it'";

pub(in crate::cli) const REPLY: &str = "\
Answers a message: to its sender, under the same heading, in the same conversation.";

pub(in crate::cli) const REPLY_AFTER: &str = "\
Example:
  echo 'Looks good.' | posthaste reply 134 --from ann";

pub(in crate::cli) const THREAD: &str = "\
Shows the messages of a conversation in order. The id is the conversation's, or the number or id of any message in \
it; a message without a conversation is shown with those it answers and those that answer it.";

pub(in crate::cli) const THREAD_AFTER: &str = "\
Example:
  posthaste thread release-42
  posthaste thread 134 --agent ann";

pub(in crate::cli) const SEARCH: &str = "\
Finds messages and turns by their words, among those that the caller may see. All words must be there; AND, OR and NOT \
join words, `-word` excludes one, `\"a phrase\"` keeps words together, `begin*` matches beginnings, `subject:word` looks \
at the heading only, and `from:agent` keeps to one sender.";

pub(in crate::cli) const SEARCH_AFTER: &str = "\
Example:
  posthaste search 'deploy AND fail*' --newest
  posthaste search 'build -green from:ci'
  posthaste search 'subject:\"release notes\"' --agent ann";

pub(in crate::cli) const TAIL: &str = "\
Prints the events of the realm's log as they happen, or from any place of it, one line each. -n counts events that \
match the filters. When the server is restarted, it waits for it and goes on after the last event; --no-retry ends \
instead.";

pub(in crate::cli) const TAIL_AFTER: &str = "\
Examples:
  posthaste tail
  posthaste tail --type 'message.*' --agent ann
  posthaste tail -n 20 --type 'reservation.*' --no-follow
  posthaste tail --after 0 --no-follow --json";

pub(in crate::cli) const ARCHIVE: &str = "\
Moves messages that are older than 24 hours by the stamp in their name into the mailbox's archive. Other \
files stay where they are.";

pub(in crate::cli) const ARCHIVE_AFTER: &str = "\
Example:
  posthaste archive --mail-dir .chipset/state/mail --agent polecat-1";

pub(in crate::cli) const NUDGE: &str = "\
Signals an agent of a mail directory: writes nudge/AGENT/latest.json beside it. The latest signal takes the \
place of the one before; the server, if one serves the directory, keeps them all in its event log. Types: \
health_check, stall_warning, priority_change, abort, sync_request, nudge_response.";

pub(in crate::cli) const NUDGE_AFTER: &str = "\
Example:
  posthaste nudge --mail-dir .chipset/state/mail --from witness --to polecat-1 --type health_check --requires-response";

pub(in crate::cli) const HOOKS: &str = "\
Shows the hooks beside a mail directory: what each agent is to work on, whether it has begun, and whether \
mail about it waits unread. Hooks are never changed.";

pub(in crate::cli) const HOOKS_AFTER: &str = "\
Example:
  posthaste hooks --mail-dir .chipset/state/mail";
