//! The players: each comes in by one door and does there what the story wants. A further door is one more variant here.

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
    /// Comes in by the part's door.
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

    /// Does it, and gives the id of what was made, if something was.
    pub(super) async fn perform(&mut self, props: &Props, act: &Act) -> Result<Option<String>, Failure> {
        match self {
            Self::Map(player) => player.perform(props, act).await,
            Self::Own(player) => player.perform(props, act).await,
        }
    }
}

/// A door that has no such thing.
fn cannot(act: &Act) -> Failure {
    Failure::new(Exit::Failed, format!("this door cannot {}", act.verb()))
}
