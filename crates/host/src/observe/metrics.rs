//! The engine's counters in the text form that Prometheus reads.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use posthaste_engine::Engine;
use posthaste_engine::meter::Histogram;

use crate::Host;

/// All metrics, by realm.
pub async fn render(host: &Host) -> String {
    let realms = host.office().open_realms().await;
    let mut text = String::new();
    let uptime = host.started().elapsed().as_secs_f64();
    head(&mut text, "posthaste_uptime_seconds", "gauge", "Seconds since the server started.");
    let _ = writeln!(text, "posthaste_uptime_seconds {uptime:.3}");
    head(&mut text, "posthaste_healthy", "gauge", "1 if the last health check found nothing.");
    let healthy = u8::from(host.check_health().await.problem.is_none());
    let _ = writeln!(text, "posthaste_healthy {healthy}");
    verbs(&mut text, &realms);
    gauge(&mut text, &realms, "posthaste_queue_commands", "Commands waiting for the writer.", |engine| {
        engine.queue_depth() as u64
    });
    gauge(&mut text, &realms, "posthaste_attached_agents", "Agents with an open mail stream.", |engine| {
        engine.listeners().0 as u64
    });
    gauge(&mut text, &realms, "posthaste_followers", "Subscribers of the event log.", |engine| {
        engine.listeners().1 as u64
    });
    gauge(
        &mut text,
        &realms,
        "posthaste_poisoned",
        "1 if a write failed and the realm is read-only.",
        |engine| u64::from(engine.poisoned().is_some()),
    );
    head(
        &mut text,
        "posthaste_feed_lagged_total",
        "counter",
        "Events that slow subscribers read from the database.",
    );
    for engine in &realms {
        let lagged = engine.meter().lagged.load(Ordering::Relaxed);
        let _ = writeln!(text, "posthaste_feed_lagged_total{{realm=\"{}\"}} {lagged}", engine.realm());
    }
    head(&mut text, "posthaste_batch_commands", "histogram", "Commands per transaction.");
    for engine in &realms {
        histogram(&mut text, "posthaste_batch_commands", engine, &engine.meter().batches, 1.0);
    }
    head(
        &mut text,
        "posthaste_commit_seconds",
        "histogram",
        "From the first command of a batch to the end of its sync.",
    );
    for engine in &realms {
        histogram(&mut text, "posthaste_commit_seconds", engine, &engine.meter().commits, 1e-6);
    }
    text
}

fn verbs(text: &mut String, realms: &[Engine]) {
    head(text, "posthaste_verb_total", "counter", "Commands by verb and by what became of them.");
    for engine in realms {
        for (verb, count) in engine.meter().verbs() {
            for (outcome, number) in
                [("done", count.done), ("refused", count.refused), ("failed", count.failed)]
            {
                if number > 0 {
                    let realm = engine.realm();
                    let _ = writeln!(
                        text,
                        "posthaste_verb_total{{realm=\"{realm}\",verb=\"{verb}\",outcome=\"{outcome}\"}} {number}"
                    );
                }
            }
        }
    }
}

fn gauge(text: &mut String, realms: &[Engine], name: &str, help: &str, value: impl Fn(&Engine) -> u64) {
    head(text, name, "gauge", help);
    for engine in realms {
        let _ = writeln!(text, "{name}{{realm=\"{}\"}} {}", engine.realm(), value(engine));
    }
}

fn histogram<const N: usize>(
    text: &mut String,
    name: &str,
    engine: &Engine,
    values: &Histogram<N>,
    unit: f64,
) {
    let realm = engine.realm();
    for (end, count) in values.cumulative() {
        let end = end as f64 * unit;
        let _ = writeln!(text, "{name}_bucket{{realm=\"{realm}\",le=\"{end}\"}} {count}");
    }
    let _ = writeln!(text, "{name}_bucket{{realm=\"{realm}\",le=\"+Inf\"}} {}", values.count());
    let _ = writeln!(text, "{name}_sum{{realm=\"{realm}\"}} {}", values.sum() as f64 * unit);
    let _ = writeln!(text, "{name}_count{{realm=\"{realm}\"}} {}", values.count());
}

// A realm's name has no character that would need escaping in a label.
fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}
