//! The story: a small fleet that builds, reviews, tests and ships a payments service. No protocol's words in here.

use std::collections::BTreeMap;

/// The door that an agent uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    Map,
    Own,
}

/// An agent of the fleet.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) door: Door,
    pub(super) is_person: bool,
    pub(super) role: &'static str,
    pub(super) parent: Option<&'static str>,
    pub(super) scopes: &'static [&'static str],
    pub(super) about: &'static str,
}

const fn part(name: &'static str, door: Door, role: &'static str, about: &'static str) -> Part {
    Part { name, door, is_person: false, role, parent: None, scopes: &[], about }
}

const CAST: [Part; 11] = [
    Part {
        scopes: &["payments"],
        ..part("conductor", Door::Map, "lead", "Splits work and keeps everyone moving")
    },
    Part {
        scopes: &["payments"],
        parent: Some("conductor"),
        ..part("planner", Door::Map, "planner", "Turns tickets into steps")
    },
    Part {
        scopes: &["payments"],
        parent: Some("conductor"),
        ..part("builder-north", Door::Map, "builder", "Writes code")
    },
    Part {
        scopes: &["payments"],
        parent: Some("conductor"),
        ..part("builder-south", Door::Map, "builder", "Writes code")
    },
    Part {
        scopes: &["quality"],
        parent: Some("conductor"),
        ..part("reviewer", Door::Map, "reviewer", "Reads every change")
    },
    Part {
        scopes: &["quality"],
        parent: Some("reviewer"),
        ..part("fuzzer", Door::Map, "tester", "Breaks things on purpose")
    },
    part("ci", Door::Own, "ci", ""),
    part("deployer", Door::Own, "deployer", ""),
    part("docs", Door::Own, "writer", ""),
    part("night-shift", Door::Own, "oncall", ""),
    Part { is_person: true, ..part("priya", Door::Own, "product", "") },
];

/// A message to send.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    pub(super) to: Vec<String>,
    pub(super) kind: &'static str,
    pub(super) subject: String,
    pub(super) body: String,
    pub(super) priority: u8,
    pub(super) ack: bool,
    pub(super) within: Option<String>,
    pub(super) expires_in: Option<i64>,
}

/// One step of the story. A `prop` is the story's own name for what the step makes.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Send(Draft),
    /// Reads what is unread, and acknowledges what asks for it.
    AnswerMail,
    Task {
        prop: String,
        title: String,
        about: String,
        assignee: String,
    },
    Move {
        task: String,
        status: &'static str,
        result: Option<String>,
    },
    Open {
        prop: String,
        subject: String,
        with: Vec<String>,
        first: String,
    },
    Say {
        prop: Option<String>,
        conversation: String,
        text: String,
        thread: Option<String>,
        only: Option<Vec<String>>,
    },
    Thread {
        prop: String,
        conversation: String,
        root: String,
        subject: String,
    },
    State(&'static str),
    Reserve {
        prop: String,
        scope: String,
        paths: Vec<String>,
        exclusive: bool,
        reason: String,
        minutes: i64,
    },
    Release {
        prop: String,
    },
}

impl Act {
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::Send(_) => "send a message",
            Self::AnswerMail => "answer its mail",
            Self::Task { .. } => "make a task",
            Self::Move { .. } => "move a task on",
            Self::Open { .. } => "open a conversation",
            Self::Say { .. } => "speak",
            Self::Thread { .. } => "open a thread",
            Self::State(_) => "say what it does",
            Self::Reserve { .. } => "reserve paths",
            Self::Release { .. } => "release paths",
        }
    }

    /// The story's name for what the act makes.
    pub(super) fn makes(&self) -> Option<&str> {
        match self {
            Self::Task { prop, .. }
            | Self::Open { prop, .. }
            | Self::Thread { prop, .. }
            | Self::Reserve { prop, .. } => Some(prop),
            Self::Say { prop, .. } => prop.as_deref(),
            _ => None,
        }
    }
}

/// The ids of what was made, by the story's names.
#[derive(Debug, Default)]
pub(super) struct Props(BTreeMap<String, String>);

impl Props {
    /// The server's id of a thing; where the server did not give one, the story's own name.
    pub(super) fn id(&self, prop: &str) -> String {
        self.0.get(prop).cloned().unwrap_or_else(|| prop.to_owned())
    }
}

/// Tickets: title, folder, what was found, the fix, and the outcome.
const TICKETS: [(&str, &str, &str, &str, &str); 10] = [
    (
        "Idempotency keys for refunds",
        "services/payments/refunds",
        "a retry within 40 ms is booked twice",
        "the key is claimed before the ledger is touched",
        "Refunds are exactly-once; p99 38 ms",
    ),
    (
        "Rotate webhook secrets",
        "services/webhooks",
        "old secrets verify for an hour too long",
        "two secrets overlap for ten minutes, then one",
        "Rotation runs nightly",
    ),
    (
        "Currency rounding in invoices",
        "services/invoices/src",
        "JPY is rounded to two decimals",
        "minor units come from the currency table",
        "All 154 currencies checked",
    ),
    (
        "Search index falls behind",
        "services/search",
        "the queue backs up at 800 messages a second",
        "batches of 200 with one commit each",
        "Lag under 2 s at 2 k/s",
    ),
    (
        "Rate limits per merchant",
        "gateway/limits",
        "one noisy merchant starves the rest",
        "a token bucket for each key, sized by plan",
        "Fair under the replayed spike",
    ),
    (
        "Audit log export",
        "services/audit/export",
        "the export holds a lock on the whole table",
        "it pages by key and holds nothing",
        "4 GB exported while live",
    ),
    (
        "Flaky checkout test",
        "web/checkout/tests",
        "it fails one time in thirty",
        "the clock is injected now",
        "300 runs without a failure",
    ),
    (
        "Card vault migration",
        "services/vault",
        "two hundred cards have no fingerprint",
        "they are backfilled on first read",
        "Migration done, nothing lost",
    ),
    (
        "Dispute evidence upload",
        "services/disputes",
        "files above 8 MB time out",
        "uploads are chunked and resumed",
        "20 MB in 3 s",
    ),
    (
        "Dark mode for receipts",
        "web/receipts",
        "the logo is black on black",
        "it follows currentColor",
        "Shipped to everyone",
    ),
];

/// After how many pieces of work a reservation is released at the latest.
const HELD_FOR: usize = 5;

const REPOSITORY: &str = "acme/payments";

pub(super) struct Story {
    props: Props,
    piece: usize,
    /// The number of the first ticket: a second story in the same realm goes on counting.
    first: usize,
}

impl Story {
    /// A story in a realm with this many events in its log.
    pub(super) fn new(events: usize) -> Self {
        // A piece of work makes more than eight events, so no number is used twice.
        Self { props: Props::default(), piece: 0, first: 412 + events / 8 }
    }

    pub(super) fn cast(&self) -> &'static [Part] {
        &CAST
    }

    pub(super) fn props(&self) -> &Props {
        &self.props
    }

    pub(super) fn keep(&mut self, prop: &str, id: String) {
        self.props.0.insert(prop.to_owned(), id);
    }

    /// The acts of the next piece of work. It never ends; tickets come around again under new numbers.
    pub(super) fn next_piece(&mut self) -> Vec<(&'static str, Act)> {
        let number = self.piece;
        self.piece += 1;
        let (title, place, found, mended, outcome) = TICKETS[number % TICKETS.len()];
        let builder = if number.is_multiple_of(2) { "builder-north" } else { "builder-south" };
        let other = if number.is_multiple_of(2) { "builder-south" } else { "builder-north" };
        let task = format!("PAY-{}", self.first + number);
        let conversation = format!("talk-{number}");
        let lock = format!("lock-{number}");
        let message = |to: &[&str], kind: &'static str, subject: String, body: String| Draft {
            to: to.iter().map(|to| (*to).to_owned()).collect(),
            kind,
            subject,
            body,
            priority: 3,
            within: Some(task.clone()),
            ..Draft::default()
        };
        let say = |text: String| Act::Say {
            prop: None,
            conversation: conversation.clone(),
            text,
            thread: None,
            only: None,
        };
        // Old reservations are released; releasing twice does no harm.
        let mut acts = Vec::new();
        if let Some(old) = number.checked_sub(HELD_FOR) {
            for (who, prop) in [("deployer", "lock"), ("docs", "doc"), ("ci", "ci")] {
                let prop = format!("{prop}-{old}");
                if self.props.0.contains_key(&prop) {
                    acts.push((who, Act::Release { prop }));
                }
            }
        }
        acts.extend([
            ("priya", Act::Send(Draft { within: None, ..message(&["conductor"], "request", format!("{title}?"), format!("Merchants ask about this every week: **{found}**.\n\nCan it be in this release?")) })),
            ("conductor", Act::Task { prop: task.clone(), title: title.to_owned(), about: format!("{found}. See `{place}`."), assignee: builder.to_owned() }),
            ("conductor", Act::Send(message(&[builder], "assign", format!("{task}: {title}"), format!("Please take this. It starts in `{place}`; planner has the steps.")))),
            ("planner", Act::State("busy")),
            ("conductor", Act::Open { prop: conversation.clone(), subject: format!("{task} {title}"), with: vec!["planner".into(), builder.into(), "reviewer".into(), "fuzzer".into()], first: format!("How do we go about “{title}”? What we know: {found}.") }),
            ("planner", Act::Say { prop: Some(format!("plan-{number}")), conversation: conversation.clone(), text: format!("Plan:\n\n1. reproduce that {found}\n2. {mended}\n3. a test that fails without it\n\nDecision: we do 2 behind a flag."), thread: None, only: None }),
            (builder, Act::State("busy")),
            (builder, Act::Move { task: task.clone(), status: "in_progress", result: None }),
            ("ci", Act::AnswerMail),
            ("docs", Act::Reserve { prop: format!("doc-{number}"), scope: REPOSITORY.into(), paths: vec![format!("docs/{}.md", place.split('/').next_back().unwrap_or("x"))], exclusive: false, reason: format!("{task}: notes"), minutes: 25 }),
            ("deployer", Act::Reserve { prop: lock.clone(), scope: REPOSITORY.into(), paths: vec![format!("{place}/**"), "deploy/values.yaml".into()], exclusive: true, reason: format!("{task}: rollout"), minutes: 8 + (number as i64 % 5) * 9 }),
            (builder, say(format!("Reproduced: {found}. It takes about {} lines.", 40 + number * 13 % 90))),
            (builder, Act::Send(message(&["reviewer"], "review", format!("Review {task}"), format!("`{place}` is ready.\n\n- {mended}\n- the test fails without the change\n\n```diff\n- book(refund)\n+ claim(key)?.then(book(refund))\n```")))),
            (builder, Act::Send(Draft { within: None, ..message(&["ci"], "build", format!("Build {task}"), format!("Branch `{}` please, with the slow suite.", task.to_lowercase())) })),
            ("ci", Act::AnswerMail),
            ("ci", Act::Send(Draft { within: None, priority: if number % 3 == 1 { 2 } else { 3 }, ..message(&[builder, "reviewer"], "result", if number % 3 == 1 { format!("{task}: 2 of 1,284 tests failed") } else { format!("{task}: green in {} s", 71 + number * 7 % 60) }, if number % 3 == 1 { "| test | what |\n| --- | --- |\n| `ledger::twice` | expected 1, got 2 |\n| `ledger::retry` | timed out |".into() } else { "All 1,284 tests passed.".into() }) })),
            ("reviewer", Act::Thread { prop: format!("thread-{number}"), conversation: conversation.clone(), root: format!("plan-{number}"), subject: "What about retries?".into() }),
            ("reviewer", Act::Say { prop: None, conversation: conversation.clone(), text: "What happens when the second attempt arrives while the first is still open?".into(), thread: Some(format!("thread-{number}")), only: None }),
            (builder, Act::Say { prop: None, conversation: conversation.clone(), text: "It waits for the first one’s answer and repeats it.".into(), thread: Some(format!("thread-{number}")), only: None }),
            ("fuzzer", say(format!("I ran {} k cases against it. Nothing broke, one was slow.", 12 + number * 5 % 40))),
            ("reviewer", Act::Say { prop: None, conversation: conversation.clone(), text: "Between us: the naming in the ledger is still odd.".into(), thread: None, only: Some(vec!["conductor".into()]) }),
            ("reviewer", Act::Send(Draft { priority: 2, ack: true, ..message(&[builder], "review", format!("Re: Review {task}"), "Two small things, then it is good:\n\n- [x] name the retry window\n- [ ] say in the doc why the key is claimed first".into()) })),
        ]);
        if number.is_multiple_of(2) {
            acts.push((
                other,
                Act::Send(Draft {
                    within: None,
                    ..message(
                        &[builder],
                        "note",
                        "You are in my file".into(),
                        format!("I have changes in `{place}` too. Shall I wait for you?"),
                    )
                }),
            ));
            acts.push((
                "ci",
                Act::Reserve {
                    prop: format!("ci-{number}"),
                    scope: REPOSITORY.into(),
                    paths: vec![format!("{place}/tests/*")],
                    exclusive: true,
                    reason: "regenerates fixtures".into(),
                    minutes: 6,
                },
            ));
        }
        if number.is_multiple_of(3) {
            acts.push(("docs", Act::Send(Draft { within: None, ack: true, priority: 2, ..message(&["admin"], "approve", format!("Approve the release note for {task}?"), format!("> {outcome}\n\nIt goes out with the next train. Please acknowledge, or reply with changes.")) })));
        }
        if number % 4 == 1 {
            acts.push((
                "ci",
                Act::Send(Draft {
                    within: None,
                    priority: 1,
                    expires_in: Some(2_500),
                    ..message(
                        &["night-shift"],
                        "page",
                        "Disk on ci-7 is 91 % full".into(),
                        "It cleans itself in a minute; look if it does not.".into(),
                    )
                }),
            ));
        }
        if number % 5 == 3 {
            acts.push((builder, Act::Move { task: task.clone(), status: "blocked", result: None }));
            acts.push((
                "conductor",
                Act::Send(Draft {
                    within: None,
                    ..message(
                        &["scope:payments"],
                        "standup",
                        "Freeze until the vault is through".into(),
                        format!("{task} waits. Please do not merge into `services/vault` today."),
                    )
                }),
            ));
            return acts;
        }
        acts.extend([
            ("deployer", Act::AnswerMail),
            (
                "deployer",
                Act::Send(Draft {
                    within: None,
                    ..message(
                        &["conductor", "priya"],
                        "deploy",
                        format!("{task} is on 10 %"),
                        format!("{outcome}. The rest follows in the hour."),
                    )
                }),
            ),
            (
                builder,
                Act::Move { task: task.clone(), status: "completed", result: Some(outcome.to_owned()) },
            ),
            (builder, Act::State("idle")),
            ("conductor", say(format!("Done: {outcome}. Thank you all."))),
            (
                "conductor",
                Act::Send(Draft {
                    within: None,
                    priority: 4,
                    ..message(&["all"], "news", format!("{title} is shipped"), format!("{outcome}."))
                }),
            ),
            ("priya", Act::AnswerMail),
        ]);
        // Some reservations are kept for a while.
        if !number.is_multiple_of(3) {
            acts.push(("deployer", Act::Release { prop: lock }));
        }
        if number % 2 == 1 {
            acts.push(("docs", Act::Release { prop: format!("doc-{number}") }));
        }
        acts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_of_the_story_is_in_the_cast() {
        let mut story = Story::new(0);
        for _ in 0..20 {
            for (who, act) in story.next_piece() {
                assert!(CAST.iter().any(|part| part.name == who), "{who}");
                if let Act::Send(draft) = act {
                    let known = |to: &String| {
                        to.contains(':')
                            || to == "all"
                            || to == "admin"
                            || CAST.iter().any(|part| part.name == to)
                    };
                    assert!(draft.to.iter().all(known), "{:?}", draft.to);
                }
            }
        }
    }
}
