//! `posthaste mcp`: MCP on standard input and output. Lines are relayed to a server, which this process starts on a loopback
//! port if none runs on the data directory.

mod attachments;
mod headers;
mod relay;
mod upstream;

use std::sync::Arc;

use self::relay::relay;
use self::upstream::Upstream;
use super::args::{GlobalArgs, McpArgs, OfficeArgs};
use super::client_tokens::ClientDirectory;
use super::exit::Failure;
use super::runtime;
use super::target::Target;
use crate::config::Config;
use crate::serve::not_given;
use posthaste_host::projects::{self, Trees};
use posthaste_host::signals::stop_on_signal;

pub(super) fn run(global: &GlobalArgs, given: &McpArgs) -> Result<(), Failure> {
    let office = OfficeArgs {
        realm: given.realm.realm.clone(),
        tools: given.tools,
        project: given.project.clone(),
        ..OfficeArgs::default()
    };
    let target = Target::of(global)?;
    let config = Config::load(global, &office, &|name| std::env::var_os(name))?;
    let trees = Arc::new(named_trees(&config)?);
    let place = ClientDirectory::here(&given.client, target.realm(&config))?;
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let stop = stop_on_signal()?;
        let upstream = Arc::new(Upstream::new(config, target, place));
        // A server that cannot be reached or started is said now, and not as an answer to the first call.
        let done = match upstream.find().await {
            Ok(server) => relay(upstream.clone(), server, trees, stop).await,
            Err(failure) => Err(failure),
        };
        upstream.close().await;
        done
    });
    // Standard input is read on a thread that cannot be interrupted; there is nothing left for it to do.
    runtime.shutdown_background();
    done
}

/// The work trees of the directory that the client started us in, and of `--project`.
fn named_trees(config: &Config) -> Result<Trees, Failure> {
    let here = std::env::current_dir().ok();
    let given = projects::given(here.as_deref(), &config.projects.value).map_err(not_given)?;
    Ok(Trees::named(here.as_deref(), &given, &config.data.value))
}
