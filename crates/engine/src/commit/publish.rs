//! After the sync: connected recipients get their messages, callers their answers, subscribers their wake-up.

use std::sync::Arc;

use super::{Answer, QueuedCommand};
use crate::hub::Hub;
use crate::meter::Meter;
use crate::nouns::Event;

/// Publishes a batch that is committed, or answers one that is not (then there are no events).
pub(super) fn publish(
    hub: &Hub,
    meter: &Meter,
    batch: &mut Vec<QueuedCommand>,
    mut answers: Vec<Answer>,
    mut events: Vec<Arc<Event>>,
) {
    // Mailboxes of agents that changed check their agent before they get messages of the same batch.
    hub.agents_changed(&events);
    for outcome in answers.iter_mut().flatten() {
        hub.deliver(outcome, &mut events);
    }
    let head = hub.keep(events);
    for (queued, answer) in batch.drain(..).zip(answers) {
        if queued.record.command.sends() {
            hub.fast_path().arrived(&queued.record.caller.agent);
        }
        meter.note_answer(queued.record.command.word(), &answer);
        // The caller may use the room as soon as it has its answer.
        drop(queued.room);
        if let Some(caller) = queued.answer {
            // A caller that went away does not need its answer; the command is carried out.
            drop(caller.send(answer));
        }
    }
    // Last, because callers need not wait until thousands of subscribers are awake.
    if let Some(head) = head {
        hub.wake(head);
    }
}
