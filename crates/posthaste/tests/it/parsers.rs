//! The properties of the fuzz targets, checked with mutations of samples from a fixed seed: every parser of untrusted
//! input, in a few seconds.

#[path = "../../../../fuzz/properties/server.rs"]
mod server;
#[path = "../../../../fuzz/properties/mod.rs"]
mod wire;

use std::path::Path;
use std::time::{Duration, Instant};

/// Mutations per property, and the time after which a slow machine stops with fewer.
const ROUNDS: usize = 20_000;
const TIME_LIMIT: Duration = Duration::from_millis(400);

/// Rounds and time limit of a property. `POSTHASTE_MUTATE=60` sets the time to a minute, without a limit on rounds.
fn effort() -> (usize, Duration) {
    let asked = std::env::var("POSTHASTE_MUTATE").ok().and_then(|seconds| seconds.parse().ok());
    asked.map_or((ROUNDS, TIME_LIMIT), |seconds| (usize::MAX, Duration::from_secs(seconds)))
}

/// A pseudo-random generator with a fixed seed.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize
    }

    fn below(&mut self, end: usize) -> usize {
        self.next() % end.max(1)
    }
}

/// Fragments that parsers often get wrong.
const FRAGMENTS: [&str; 30] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "\\",
    "\\u0000",
    "\\ud800",
    "\u{feff}",
    "\0",
    "\n",
    "\r",
    "\r\n",
    "é",
    "😀",
    "-",
    "0",
    "1e400",
    "-0.0",
    "9223372036854775808",
    "null",
    "true",
    "..",
    "/",
    "*",
    "**",
    "%00",
    "{{{{[[[[",
];

/// A sample with one to five random edits.
fn mutate(sample: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len() + 1);
        match rng.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.truncate(at),
            3 => drop(bytes.splice(at..at, FRAGMENTS[rng.below(FRAGMENTS.len())].bytes())),
            4 => {
                let end = at + rng.below(bytes.len() - at + 1);
                let part = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, part));
            }
            5 => {
                let end = at + rng.below((bytes.len() - at).min(12) + 1);
                bytes.drain(at..end);
            }
            6 => {
                let from = rng.below(other.len() + 1);
                let part = other[from..].to_vec();
                bytes.truncate(at);
                bytes.extend(part);
            }
            _ => {
                let end = at + rng.below((bytes.len() - at).min(6) + 1);
                drop(bytes.splice(at..end, FRAGMENTS[rng.below(FRAGMENTS.len())].bytes()));
            }
        }
    }
    bytes
}

/// Samples of a property: those in the code, and inputs that a fuzzer found.
fn samples(name: &str, given: &[&str]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = given.iter().map(|text| text.as_bytes().to_vec()).collect();
    let regressions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions").join(name);
    let mut paths: Vec<_> =
        std::fs::read_dir(regressions).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    all.extend(paths.iter().map(|path| std::fs::read(path).unwrap()));
    all
}

fn run(name: &str, given: &[&str], mut check: impl FnMut(&[u8])) {
    let samples = samples(name, given);
    for sample in &samples {
        check(sample);
    }
    let (started, mut rng) = (Instant::now(), Rng(0x9e37_79b9_7f4a_7c15));
    let (rounds, limit) = effort();
    for round in 0..rounds {
        if round % 64 == 0 && started.elapsed() > limit {
            println!("{name}: {round} mutations");
            break;
        }
        let (one, other) = (rng.below(samples.len()), rng.below(samples.len()));
        let bytes = mutate(&samples[one], &samples[other], &mut rng);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&bytes)));
        assert!(caught.is_ok(), "{name} fails on {:?}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn wire_parsers_hold_their_properties() {
    for (name, check, given) in wire::WIRE {
        run(name, given, check);
    }
}

#[test]
fn server_parsers_hold_their_properties() {
    for (name, check, given) in server::SERVER {
        run(name, given, check);
    }
}

#[test]
fn exported_database_is_imported_whole_or_not_at_all() {
    let folder = crate::harness::TestDir::new();
    let mut db = posthaste_engine::store::open_writer(&folder.path().join("main.db")).unwrap();
    let mut lines = Vec::new();
    posthaste_engine::store::write_rows(&db, "main", &mut lines, &mut |_| true).unwrap();
    let text = String::from_utf8(lines).unwrap();
    server::database_export(&mut db, text.as_bytes());
    run("database_export", &[&text], |bytes| server::database_export(&mut db, bytes));
}

#[test]
fn every_property_has_a_target() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let names = wire::WIRE.iter().map(|one| one.0).chain(server::SERVER.iter().map(|one| one.0));
    for name in names.chain(["database_export"]) {
        assert!(targets.join(format!("{name}.rs")).exists(), "{name} is not fuzzed");
    }
}
