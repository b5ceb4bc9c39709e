//! `posthaste serve`.

use std::time::Duration;

use super::args::{GlobalArgs, OfficeArgs};
use super::exit::Failure;
use super::output::Output;
use super::runtime;
use crate::config::Config;
use crate::logs;

/// How long background work may go on before the process ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) fn run(global: &GlobalArgs, flags: &OfficeArgs, output: &Output) -> Result<(), Failure> {
    let config = Config::load(global, flags, &|name| std::env::var_os(name))?;
    logs::start(config.log.value, config.log_level.value.as_str(), output.color_errors())?;
    let runtime = runtime()?;
    let done = runtime.block_on(crate::serve::run(&config));
    // Work that still runs has no caller left, and must not keep the process.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    done
}
