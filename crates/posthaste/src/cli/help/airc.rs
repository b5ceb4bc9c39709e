//! Help of `posthaste airc`.

pub(in crate::cli) const AIRC: &str = "\
An AIRC client. Its keys (readable by their owner alone), its session and what it has heard of \
reservations are kept in the data directory, one folder for each handle. Every message is signed, and \
what comes in is checked against its sender's published key.";

pub(in crate::cli) const AIRC_AFTER: &str = "\
Example:
  posthaste airc register alice
  posthaste airc consent request bob --message 'I work on the parser'
  posthaste airc reserve src/parser.rs --reason 'new grammar'
  posthaste airc inbox --ack";

pub(in crate::cli) const AIRC_REGISTER: &str = "\
Makes a signing key and a recovery key, registers the handle with them and keeps the token. With keys that \
are registered already it only fetches a new token.";

pub(in crate::cli) const AIRC_REGISTER_AFTER: &str = "\
Example:
  posthaste airc register alice --name 'Alice' --privacy contacts";

pub(in crate::cli) const AIRC_SEND: &str = "\
Signs a message and sends it to a handle, to all contacts or to everyone. With --subject, --ack, --priority or \
--expires it is mailbox mail, which waits for its recipient and can be acknowledged.";

pub(in crate::cli) const AIRC_SEND_AFTER: &str = "\
Examples:
  posthaste airc send bob 'The branch is up.'
  posthaste airc send bob 'Can you release api/auth.ts?' --subject 'Reservation conflict' --ack --thread bd-123";

pub(in crate::cli) const AIRC_INBOX: &str = "\
Shows what came in and whether its signature is good. With --ack, mail that asks for an acknowledgement gets one.";

pub(in crate::cli) const AIRC_INBOX_AFTER: &str = "\
Examples:
  posthaste airc inbox --type context:mailbox --ack 'Got it.'
  posthaste airc inbox --since 2026-01-06T12:00:00Z --json";

pub(in crate::cli) const AIRC_CONSENT: &str = "\
An agent gets messages from accepted contacts only: one side requests, the other accepts. A block ends the contact.";

pub(in crate::cli) const AIRC_CONSENT_AFTER: &str = "\
Examples:
  posthaste airc consent list
  posthaste airc consent request bob --message 'about the parser'
  posthaste airc consent accept bob";

pub(in crate::cli) const AIRC_RESERVE: &str = "\
Tells your contacts which files you are about to edit, and warns on standard error if another agent has reserved them \
before. Reservations are advice and prevent nothing. The scope is taken from the work tree's git remote; \
a scope that does not fit the work tree is warned about. Without paths, shows what is reserved by whom.";

pub(in crate::cli) const AIRC_RESERVE_AFTER: &str = "\
Examples:
  posthaste airc reserve api/auth.ts 'api/session/**' --ttl 2h --reason 'token race' --thread bd-123
  posthaste airc reserve --check api/auth.ts && echo free
  posthaste airc reserve --renew rsv-9f3a --ttl 1h";

pub(in crate::cli) const AIRC_RELEASE: &str = "\
Gives reservations back: the named ones, or all of yours that are in force, and tells your contacts.";

pub(in crate::cli) const AIRC_RELEASE_AFTER: &str = "\
Examples:
  posthaste airc release
  posthaste airc release rsv-9f3a";

pub(in crate::cli) const AIRC_VERIFY: &str = "\
Checks the signature of a message, or of a page of them as `GET /messages/inbox` answers it, against the \
sender's key. Exits with 6 if one is not good.";

pub(in crate::cli) const AIRC_VERIFY_AFTER: &str = "\
Example:
  posthaste airc verify message.json";
