//! `posthaste serve`.

use super::args::{GlobalArgs, OfficeArgs};
use super::exit::Failure;
use super::output::Output;
use super::runtime;
use crate::config::Config;
use crate::observe::logs;

pub(super) fn run(global: &GlobalArgs, office: &OfficeArgs, output: &Output) -> Result<(), Failure> {
    let config = Config::load(global, office, &|name| std::env::var_os(name))?;
    logs::start(config.log.value, config.log_level.value.as_str(), output.color_errors())?;
    runtime()?.block_on(crate::serve::run(&config))
}
