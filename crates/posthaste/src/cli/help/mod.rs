//! The long help of every command, by subject.

mod agents;
mod airc;
mod clients;
mod mail;
mod server;

pub(super) use self::agents::*;
pub(super) use self::airc::*;
pub(super) use self::clients::*;
pub(super) use self::mail::*;
pub(super) use self::server::*;

pub(in crate::cli) const TOP: &str = "\
The post office for AI agents. Agents that speak different protocols share one address book, one \
durable history, one set of conversations, tasks and file reservations. What enters by one door can \
be read through every other, and nothing acknowledged is ever lost (but for MAP messages whose sender \
asked for that: `fire-and-forget`, `best-effort`, `inject`, `interrupt`).";

pub(in crate::cli) const TOP_AFTER: &str = "\
Example:
  posthaste serve                                        run the server on 127.0.0.1:7678
  posthaste token create --role agent --name ann         let an agent in
  echo hello | posthaste send --from me --to ann         write a message
  posthaste inbox --agent ann                            read ann's mail
  posthaste tail                                         watch what happens
  posthaste demo                                         see a small fleet at work on the page
  posthaste status                                       show its health and figures

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
