//! The realm as a few plain lists: what inboxes, letters and conversations ought to look like.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_engine::nouns::{ContactPolicy, ContactState, DeliveryState, HistoryAccess, RecipientKind};

pub const AGENTS: usize = 4;
pub const SCOPES: usize = 2;
pub const TALKS: usize = 2;

/// One thing that happens. Numbers name agents, scopes, conversations and letters.
#[derive(Clone, Debug)]
pub enum Op {
    Register { who: usize, policy: ContactPolicy },
    Unregister { who: usize },
    JoinScope { who: usize, scope: usize },
    LeaveScope { who: usize, scope: usize },
    SendMessage { from: usize, to: Vec<Target>, cc: Vec<Target>, bcc: Vec<Target> },
    MarkRead { who: usize, letter: usize, unread: bool },
    Acknowledge { who: usize, letter: usize },
    Ask { from: usize, to: usize },
    Accept { who: usize, from: usize },
    Block { who: usize, from: usize },
    Create { by: usize, talk: usize, others: Vec<(usize, HistoryAccess)> },
    Say { by: usize, talk: usize, to: Eyes },
    Join { by: usize, talk: usize },
    Leave { by: usize, talk: usize },
}

#[derive(Clone, Debug)]
pub enum Target {
    One(usize),
    Scope(usize),
    All,
}

/// Who may read a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eyes {
    All,
    Private,
    These(Vec<usize>),
}

/// The answer that is due: done, or the name of the refusal.
pub type Due = Result<(), &'static str>;

#[derive(Clone, Debug, Default)]
pub struct Agent {
    pub active: bool,
    known: bool,
    policy: Option<ContactPolicy>,
    /// Letters before this one belong to an earlier holder of the name.
    pub first_letter: usize,
}

#[derive(Clone, Debug)]
pub struct Letter {
    pub from: usize,
    /// Whom it names, for all to see.
    named: Vec<usize>,
    /// In the order of the addresses.
    pub copies: Vec<(usize, RecipientKind, DeliveryState)>,
}

#[derive(Clone, Debug, Default)]
pub struct Talk {
    pub exists: bool,
    /// Whether each takes part now, since which turn, and how far back it may read.
    pub parts: BTreeMap<usize, Part>,
    pub turns: Vec<(usize, Eyes)>,
}

#[derive(Clone, Debug)]
pub struct Part {
    pub present: bool,
    /// Whether it was added by another and has neither joined nor spoken.
    invited: bool,
    since: usize,
    history: HistoryAccess,
}

#[derive(Clone, Debug, Default)]
pub struct World {
    pub agents: [Agent; AGENTS],
    scopes: [BTreeSet<usize>; SCOPES],
    contacts: BTreeMap<(usize, usize), ContactState>,
    pub letters: Vec<Letter>,
    pub talks: [Talk; TALKS],
}

impl World {
    /// What an operation must answer; changes the world accordingly.
    pub fn apply(&mut self, op: &Op) -> Due {
        match op {
            Op::Register { who, policy } => {
                if self.agents[*who].active {
                    return Err("AgentExists");
                }
                let first_letter = if self.agents[*who].known { self.letters.len() } else { 0 };
                if self.agents[*who].known {
                    // The next holder of a name has nothing of the former one's but the blocks against it.
                    let stays = |pair: &(usize, usize), state: &ContactState| {
                        pair.1 != *who && (pair.0 != *who || *state == ContactState::Blocked)
                    };
                    self.contacts.retain(|pair, state| stays(pair, state));
                    for talk in &mut self.talks {
                        talk.parts.remove(who);
                    }
                }
                self.agents[*who] = Agent { active: true, known: true, policy: Some(*policy), first_letter };
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
            Op::MarkRead { who, letter, unread } => {
                let state = self.copy(*who, *letter).ok_or("NoSuchMessage")?;
                match (*state, unread) {
                    (DeliveryState::Queued | DeliveryState::Delivered, false) => *state = DeliveryState::Read,
                    (DeliveryState::Read, true) => *state = DeliveryState::Delivered,
                    _ => {}
                }
            }
            Op::Acknowledge { who, letter } => {
                *self.copy(*who, *letter).ok_or("NoSuchMessage")? = DeliveryState::Acked;
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
            Op::Create { by, talk, others } => {
                let talk = &mut self.talks[*talk];
                if talk.exists {
                    return Err("ConversationExists");
                }
                talk.exists = true;
                let part = |history, invited| Part { present: true, invited, since: 0, history };
                talk.parts.insert(*by, part(HistoryAccess::Full, false));
                for (other, history) in others {
                    talk.parts.entry(*other).or_insert_with(|| part(*history, true));
                }
            }
            Op::Say { by, talk, to } => {
                let talk = self.taking_part(*by, *talk)?;
                if let Eyes::These(agents) = to
                    && !agents.iter().all(|agent| talk.parts.get(agent).is_some_and(|part| part.present))
                {
                    return Err("NoSuchParticipant");
                }
                talk.turns.push((*by, to.clone()));
                talk.parts.get_mut(by).expect("a part").invited = false;
            }
            Op::Join { by, talk } => {
                let talk = &mut self.talks[*talk];
                let since = talk.turns.len();
                match talk.parts.get_mut(by) {
                    None => return Err("NoSuchConversation"),
                    Some(part) if part.present && part.invited => part.invited = false,
                    Some(part) if part.present => return Err("AlreadyJoined"),
                    Some(part) => (part.present, part.invited, part.since) = (true, false, since),
                }
            }
            Op::Leave { by, talk } => {
                let talk = self.taking_part(*by, *talk)?;
                talk.parts.get_mut(by).expect("a part").present = false;
            }
        }
        Ok(())
    }

    fn require(&self, who: usize) -> Due {
        if self.agents[who].active { Ok(()) } else { Err("NoSuchAgent") }
    }

    fn taking_part(&mut self, who: usize, talk: usize) -> Result<&mut Talk, &'static str> {
        let talk = &mut self.talks[talk];
        match talk.parts.get(&who) {
            Some(part) if part.present => Ok(talk),
            _ => Err("NoSuchConversation"),
        }
    }

    /// The state of a copy that is in somebody's mail.
    fn copy(&mut self, who: usize, letter: usize) -> Option<&mut DeliveryState> {
        let mine = letter >= self.agents[who].first_letter;
        let copies = &mut self.letters.get_mut(letter).filter(|_| mine)?.copies;
        copies.iter_mut().find(|copy| copy.0 == who).map(|copy| &mut copy.2)
    }

    fn send(&mut self, from: usize, lists: [&Vec<Target>; 3]) -> Due {
        self.require(from)?;
        let mut copies: Vec<(usize, RecipientKind, DeliveryState)> = Vec::new();
        for (targets, copy) in
            lists.into_iter().zip([RecipientKind::To, RecipientKind::Cc, RecipientKind::Bcc])
        {
            for target in targets {
                for agent in self.reach(from, target)? {
                    if copies.iter().all(|known| known.0 != agent) {
                        copies.push((agent, copy, DeliveryState::Queued));
                    }
                }
            }
        }
        if copies.is_empty() {
            return Err("NoRecipients");
        }
        let named = lists[..2].iter().flat_map(|targets| targets.iter()).filter_map(|target| match target {
            Target::One(to) => Some(*to),
            Target::All | Target::Scope(_) => None,
        });
        self.letters.push(Letter { from, named: named.collect(), copies });
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
                        // The refusal leaves a request behind.
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

    /// Whether the other has written to this one, which takes letters from anybody.
    fn may_answer(&self, from: usize, to: usize) -> bool {
        let first = self.agents[from].first_letter.max(self.agents[to].first_letter);
        let wrote = |letter: &Letter| letter.from == to && letter.named.contains(&from);
        self.agents[from].policy == Some(ContactPolicy::Open) && self.letters[first..].iter().any(wrote)
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

    /// An agent's mail, the earliest first: which letter, and how it stands.
    pub fn inbox(&self, who: usize) -> Option<Vec<(usize, DeliveryState)>> {
        let agent = &self.agents[who];
        let mine = self.letters.iter().enumerate().skip(agent.first_letter).filter_map(|(n, letter)| {
            letter.copies.iter().find(|copy| copy.0 == who).map(|copy| (n, copy.2))
        });
        agent.active.then(|| mine.collect())
    }

    /// The copies of a letter that somebody may know of; nothing if not even the letter.
    pub fn copies_seen(&self, who: usize, n: usize) -> Option<Vec<(usize, RecipientKind, DeliveryState)>> {
        let (agent, letter) = (&self.agents[who], &self.letters[n]);
        let party = letter.from == who || letter.copies.iter().any(|copy| copy.0 == who);
        if !agent.active || n < agent.first_letter || !party {
            return None;
        }
        let shown = |copy: &&(usize, RecipientKind, DeliveryState)| {
            letter.from == who || copy.0 == who || copy.1 != RecipientKind::Bcc
        };
        let mut copies: Vec<_> = letter.copies.iter().filter(shown).cloned().collect();
        // How others fared is between them and the sender.
        copies
            .iter_mut()
            .filter(|copy| letter.from != who && copy.0 != who)
            .for_each(|copy| copy.2 = DeliveryState::Queued);
        copies.sort_by_key(|copy| copy.0);
        Some(copies)
    }

    /// The turns that somebody may read, or why none.
    pub fn turns_seen(&self, who: usize, talk: usize) -> Result<Vec<usize>, &'static str> {
        let talk = &self.talks[talk];
        let part = talk.parts.get(&who).filter(|part| part.present).ok_or("NoSuchConversation")?;
        let since = match part.history {
            HistoryAccess::None => return Err("ParticipantMayNot"),
            HistoryAccess::FromJoin => part.since,
            HistoryAccess::Full => 0,
        };
        let reads = |(author, eyes): &(usize, Eyes)| match eyes {
            Eyes::All => true,
            Eyes::Private => *author == who,
            Eyes::These(agents) => *author == who || agents.contains(&who),
        };
        Ok((since..talk.turns.len()).filter(|n| reads(&talk.turns[*n])).collect())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consent {
    Given,
    Needed,
    Denied,
}
