//! Every parser of what strangers send, fed with mutations of samples: the properties of the fuzz targets, in a few
//! seconds and the same each time.

#[path = "../../../../fuzz/properties/office.rs"]
mod office;
#[path = "../../../../fuzz/properties/mod.rs"]
mod wire;

use std::path::Path;
use std::time::{Duration, Instant};

/// Mutations of each property, unless time runs out: `./test` must stay quick on slow machines.
const ROUNDS: usize = 20_000;
const PATIENCE: Duration = Duration::from_millis(400);

/// `POSTHASTE_MUTATE=60` takes a minute for each property instead.
fn effort() -> (usize, Duration) {
    let asked = std::env::var("POSTHASTE_MUTATE").ok().and_then(|seconds| seconds.parse().ok());
    asked.map_or((ROUNDS, PATIENCE), |seconds| (usize::MAX, Duration::from_secs(seconds)))
}

/// Numbers that look random and are the same each time.
struct Chance(u64);

impl Chance {
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

/// What parsers stumble over.
const BITS: [&str; 30] = [
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

/// A sample with a few things done to it.
fn mutate(sample: &[u8], other: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        match chance.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.truncate(at),
            3 => drop(bytes.splice(at..at, BITS[chance.below(BITS.len())].bytes())),
            4 => {
                let end = at + chance.below(bytes.len() - at + 1);
                let piece = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, piece));
            }
            5 => {
                let end = at + chance.below((bytes.len() - at).min(12) + 1);
                bytes.drain(at..end);
            }
            6 => {
                let from = chance.below(other.len() + 1);
                let piece = other[from..].to_vec();
                bytes.truncate(at);
                bytes.extend(piece);
            }
            _ => {
                let end = at + chance.below((bytes.len() - at).min(6) + 1);
                drop(bytes.splice(at..end, BITS[chance.below(BITS.len())].bytes()));
            }
        }
    }
    bytes
}

/// Samples of a property: those in the code, and whatever a fuzzer once found.
fn samples(name: &str, given: &[&str]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = given.iter().map(|text| text.as_bytes().to_vec()).collect();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions").join(name);
    let mut paths: Vec<_> =
        std::fs::read_dir(kept).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    all.extend(paths.iter().map(|path| std::fs::read(path).unwrap()));
    all
}

fn run(name: &str, given: &[&str], mut check: impl FnMut(&[u8])) {
    let samples = samples(name, given);
    for sample in &samples {
        check(sample);
    }
    let (started, mut chance) = (Instant::now(), Chance(0x9e37_79b9_7f4a_7c15));
    let (rounds, patience) = effort();
    for round in 0..rounds {
        if round % 64 == 0 && started.elapsed() > patience {
            println!("{name}: {round} mutations");
            break;
        }
        let (one, other) = (chance.below(samples.len()), chance.below(samples.len()));
        let bytes = mutate(&samples[one], &samples[other], &mut chance);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&bytes)));
        assert!(caught.is_ok(), "{name} fails on {:?}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn what_the_wire_is_sent_is_read_or_refused() {
    for (name, check, given) in wire::WIRE {
        run(name, given, check);
    }
}

#[test]
fn what_the_office_reads_is_read_or_refused() {
    for (name, check, given) in office::OFFICE {
        run(name, given, check);
    }
}

#[test]
fn exported_books_are_read_whole_or_not_at_all() {
    let folder = crate::harness::TestDir::new();
    let mut books = posthaste_engine::store::open_writer(&folder.path().join("books.db")).unwrap();
    let mut lines = Vec::new();
    posthaste_engine::store::write_rows(&books, "main", &mut lines, &mut |_| true).unwrap();
    let text = String::from_utf8(lines).unwrap();
    office::books_export(&mut books, text.as_bytes());
    run("books_export", &[&text], |bytes| office::books_export(&mut books, bytes));
}

#[test]
fn every_property_has_a_target() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let names = wire::WIRE.iter().map(|one| one.0).chain(office::OFFICE.iter().map(|one| one.0));
    for name in names.chain(["books_export"]) {
        assert!(targets.join(format!("{name}.rs")).exists(), "{name} is not fuzzed");
    }
}
