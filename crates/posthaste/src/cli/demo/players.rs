//! The players: each does its part of the story through one door.

mod map;
mod own;

use super::stage::Stage;
use super::story::{Act, Door, Part, Props};
use crate::cli::exit::{Exit, Failure};

pub(super) enum Player {
    Map(map::MapPlayer),
    Own(own::OwnPlayer),
}

impl Player {
    /// Connects through the part's door.
    pub(super) async fn enter(stage: &Stage, part: &Part) -> Result<Self, Failure> {
        Ok(match part.door {
            Door::Map => Self::Map(map::MapPlayer::enter(stage, part).await?),
            Door::Own => Self::Own(own::OwnPlayer::enter(stage, part).await?),
        })
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Map(player) => player.name(),
            Self::Own(player) => player.name(),
        }
    }

    /// Performs an act; the id of what it made, if anything.
    pub(super) async fn perform(&mut self, props: &Props, act: &Act) -> Result<Option<String>, Failure> {
        match self {
            Self::Map(player) => player.perform(props, act).await,
            Self::Own(player) => player.perform(props, act).await,
        }
    }
}

/// The failure for an act that a door does not have.
fn cannot(act: &Act) -> Failure {
    Failure::new(Exit::Failed, format!("this door cannot {}", act.verb()))
}
