//! Who is in the fleet, by which door, and who writes to whom. Follows from the number of agents and the seed alone.

use serde::Serialize;

use super::chance::Chance;

/// How many each agent writes to.
const CIRCLE: usize = 4;
/// Agents of one conversation.
const TABLE: usize = 6;

/// The way that one comes in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Door {
    Map,
    Mcp,
    Airc,
    Files,
    /// The office's own methods.
    Own,
    /// Gives tasks to the swarm; nobody writes to it.
    Swarm,
    /// Comes by MAP for a moment, and leaves the address book again; nobody writes to it.
    Visitor,
    /// Follows everything by MAP, and reads slowly; nobody writes to it.
    Follower,
}

impl Door {
    /// Those who can be written to, and the rest; in hundredths of the fleet.
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
    /// Whom it writes to.
    pub(super) circle: Vec<u32>,
    /// The conversation it takes part in.
    pub(super) conversation: Option<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) agents: Vec<Agent>,
    /// Who takes part in each conversation.
    pub(super) conversations: Vec<Vec<u32>>,
}

impl Plan {
    pub(super) fn new(count: u32, seed: u64) -> Self {
        let mut agents = Vec::new();
        for (door, share) in Door::SHARES {
            for n in 0..(count * share / 100).max(2) {
                let name = format!("{}_{n}", door.word());
                agents.push(Agent { name, door, circle: Vec::new(), conversation: None });
            }
        }
        let mut plan = Self { agents, conversations: Vec::new() };
        for (me, number) in (0_u32..).take(plan.agents.len()).enumerate() {
            let mut chance = Chance::new(seed, u64::from(number));
            let circle = plan.circle(me, &mut chance);
            plan.agents[me].circle = circle;
        }
        let speakers: Vec<u32> = plan.of(Door::Map).collect();
        for table in speakers.chunks(TABLE) {
            let number = u32::try_from(plan.conversations.len()).unwrap_or(u32::MAX);
            for agent in table {
                plan.agents[*agent as usize].conversation = Some(number);
            }
            plan.conversations.push(table.to_vec());
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

    /// Whether whoever has this number reads its whole inbox.
    pub(super) fn reads_all(&self, number: u32) -> bool {
        self.agents.get(number as usize).is_some_and(|agent| agent.door.reads_all())
    }

    fn circle(&self, me: usize, chance: &mut Chance) -> Vec<u32> {
        let door = self.agents[me].door;
        let fits = |number: usize, so_far: &[u32]| {
            let other = self.agents[number].door;
            match door {
                _ if number == me || !other.takes_mail() => false,
                Door::Swarm | Door::Follower => false,
                // A file for somebody makes a mailbox, and whoever has one gets all mail as files. One such neighbour is
                // enough, and it must be one that looks into its inbox at the office as well.
                Door::Files => {
                    let outside = so_far.iter().any(|of| self.agents[*of as usize].door != Door::Files);
                    if outside { other == Door::Files } else { other.reads_all() }
                }
                // Identities of AIRC know their contacts by name; one who is gone in a moment is none.
                Door::Visitor => other != Door::Airc,
                _ => true,
            }
        };
        let mut circle: Vec<u32> = Vec::new();
        // A fleet may be too small for a full circle.
        for _ in 0..CIRCLE * 50 {
            let number = usize::try_from(chance.below(self.agents.len() as u64)).unwrap_or(0);
            let Ok(short) = u32::try_from(number) else { continue };
            if circle.len() < CIRCLE && fits(number, &circle) && !circle.contains(&short) {
                circle.push(short);
            }
        }
        circle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_somebody_to_write_to_and_the_seed_decides_whom() {
        for count in [16, 60, 300] {
            let plan = Plan::new(count, 7);
            for agent in &plan.agents {
                let silent = matches!(agent.door, Door::Swarm | Door::Follower);
                assert_eq!(agent.circle.is_empty(), silent, "{agent:?}");
                for other in &agent.circle {
                    assert!(plan.agent(*other).door.takes_mail());
                    assert_ne!(plan.name(*other), agent.name);
                }
            }
            assert!(plan.conversations.iter().all(|table| !table.is_empty()));
            let circles = |plan: &Plan| plan.agents.iter().map(|one| one.circle.clone()).collect::<Vec<_>>();
            assert_eq!(circles(&plan), circles(&Plan::new(count, 7)));
            assert_ne!(circles(&plan), circles(&Plan::new(count, 8)));
        }
        let doors: std::collections::BTreeSet<Door> =
            Plan::new(16, 1).agents.iter().map(|agent| agent.door).collect();
        assert_eq!(doors.len(), Door::SHARES.len());
    }
}
