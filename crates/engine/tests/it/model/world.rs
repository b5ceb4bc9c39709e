//! The model: a realm as a few plain lists, with the expected inboxes, messages and conversations.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_engine::nouns::{ContactPolicy, ContactState, DeliveryState, HistoryAccess, RecipientKind};

pub const AGENTS: usize = 4;
pub const SCOPES: usize = 2;
pub const CONVERSATIONS: usize = 2;

/// One operation. Numbers name agents, scopes, conversations and messages.
#[derive(Clone, Debug)]
pub enum Op {
    Register { who: usize, policy: ContactPolicy },
    Unregister { who: usize },
    JoinScope { who: usize, scope: usize },
    LeaveScope { who: usize, scope: usize },
    SendMessage { from: usize, to: Vec<Target>, cc: Vec<Target>, bcc: Vec<Target> },
    MarkRead { who: usize, message: usize, unread: bool },
    Acknowledge { who: usize, message: usize },
    Ask { from: usize, to: usize },
    Accept { who: usize, from: usize },
    Block { who: usize, from: usize },
    Create { by: usize, conversation: usize, others: Vec<(usize, HistoryAccess)> },
    Say { by: usize, conversation: usize, to: Readers },
    Join { by: usize, conversation: usize },
    Leave { by: usize, conversation: usize },
}

#[derive(Clone, Debug)]
pub enum Target {
    One(usize),
    Scope(usize),
    All,
}

/// Who may read a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readers {
    All,
    Private,
    These(Vec<usize>),
}

/// The expected answer: done, or the name of the refusal.
pub type Due = Result<(), &'static str>;

#[derive(Clone, Debug, Default)]
pub struct Agent {
    pub active: bool,
    known: bool,
    policy: Option<ContactPolicy>,
    /// Messages before this one belong to an earlier holder of the name.
    pub first_message: usize,
}

#[derive(Clone, Debug)]
pub struct Message {
    pub from: usize,
    /// Recipients that all parties see.
    named: Vec<usize>,
    /// In the order of the addresses.
    pub deliveries: Vec<(usize, RecipientKind, DeliveryState)>,
}

#[derive(Clone, Debug, Default)]
pub struct Conversation {
    pub exists: bool,
    /// Per agent: whether it takes part now, since which turn, and how far back it may read.
    pub parts: BTreeMap<usize, Part>,
    pub turns: Vec<(usize, Readers)>,
}

#[derive(Clone, Debug)]
pub struct Part {
    pub present: bool,
    /// Whether it was added by another agent and has neither joined nor spoken.
    invited: bool,
    since: usize,
    history: HistoryAccess,
}

#[derive(Clone, Debug, Default)]
pub struct World {
    pub agents: [Agent; AGENTS],
    scopes: [BTreeSet<usize>; SCOPES],
    contacts: BTreeMap<(usize, usize), ContactState>,
    pub messages: Vec<Message>,
    pub conversations: [Conversation; CONVERSATIONS],
}

impl World {
    /// The expected answer of an operation; changes the model accordingly.
    pub fn apply(&mut self, op: &Op) -> Due {
        match op {
            Op::Register { who, policy } => {
                if self.agents[*who].active {
                    return Err("AgentExists");
                }
                let first_message = if self.agents[*who].known { self.messages.len() } else { 0 };
                if self.agents[*who].known {
                    // The next holder of a name inherits only the blocks against it.
                    let stays = |pair: &(usize, usize), state: &ContactState| {
                        pair.1 != *who && (pair.0 != *who || *state == ContactState::Blocked)
                    };
                    self.contacts.retain(|pair, state| stays(pair, state));
                    for conversation in &mut self.conversations {
                        conversation.parts.remove(who);
                    }
                }
                self.agents[*who] = Agent { active: true, known: true, policy: Some(*policy), first_message };
            }
            Op::Unregister { who } => {
                self.require(*who)?;
                self.agents[*who].active = false;
                self.scopes.iter_mut().for_each(|members| members.retain(|member| member != who));
            }
            Op::JoinScope { who, scope } => {
                self.require(*who)?;
                self.scopes[*scope].insert(*who);
            }
            Op::LeaveScope { who, scope } => {
                self.require(*who)?;
                self.scopes[*scope].remove(who);
            }
            Op::SendMessage { from, to, cc, bcc } => return self.send(*from, [to, cc, bcc]),
            Op::MarkRead { who, message, unread } => {
                let state = self.delivery(*who, *message).ok_or("NoSuchMessage")?;
                match (*state, unread) {
                    (DeliveryState::Queued | DeliveryState::Delivered, false) => *state = DeliveryState::Read,
                    (DeliveryState::Read, true) => *state = DeliveryState::Delivered,
                    _ => {}
                }
            }
            Op::Acknowledge { who, message } => {
                *self.delivery(*who, *message).ok_or("NoSuchMessage")? = DeliveryState::Acked;
            }
            Op::Ask { from, to } => return self.ask(*from, *to),
            Op::Accept { who, from } => return self.accept(*who, *from),
            Op::Block { who, from } => {
                self.require(*who)?;
                self.contacts.insert((*from, *who), ContactState::Blocked);
                if self.contacts.get(&(*who, *from)).is_some_and(|state| *state != ContactState::Blocked) {
                    self.contacts.remove(&(*who, *from));
                }
            }
            Op::Create { by, conversation, others } => {
                let conversation = &mut self.conversations[*conversation];
                if conversation.exists {
                    return Err("ConversationExists");
                }
                conversation.exists = true;
                let part = |history, invited| Part { present: true, invited, since: 0, history };
                conversation.parts.insert(*by, part(HistoryAccess::Full, false));
                for (other, history) in others {
                    conversation.parts.entry(*other).or_insert_with(|| part(*history, true));
                }
            }
            Op::Say { by, conversation, to } => {
                let conversation = self.taking_part(*by, *conversation)?;
                if let Readers::These(agents) = to
                    && !agents
                        .iter()
                        .all(|agent| conversation.parts.get(agent).is_some_and(|part| part.present))
                {
                    return Err("NoSuchParticipant");
                }
                conversation.turns.push((*by, to.clone()));
                conversation.parts.get_mut(by).expect("a part").invited = false;
            }
            Op::Join { by, conversation } => {
                let conversation = &mut self.conversations[*conversation];
                let since = conversation.turns.len();
                match conversation.parts.get_mut(by) {
                    None => return Err("NoSuchConversation"),
                    Some(part) if part.present && part.invited => part.invited = false,
                    Some(part) if part.present => return Err("AlreadyJoined"),
                    Some(part) => (part.present, part.invited, part.since) = (true, false, since),
                }
            }
            Op::Leave { by, conversation } => {
                let conversation = self.taking_part(*by, *conversation)?;
                conversation.parts.get_mut(by).expect("a part").present = false;
            }
        }
        Ok(())
    }

    fn require(&self, who: usize) -> Due {
        if self.agents[who].active { Ok(()) } else { Err("NoSuchAgent") }
    }

    fn taking_part(&mut self, who: usize, conversation: usize) -> Result<&mut Conversation, &'static str> {
        let conversation = &mut self.conversations[conversation];
        match conversation.parts.get(&who) {
            Some(part) if part.present => Ok(conversation),
            _ => Err("NoSuchConversation"),
        }
    }

    /// The state of a delivery in an agent's inbox.
    fn delivery(&mut self, who: usize, message: usize) -> Option<&mut DeliveryState> {
        let mine = message >= self.agents[who].first_message;
        let deliveries = &mut self.messages.get_mut(message).filter(|_| mine)?.deliveries;
        deliveries.iter_mut().find(|delivery| delivery.0 == who).map(|delivery| &mut delivery.2)
    }

    fn send(&mut self, from: usize, lists: [&Vec<Target>; 3]) -> Due {
        self.require(from)?;
        let mut deliveries: Vec<(usize, RecipientKind, DeliveryState)> = Vec::new();
        for (targets, copy) in
            lists.into_iter().zip([RecipientKind::To, RecipientKind::Cc, RecipientKind::Bcc])
        {
            for target in targets {
                for agent in self.reach(from, target)? {
                    if deliveries.iter().all(|known| known.0 != agent) {
                        deliveries.push((agent, copy, DeliveryState::Queued));
                    }
                }
            }
        }
        if deliveries.is_empty() {
            return Err("NoRecipients");
        }
        let named = lists[..2].iter().flat_map(|targets| targets.iter()).filter_map(|target| match target {
            Target::One(to) => Some(*to),
            Target::All | Target::Scope(_) => None,
        });
        self.messages.push(Message { from, named: named.collect(), deliveries });
        Ok(())
    }

    fn reach(&mut self, from: usize, target: &Target) -> Result<Vec<usize>, &'static str> {
        let others = |agent: &usize| *agent != from && self.agents[*agent].active;
        let group: Vec<usize> = match target {
            Target::One(to) => {
                self.require(*to)?;
                return match self.consent(from, *to) {
                    Consent::Given => Ok(vec![*to]),
                    Consent::Denied => Err("ConsentBlocked"),
                    Consent::Needed if self.may_answer(from, *to) => Ok(vec![*to]),
                    Consent::Needed => {
                        // The refusal records a request.
                        self.contacts.entry((from, *to)).or_insert(ContactState::Pending);
                        Err("ConsentPending")
                    }
                };
            }
            Target::All => (0..AGENTS).filter(others).collect(),
            Target::Scope(scope) => self.scopes[*scope].iter().copied().filter(others).collect(),
        };
        Ok(group.into_iter().filter(|to| self.consent(from, *to) == Consent::Given).collect())
    }

    /// Whether `to` has written to `from`, which accepts messages from all senders.
    fn may_answer(&self, from: usize, to: usize) -> bool {
        let first = self.agents[from].first_message.max(self.agents[to].first_message);
        let wrote = |message: &Message| message.from == to && message.named.contains(&from);
        self.agents[from].policy == Some(ContactPolicy::Open) && self.messages[first..].iter().any(wrote)
    }

    fn consent(&self, from: usize, to: usize) -> Consent {
        if from == to {
            return Consent::Given;
        }
        match (self.contacts.get(&(from, to)), self.agents[to].policy) {
            (Some(ContactState::Blocked), _) => Consent::Denied,
            (Some(ContactState::Accepted), _) | (_, Some(ContactPolicy::Open)) => Consent::Given,
            (_, Some(ContactPolicy::Contacts)) => Consent::Needed,
            _ => Consent::Denied,
        }
    }

    fn ask(&mut self, from: usize, to: usize) -> Due {
        self.require(from)?;
        self.require(to)?;
        match self.contacts.get(&(from, to)) {
            Some(ContactState::Blocked) => Err("ConsentBlocked"),
            Some(_) => Ok(()),
            None if self.agents[to].policy == Some(ContactPolicy::Closed) => Err("ConsentBlocked"),
            None => {
                self.contacts.insert((from, to), ContactState::Pending);
                Ok(())
            }
        }
    }

    fn accept(&mut self, who: usize, from: usize) -> Due {
        self.require(who)?;
        if self.contacts.get(&(from, who)).is_none_or(|asked| *asked == ContactState::Blocked) {
            return Err("NoSuchContact");
        }
        self.require(from)?;
        if self.contacts.get(&(who, from)) == Some(&ContactState::Blocked) {
            return Err("ConsentBlocked");
        }
        self.contacts.insert((from, who), ContactState::Accepted);
        self.contacts.insert((who, from), ContactState::Accepted);
        Ok(())
    }

    /// An agent's inbox, oldest first: message numbers and delivery states.
    pub fn inbox(&self, who: usize) -> Option<Vec<(usize, DeliveryState)>> {
        let agent = &self.agents[who];
        let mine = self.messages.iter().enumerate().skip(agent.first_message).filter_map(|(n, message)| {
            message.deliveries.iter().find(|delivery| delivery.0 == who).map(|delivery| (n, delivery.2))
        });
        agent.active.then(|| mine.collect())
    }

    /// The deliveries of a message that an agent may see; `None` if it may not see the message.
    pub fn deliveries_seen(
        &self,
        who: usize,
        n: usize,
    ) -> Option<Vec<(usize, RecipientKind, DeliveryState)>> {
        let (agent, message) = (&self.agents[who], &self.messages[n]);
        let party = message.from == who || message.deliveries.iter().any(|delivery| delivery.0 == who);
        if !agent.active || n < agent.first_message || !party {
            return None;
        }
        let shown = |delivery: &&(usize, RecipientKind, DeliveryState)| {
            message.from == who || delivery.0 == who || delivery.1 != RecipientKind::Bcc
        };
        let mut deliveries: Vec<_> = message.deliveries.iter().filter(shown).cloned().collect();
        // Delivery states of others are visible only to them and the sender.
        deliveries
            .iter_mut()
            .filter(|delivery| message.from != who && delivery.0 != who)
            .for_each(|delivery| delivery.2 = DeliveryState::Queued);
        deliveries.sort_by_key(|delivery| delivery.0);
        Some(deliveries)
    }

    /// The turns that an agent may read, or the refusal.
    pub fn turns_seen(&self, who: usize, conversation: usize) -> Result<Vec<usize>, &'static str> {
        let conversation = &self.conversations[conversation];
        let part = conversation.parts.get(&who).filter(|part| part.present).ok_or("NoSuchConversation")?;
        let since = match part.history {
            HistoryAccess::None => return Err("ParticipantMayNot"),
            HistoryAccess::FromJoin => part.since,
            HistoryAccess::Full => 0,
        };
        let reads = |(author, readers): &(usize, Readers)| match readers {
            Readers::All => true,
            Readers::Private => *author == who,
            Readers::These(agents) => *author == who || agents.contains(&who),
        };
        Ok((since..conversation.turns.len()).filter(|n| reads(&conversation.turns[*n])).collect())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consent {
    Given,
    Needed,
    Denied,
}
