//! What the engine costs, compared with SQLite alone. `cargo bench -p posthaste-engine -- [--quick] [--json]
//! [sends|pages|search|live|start|memory …]`; see docs/BENCH.md.

#![allow(unreachable_pub, reason = "a bench has no public face")]
#![allow(clippy::cast_precision_loss, reason = "figures are shown to three digits")]

mod db;
mod frame;
mod live;
mod pages;
mod sends;

use std::path::Path;

use frame::{Options, Report};

fn main() {
    let mut options = Options::default();
    let mut arguments = std::env::args().skip(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => options.quick = true,
            "--json" => options.json = true,
            // Cargo passes this to every bench.
            "--bench" => {}
            what if what.starts_with("--child") => {
                let path = arguments.next().expect("a path");
                return live::child(what, Path::new(&path), &runtime);
            }
            section => options.sections.push(section.to_owned()),
        }
    }
    let mut report = Report::new(&options);
    if options.wants("sends") {
        sends::run(&options, &runtime, &mut report);
    }
    if options.wants("live") {
        live::fan_out(&options, &runtime, &mut report);
    }
    if ["pages", "search", "start", "memory"].iter().any(|section| options.wants(section)) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let databases = pages::create_databases(&options, &directory, &mut report);
        let largest = &databases[databases.len() - 1];
        if options.wants("start") {
            pages::start_up(largest, &mut report);
        }
        if options.wants("pages") {
            pages::lists(&options, &databases, &mut report);
        }
        if options.wants("search") {
            pages::search(&options, largest, &mut report);
        }
        if options.wants("memory") {
            live::footprint(largest, &mut report);
        }
    }
    report.finish();
}
