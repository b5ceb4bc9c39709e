//! The measuring frame: clocks, percentiles, tables and targets.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

/// What to run.
#[derive(Debug, Default)]
pub struct Options {
    /// Small databases and short runs.
    pub quick: bool,
    /// Print one JSON object instead of tables.
    pub json: bool,
    /// Sections to run; all if empty.
    pub sections: Vec<String>,
}

impl Options {
    pub fn wants(&self, section: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|wanted| wanted == section)
    }
}

/// Wall-clock and CPU time of some work.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    pub wall: Duration,
    pub cpu: Duration,
}

/// Started before the work.
pub struct Clock {
    wall: Instant,
    cpu: Duration,
}

impl Clock {
    pub fn start() -> Self {
        Self { wall: Instant::now(), cpu: cpu_time() }
    }

    pub fn stop(&self) -> Spent {
        Spent { wall: self.wall.elapsed(), cpu: cpu_time().saturating_sub(self.cpu) }
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Anonymous and total resident memory of this process, in bytes.
pub fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    (field("RssAnon:").unwrap_or(0) << 10, field("VmRSS:").unwrap_or(0) << 10)
}

/// Times in microseconds, for percentiles.
#[derive(Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn note(&mut self, took: Duration) {
        self.0.push(took.as_secs_f64() * 1e6);
    }

    pub fn percentile(&self, percent: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }
}

/// The median.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Everything measured, printed as tables at once or as JSON at the end.
pub struct Report {
    json: bool,
    sections: Map<String, Value>,
    bars: Vec<Value>,
}

impl Report {
    pub fn new(options: &Options) -> Self {
        Self { json: options.json, sections: Map::new(), bars: Vec::new() }
    }

    /// One table. Each row is a label and a number for each column.
    pub fn table(&mut self, title: &str, columns: &[&str], rows: &[(String, Vec<f64>)]) {
        let cells = |row: &(String, Vec<f64>)| {
            let numbers = columns.iter().zip(&row.1).map(|(name, value)| ((*name).to_owned(), json!(value)));
            (row.0.clone(), Value::Object(numbers.collect()))
        };
        self.sections.insert(title.to_owned(), Value::Object(rows.iter().map(cells).collect()));
        if self.json {
            return;
        }
        let width = rows.iter().map(|row| row.0.len()).max().unwrap_or(0).max(title.len());
        print!("\n{title:<width$}");
        columns.iter().for_each(|name| print!("  {name:>12}"));
        println!();
        for (label, values) in rows {
            print!("{label:<width$}");
            values.iter().for_each(|value| print!("  {:>12}", shown(*value)));
            println!();
        }
    }

    /// A target, and whether it is met. `most` says whether the limit is an upper bound.
    pub fn bar(&mut self, what: &str, value: f64, limit: f64, most: bool) {
        let holds = if most { value <= limit } else { value >= limit };
        self.bars.push(json!({ "what": what, "value": value, "limit": limit, "holds": holds }));
    }

    pub fn finish(self) {
        if self.json {
            println!("{}", json!({ "measured": self.sections, "bars": self.bars }));
            return;
        }
        println!();
        for bar in self.bars {
            let word = if bar["holds"] == json!(true) { "holds" } else { "FALLS SHORT" };
            let number = |name: &str| shown(bar[name].as_f64().unwrap_or(f64::NAN));
            println!(
                "{word:>11}  {}: {} (bar {})",
                bar["what"].as_str().unwrap_or(""),
                number("value"),
                number("limit")
            );
        }
    }
}

fn shown(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}
