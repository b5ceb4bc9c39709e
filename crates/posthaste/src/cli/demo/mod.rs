//! `posthaste demo`: a small fleet of agents at work, so that the page has something to show.
//!
//! The [`story`] lists what each agent does, without words of a protocol; the [`players`] do it, each through a real door of
//! a running server.

mod players;
mod stage;
mod story;

use std::time::Duration;

use posthaste_engine::nouns::RealmName;
use serde::Serialize;

use self::players::Player;
use self::stage::Stage;
use self::story::{Act, Story};
use super::args::{DemoArgs, GlobalArgs};
use super::exit::{Exit, Failure};
use super::output::Output;
use super::runtime;
use crate::config::Config;
use posthaste_web::PATH as WEB_PATH;

/// Pieces of work that are done quickly at the start, so that the page is full when it is opened.
const QUICK_PIECES: usize = 4;
/// The pause between two acts of these.
const QUICK_PAUSE: Duration = Duration::from_millis(15);

pub(super) fn run(global: &GlobalArgs, given: &DemoArgs, output: &Output) -> Result<(), Failure> {
    let config = Config::load(global, &given.office(), &|name| std::env::var_os(name))?;
    let realm = RealmName::new(given.realm.as_deref().unwrap_or("demo"))
        .map_err(|why| Failure::new(Exit::Usage, why))?;
    runtime()?.block_on(async {
        let stage = Stage::open(&config, &realm).await?;
        let played = tokio::select! {
            played = play(&stage, given, output) => played,
            _ = tokio::signal::ctrl_c() => Ok(()),
        };
        stage.close().await?;
        played
    })
}

async fn play(stage: &Stage, given: &DemoArgs, output: &Output) -> Result<(), Failure> {
    let mut story = Story::new(stage.events().await?);
    let page = format!("{}/r/{}{WEB_PATH}", stage.url(), stage.realm());
    let mut players = Vec::new();
    for part in story.cast() {
        players.push(Player::enter(stage, part).await.map_err(|failure| match failure.refusal() {
            Some("agent_exists") => Failure::new(Exit::Refused, format!("a demo is running already: {page}")),
            _ => failure,
        })?);
    }
    let pace = Duration::from_millis(given.pace);
    let mut told = false;
    for round in 0.. {
        if given.rounds.is_some_and(|rounds| round >= rounds) {
            break;
        }
        for (who, act) in story.next_piece() {
            let player = players
                .iter_mut()
                .find(|player| player.name() == who)
                .ok_or_else(|| Failure::new(Exit::Failed, format!("the demo has no agent {who}")))?;
            perform(player, &mut story, act).await?;
            tokio::time::sleep(if round < QUICK_PIECES { QUICK_PAUSE } else { pace }).await;
        }
        if round + 1 == QUICK_PIECES && !told {
            told = true;
            announce(stage, &page, output)?;
        }
    }
    if !told {
        announce(stage, &page, output)?;
    }
    Ok(())
}

/// What `--json` prints when the page is full.
#[derive(Serialize)]
struct Announced<'a> {
    page: &'a str,
}

fn announce(stage: &Stage, page: &str, output: &Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json(&Announced { page });
    }
    let key = stage.key_hint();
    Ok(output.line(&format!(
        "The fleet is at work.\n\n  page      {page}\n  sign in   with the key in {key}\n  stop      Ctrl-C"
    ))?)
}

/// Performs one act. A refusal ends the demo: all that it shows must work.
async fn perform(player: &mut Player, story: &mut Story, act: Act) -> Result<(), Failure> {
    let name = player.name().to_owned();
    let made = player.perform(story.props(), &act).await;
    let made = made.map_err(|failure| {
        Failure::new(failure.exit, format!("{name} could not {}: {}", act.verb(), failure.error))
    })?;
    if let (Some(prop), Some(id)) = (act.makes(), made) {
        story.keep(prop, id);
    }
    Ok(())
}
