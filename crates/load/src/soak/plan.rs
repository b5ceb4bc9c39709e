//! The agents of the fleet: door, recipients and conversation of each. Follows from the number of agents and the seed alone.

use serde::Serialize;

use super::rng::Rng;

/// Recipients of each agent.
const RECIPIENTS: usize = 4;
/// Agents of one conversation.
const PARTICIPANTS: usize = 6;

/// The door of an agent, or its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Door {
    Map,
    Mcp,
    Airc,
    Files,
    /// The server's own methods.
    Own,
    /// Gives tasks to the swarm; gets no mail.
    Swarm,
    /// Registers by MAP for a moment and unregisters; gets no mail.
    Visitor,
    /// Subscribes to all events by MAP and reads slowly; gets no mail.
    Follower,
}

impl Door {
    /// The share of each door, in hundredths of the fleet.
    const SHARES: [(Self, u32); 8] = [
        (Self::Map, 32),
        (Self::Mcp, 18),
        (Self::Airc, 14),
        (Self::Files, 10),
        (Self::Own, 14),
        (Self::Swarm, 5),
        (Self::Visitor, 5),
        (Self::Follower, 2),
    ];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Mcp => "mcp",
            Self::Airc => "airc",
            Self::Files => "files",
            Self::Own => "own",
            Self::Swarm => "swarm",
            Self::Visitor => "visitor",
            Self::Follower => "follower",
        }
    }

    pub(super) fn takes_mail(self) -> bool {
        !matches!(self, Self::Swarm | Self::Visitor | Self::Follower)
    }

    /// Whether it reads its inbox by a cursor that outlives connections.
    pub(super) fn reads_all(self) -> bool {
        matches!(self, Self::Mcp | Self::Airc | Self::Own)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) name: String,
    pub(super) door: Door,
    /// The agents that it writes to.
    pub(super) recipients: Vec<u32>,
    /// The conversation it takes part in.
    pub(super) conversation: Option<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) agents: Vec<Agent>,
    /// The participants of each conversation.
    pub(super) conversations: Vec<Vec<u32>>,
}

impl Plan {
    pub(super) fn new(count: u32, seed: u64) -> Self {
        let mut agents = Vec::new();
        for (door, share) in Door::SHARES {
            for n in 0..(count * share / 100).max(2) {
                let name = format!("{}_{n}", door.word());
                agents.push(Agent { name, door, recipients: Vec::new(), conversation: None });
            }
        }
        let mut plan = Self { agents, conversations: Vec::new() };
        for (me, number) in (0_u32..).take(plan.agents.len()).enumerate() {
            let mut rng = Rng::new(seed, u64::from(number));
            let recipients = plan.recipients(me, &mut rng);
            plan.agents[me].recipients = recipients;
        }
        let speakers: Vec<u32> = plan.of(Door::Map).collect();
        for participants in speakers.chunks(PARTICIPANTS) {
            let number = u32::try_from(plan.conversations.len()).unwrap_or(u32::MAX);
            for agent in participants {
                plan.agents[*agent as usize].conversation = Some(number);
            }
            plan.conversations.push(participants.to_vec());
        }
        plan
    }

    /// The agents of a door.
    pub(super) fn of(&self, door: Door) -> impl Iterator<Item = u32> + '_ {
        (0_u32..).zip(&self.agents).filter(move |(_, agent)| agent.door == door).map(|(number, _)| number)
    }

    pub(super) fn agent(&self, number: u32) -> &Agent {
        &self.agents[number as usize]
    }

    pub(super) fn name(&self, number: u32) -> &str {
        &self.agent(number).name
    }

    /// Whether the agent of this number reads its whole inbox.
    pub(super) fn reads_all(&self, number: u32) -> bool {
        self.agents.get(number as usize).is_some_and(|agent| agent.door.reads_all())
    }

    fn recipients(&self, me: usize, rng: &mut Rng) -> Vec<u32> {
        let door = self.agents[me].door;
        let fits = |number: usize, so_far: &[u32]| {
            let other = self.agents[number].door;
            match door {
                _ if number == me || !other.takes_mail() => false,
                Door::Swarm | Door::Follower => false,
                // A file for an agent makes a mailbox, and from then on the agent gets all mail as files. One such recipient is
                // enough, and it must be one that also reads its inbox at the server.
                Door::Files => {
                    let outside = so_far.iter().any(|of| self.agents[*of as usize].door != Door::Files);
                    if outside { other == Door::Files } else { other.reads_all() }
                }
                // AIRC identities need consent, and a visitor does not stay long enough for it.
                Door::Visitor => other != Door::Airc,
                _ => true,
            }
        };
        let mut recipients: Vec<u32> = Vec::new();
        // A fleet may be too small for the full number.
        for _ in 0..RECIPIENTS * 50 {
            let number = usize::try_from(rng.below(self.agents.len() as u64)).unwrap_or(0);
            let Ok(short) = u32::try_from(number) else { continue };
            if recipients.len() < RECIPIENTS && fits(number, &recipients) && !recipients.contains(&short) {
                recipients.push(short);
            }
        }
        recipients
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_has_recipients_that_follow_from_the_seed() {
        for count in [16, 60, 300] {
            let plan = Plan::new(count, 7);
            for agent in &plan.agents {
                let silent = matches!(agent.door, Door::Swarm | Door::Follower);
                assert_eq!(agent.recipients.is_empty(), silent, "{agent:?}");
                for other in &agent.recipients {
                    assert!(plan.agent(*other).door.takes_mail());
                    assert_ne!(plan.name(*other), agent.name);
                }
            }
            assert!(plan.conversations.iter().all(|participants| !participants.is_empty()));
            let recipients =
                |plan: &Plan| plan.agents.iter().map(|one| one.recipients.clone()).collect::<Vec<_>>();
            assert_eq!(recipients(&plan), recipients(&Plan::new(count, 7)));
            assert_ne!(recipients(&plan), recipients(&Plan::new(count, 8)));
        }
        let doors: std::collections::BTreeSet<Door> =
            Plan::new(16, 1).agents.iter().map(|agent| agent.door).collect();
        assert_eq!(doors.len(), Door::SHARES.len());
    }
}
