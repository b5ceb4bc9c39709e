//! Help of the commands for agents, conversations, reservations and contacts.

pub(in crate::cli) const AGENTS: &str = "\
Lists the address book: every agent, its role and state, whether it is connected now, and the door it came by. \
Names of valid tokens that have not come or been written to yet are not listed, but mail to them waits.";

pub(in crate::cli) const AGENTS_AFTER: &str = "\
Example:
  posthaste agents --json";

pub(in crate::cli) const AGENT: &str = "\
Shows or removes one agent of the address book.";

pub(in crate::cli) const AGENT_AFTER: &str = "\
Examples:
  posthaste agent show ann
  posthaste agent remove ann";

pub(in crate::cli) const AGENT_SHOW: &str = "\
Shows an agent's entry, whether it is connected and by which door, when it was last seen, and how many of its \
messages are unread and not delivered yet.";

pub(in crate::cli) const AGENT_SHOW_AFTER: &str = "\
Example:
  posthaste agent show ann --json";

pub(in crate::cli) const AGENT_REMOVE: &str = "\
Takes an agent out of the address book: messages to it are refused from then on, and its name is free. Messages \
that it sent or got stay in the event log. An agent that is connected is removed with --force only. While a valid \
token carries its name, the next message to it opens its mailbox again. Takes an administrator's token.";

pub(in crate::cli) const AGENT_REMOVE_AFTER: &str = "\
Examples:
  posthaste agent remove ann
  posthaste agent remove ann --force";

pub(in crate::cli) const REGISTER: &str = "\
Enters an agent into the address book, so that others can write to it and its mail waits. An entry that is there \
already keeps its mail and gets the role and the display name that are given. An administrator enters any name; \
the bearer of another token enters the name on its token, or further names of its own.";

pub(in crate::cli) const REGISTER_AFTER: &str = "\
Examples:
  posthaste register ann
  posthaste register ann --role reviewer
  posthaste register --token \"$TOKEN\"";

pub(in crate::cli) const CONVERSATIONS: &str = "\
Lists the conversations that the caller may see, the latest first.";

pub(in crate::cli) const CONVERSATIONS_AFTER: &str = "\
Example:
  posthaste conversations --agent ann --active";

pub(in crate::cli) const RESERVE: &str = "\
Reserves path patterns for an agent. Reservations are advisory: overlaps with others are listed and both \
sides are told. Exits with 0 if nothing overlaps, with 6 if something does; the reservation stands. It \
lasts 30 days at most.";

pub(in crate::cli) const RESERVE_AFTER: &str = "\
Example:
  posthaste reserve 'src/**/*.rs' --agent ann --ttl 30m --reason 'renaming'";

pub(in crate::cli) const RELEASE: &str = "\
Gives reservations back before their time.";

pub(in crate::cli) const RELEASE_AFTER: &str = "\
Examples:
  posthaste release 17 --agent ann
  posthaste release --agent ann";

pub(in crate::cli) const RESERVATIONS: &str = "\
Lists reservations with their holders.";

pub(in crate::cli) const RESERVATIONS_AFTER: &str = "\
Example:
  posthaste reservations --scope project";

pub(in crate::cli) const CONTACTS: &str = "\
Lists an agent's contacts: the agents that it may write to or has asked, and those that may write to it or have asked. The inner \
commands ask, accept, block and end.";

pub(in crate::cli) const CONTACTS_AFTER: &str = "\
Examples:
  posthaste contacts --agent ann
  posthaste contacts accept bob --agent ann";

pub(in crate::cli) const CONTACTS_ASK: &str = "\
Asks an agent to accept your messages. It answers when it likes.";

pub(in crate::cli) const CONTACTS_ASK_AFTER: &str = "\
Example:
  posthaste contacts ask bob --agent ann --reason 'the release'";

pub(in crate::cli) const CONTACTS_ACCEPT: &str = "\
Accepts an agent's messages from now on; and it accepts yours.";

pub(in crate::cli) const CONTACTS_ACCEPT_AFTER: &str = "\
Example:
  posthaste contacts accept bob --agent ann";

pub(in crate::cli) const CONTACTS_BLOCK: &str = "\
Accepts no more messages from an agent. It is not told.";

pub(in crate::cli) const CONTACTS_BLOCK_AFTER: &str = "\
Example:
  posthaste contacts block bob --agent ann";

pub(in crate::cli) const CONTACTS_END: &str = "\
Ends the contact of two agents, in both directions.";

pub(in crate::cli) const CONTACTS_END_AFTER: &str = "\
Example:
  posthaste contacts end bob --agent ann";

pub(in crate::cli) const WHOAMI: &str = "\
Shows the name and role that the server knows you by, the realm, the server, and how it was chosen.";

pub(in crate::cli) const WHOAMI_AFTER: &str = "\
Example:
  posthaste whoami --url http://127.0.0.1:7678 --token \"$TOKEN\"";
