//! Random numbers, the same in every run with the same seed.

use std::time::Duration;

#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    /// A stream of its own for each number under a seed.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut rng = Self(seed ^ stream.wrapping_mul(0xD134_2543_DE82_EF95));
        rng.next();
        rng
    }

    /// SplitMix64: small, and good enough for choices of a soak.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below another.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// True once in `times` calls, on average.
    pub(super) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below(from.len() as u64)).unwrap_or(0);
        from.get(index)
    }

    /// At least `from` and less than `to` milliseconds.
    pub(super) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to.saturating_sub(from)))
    }

    /// A span between half and one and a half of the given one.
    pub(super) fn about(&mut self, span: Duration) -> Duration {
        span.mul_f64(0.5 + self.below(1_000) as f64 / 1_000.0)
    }

    /// The text of a message: mostly a line, sometimes pages, so that slow readers fall behind.
    pub(super) fn prose(&mut self) -> String {
        let lines = match self.below(40) {
            0 => 500,
            1..=4 => 60,
            _ => 1,
        };
        "Two files are left for you; the tests pass.\n".repeat(lines)
    }

    /// A random UUID, for a task.
    pub(super) fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xFFFF,
            a & 0xFFF,
            b >> 52,
            b & 0xFFFF_FFFF_FFFF
        )
    }
}
