//! Rate limits: one limiter for all doors, keyed by caller and purpose.
//!
//! The rule is GCRA: a bucket as large as the quota that refills evenly, kept as one instant per key. A door takes a
//! turn and renders the answer in its own form; what it needs to say is in [`Turn`].

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// Callers in each part; beyond it, new callers share one bucket.
const MAX_KEYS_PER_PART: usize = 16_384;
/// The map is kept in parts, so that callers on different cores seldom wait for each other.
const PARTS: usize = 16;
/// The key of the bucket that new callers share when a part is full. No caller has an empty name.
const OVERFLOW_KEY: &str = "";

/// A number of calls in a span of time; zero is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// How many; also the largest burst.
    pub count: u32,
    /// In how long.
    pub span: Duration,
}

/// The quotas of a server. Zero is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Calls at any door, by token. High: it stops runaway clients, not busy ones.
    pub calls: Quota,
    /// Requests of any kind, by token or, without one, by address.
    pub requests: Quota,
    /// Messages, by sender.
    pub messages: Quota,
    /// Messages to everyone, by sender.
    pub broadcasts: Quota,
    /// Heartbeats, by agent.
    pub heartbeats: Quota,
    /// Requests for consent, by agent.
    pub consents: Quota,
    /// New identities, by address.
    pub registrations: Quota,
}

impl Default for Rates {
    fn default() -> Self {
        let minute = |count| Quota { count, span: Duration::from_secs(60) };
        let hour = |count| Quota { count, span: Duration::from_secs(3_600) };
        Self {
            calls: Quota { count: 100_000, span: Duration::from_secs(1) },
            requests: minute(6_000),
            messages: minute(60),
            broadcasts: minute(10),
            heartbeats: minute(30),
            consents: hour(20),
            // What the published conformance checks need from one address.
            registrations: hour(200),
        }
    }
}

/// What came of asking for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The quota.
    pub limit: u32,
    /// How many more could follow at once.
    pub left: u32,
    /// Until the bucket is full again.
    pub full_in: Duration,
    /// Nothing if the turn was granted, else how long to wait for one.
    pub wait: Option<Duration>,
}

impl Turn {
    /// A turn without a limit.
    pub const FREE: Self = Self { limit: u32::MAX, left: u32::MAX, full_in: Duration::ZERO, wait: None };

    /// Whether the caller may go on.
    pub fn is_granted(&self) -> bool {
        self.wait.is_none()
    }

    /// The wait in whole seconds, rounded up, as `Retry-After` has it.
    pub fn wait_seconds(&self) -> Option<u64> {
        self.wait.map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
    }

    /// The tighter of two turns, which is the one worth telling.
    #[must_use]
    pub fn or_tighter(self, other: Self) -> Self {
        match (self.wait, other.wait) {
            (Some(_), None) => self,
            (None, Some(_)) => other,
            _ if other.left < self.left => other,
            _ => self,
        }
    }

    /// Writes `X-RateLimit-Limit`, `-Remaining` and `-Reset` (seconds from now), and `Retry-After` if there is a wait.
    pub fn write(&self, headers: &mut HeaderMap) {
        if self.limit == u32::MAX {
            return;
        }
        let mut put = |name: &'static str, number: u64| {
            headers.insert(HeaderName::from_static(name), HeaderValue::from(number));
        };
        put("x-ratelimit-limit", self.limit.into());
        put("x-ratelimit-remaining", self.left.into());
        put("x-ratelimit-reset", self.full_in.as_secs() + u64::from(self.full_in.subsec_nanos() > 0));
        if let Some(seconds) = self.wait_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
    }
}

/// The buckets of all callers. They are in memory only.
#[derive(Debug)]
pub struct Limiter {
    started: Instant,
    hasher: RandomState,
    parts: [Mutex<Part>; PARTS],
}

type Part = HashMap<(&'static str, String), Arc<AtomicU64>>;

/// One caller's bucket, for doors that keep it instead of looking it up for every call. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// When it will be full again, in nanoseconds since the start.
    full_at: Arc<AtomicU64>,
    pace: Option<Pace>,
    quota: Quota,
    started: Instant,
}

impl Bucket {
    /// Takes a turn.
    pub fn take(&self) -> Turn {
        self.take_at(self.started.elapsed())
    }

    fn take_at(&self, now: Duration) -> Turn {
        let Some(pace) = self.pace else { return Turn::FREE };
        let now = nanos(now);
        let mut seen = self.full_at.load(Ordering::Relaxed);
        loop {
            let full_at = seen.max(now);
            let after = full_at.saturating_add(pace.each);
            if after - now > pace.span {
                return pace.turn(self.quota, full_at - now, Some(after - now - pace.span));
            }
            match self.full_at.compare_exchange_weak(seen, after, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return pace.turn(self.quota, after - now, None),
                Err(other) => seen = other,
            }
        }
    }
}

impl Default for Limiter {
    fn default() -> Self {
        Self { started: Instant::now(), hasher: RandomState::new(), parts: Default::default() }
    }
}

impl Limiter {
    /// Takes a turn at `what` for `who`.
    pub fn take(&self, what: &'static str, who: &str, quota: Quota) -> Turn {
        self.take_at(what, who, quota, self.started.elapsed())
    }

    /// Takes a turn for an address; the addresses of one IPv6 network count as one.
    pub fn take_from(&self, what: &'static str, address: IpAddr, quota: Quota) -> Turn {
        self.take(what, &network(address), quota)
    }

    /// The state of a bucket, without taking a turn.
    pub fn look(&self, what: &'static str, who: &str, quota: Quota) -> Turn {
        let Some(pace) = Pace::of(quota) else { return Turn::FREE };
        let now = nanos(self.started.elapsed());
        let part = self.part(what, who).lock().unwrap_or_else(PoisonError::into_inner);
        let full_at =
            part.get(&(what, who.to_owned())).map_or(0, |cell| cell.load(Ordering::Relaxed)).max(now);
        pace.turn(quota, full_at - now, None)
    }

    /// The bucket of `who` for `what`, to be kept for as long as it is the same caller.
    pub fn bucket(&self, what: &'static str, who: &str, quota: Quota) -> Bucket {
        self.bucket_at(what, who, quota, self.started.elapsed())
    }

    fn take_at(&self, what: &'static str, who: &str, quota: Quota, now: Duration) -> Turn {
        self.bucket_at(what, who, quota, now).take_at(now)
    }

    fn bucket_at(&self, what: &'static str, who: &str, quota: Quota, now: Duration) -> Bucket {
        let of = |full_at, pace| Bucket { full_at, pace, quota, started: self.started };
        let Some(pace) = Pace::of(quota) else { return of(Arc::default(), None) };
        let now = nanos(now);
        let mut part = self.part(what, who).lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = (what, who.to_owned());
        if part.len() >= MAX_KEYS_PER_PART && !part.contains_key(&key) {
            part.retain(|_, full_at| full_at.load(Ordering::Relaxed) > now || Arc::strong_count(full_at) > 1);
            if part.len() >= MAX_KEYS_PER_PART {
                key.1 = OVERFLOW_KEY.to_owned();
            }
        }
        of(part.entry(key).or_default().clone(), Some(pace))
    }

    fn part(&self, what: &str, who: &str) -> &Mutex<Part> {
        let index = self.hasher.hash_one((what, who)) as usize % PARTS;
        &self.parts[index]
    }
}

/// A quota in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Pace {
    each: u64,
    span: u64,
}

impl Pace {
    fn of(quota: Quota) -> Option<Self> {
        let count = u64::from(quota.count);
        let each = nanos(quota.span).checked_div(count)?.max(1);
        // A multiple of whole turns, so that rounding never costs the last one.
        Some(Self { each, span: each.saturating_mul(count) })
    }

    fn turn(self, quota: Quota, used: u64, wait: Option<u64>) -> Turn {
        let left = (self.span.saturating_sub(used)) / self.each;
        Turn {
            limit: quota.count,
            left: u32::try_from(left).unwrap_or(u32::MAX),
            full_in: Duration::from_nanos(used),
            wait: wait.map(Duration::from_nanos),
        }
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// What counts as one caller: an IPv4 address, or the /64 that one IPv6 customer has to itself.
pub fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

impl FromStr for Quota {
    type Err = String;

    /// `60/m`: a number and one of s, m, h, d; or `off`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self { count: 0, span: Duration::from_secs(60) });
        }
        let refused = || format!("`{text}` is not a rate like 60/m, 20/h or off");
        let (count, unit) = text.split_once('/').ok_or_else(refused)?;
        let span = match unit.trim() {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return Err(refused()),
        };
        let count = count.trim().parse().map_err(|_| refused())?;
        Ok(Self { count, span: Duration::from_secs(span) })
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count == 0 {
            return f.write_str("off");
        }
        match self.span.as_secs() {
            1 => write!(f, "{}/s", self.count),
            60 => write!(f, "{}/m", self.count),
            3_600 => write!(f, "{}/h", self.count),
            86_400 => write!(f, "{}/d", self.count),
            other => write!(f, "{}/{other}s", self.count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIX: Quota = Quota { count: 6, span: Duration::from_secs(60) };

    fn second(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn a_bucket_is_as_large_as_the_quota_and_refills_evenly() {
        let limiter = Limiter::default();
        for left in (0..6).rev() {
            let turn = limiter.take_at("x", "ann", SIX, second(0));
            assert_eq!((turn.wait, turn.left), (None, left));
        }
        let refused = limiter.take_at("x", "ann", SIX, second(1));
        assert_eq!((refused.wait, refused.left), (Some(second(9)), 0));
        assert_eq!(refused.wait_seconds(), Some(9));
        assert!(limiter.take_at("x", "ann", SIX, second(10)).is_granted());
        assert!(!limiter.take_at("x", "ann", SIX, second(10)).is_granted());
        // A refusal costs nothing: a minute later the bucket is full.
        for _ in 0..6 {
            assert!(limiter.take_at("x", "ann", SIX, second(71)).is_granted());
        }
    }

    #[test]
    fn callers_and_purposes_do_not_share_a_bucket() {
        let limiter = Limiter::default();
        let one = Quota { count: 1, span: second(60) };
        assert!(limiter.take_at("x", "ann", one, second(0)).is_granted());
        assert!(!limiter.take_at("x", "ann", one, second(0)).is_granted());
        assert!(limiter.take_at("x", "bob", one, second(0)).is_granted());
        assert!(limiter.take_at("y", "ann", one, second(0)).is_granted());
    }

    #[test]
    fn zero_is_no_limit() {
        let limiter = Limiter::default();
        let off: Quota = "off".parse().unwrap();
        for _ in 0..1_000 {
            assert_eq!(limiter.take("x", "ann", off), Turn::FREE);
        }
        let mut headers = HeaderMap::new();
        Turn::FREE.write(&mut headers);
        assert!(headers.is_empty());
    }

    #[test]
    fn strangers_cannot_make_it_grow_without_end() {
        let limiter = Limiter::default();
        let one = Quota { count: 1, span: second(60) };
        let many = MAX_KEYS_PER_PART * PARTS + PARTS * 64;
        let granted = (0..many).filter(|n| limiter.take_at("x", &n.to_string(), one, second(0)).is_granted());
        assert!(granted.count() < many, "newcomers share a bucket when there is no more room");
        let kept: usize = limiter.parts.iter().map(|part| part.lock().unwrap().len()).sum();
        assert!(kept <= (MAX_KEYS_PER_PART + 1) * PARTS, "{kept}");
        // Later there is room again.
        assert!(limiter.take_at("x", "late", one, second(61)).is_granted());
    }

    #[test]
    fn a_network_of_ipv6_is_one_caller() {
        let limiter = Limiter::default();
        let one = Quota { count: 1, span: second(60) };
        let take = |text: &str| limiter.take_from("x", text.parse().unwrap(), one).is_granted();
        assert!(take("2001:db8:1:2::1"));
        assert!(!take("2001:db8:1:2:ffff::9"));
        assert!(take("2001:db8:1:3::1"));
        assert!(take("10.0.0.1"));
        assert!(!take("::ffff:10.0.0.1"));
    }

    #[test]
    fn rates_are_written_as_they_are_read() {
        for text in ["60/m", "20/h", "5/s", "1/d", "off"] {
            assert_eq!(text.parse::<Quota>().unwrap().to_string(), text);
        }
        for text in ["", "60", "x/m", "60/", "60/y", "-1/m"] {
            assert!(text.parse::<Quota>().is_err(), "{text}");
        }
    }

    #[test]
    fn headers_tell_what_is_left() {
        let limiter = Limiter::default();
        let mut headers = HeaderMap::new();
        limiter.take_at("x", "ann", SIX, second(0)).write(&mut headers);
        assert_eq!(headers["x-ratelimit-limit"], "6");
        assert_eq!(headers["x-ratelimit-remaining"], "5");
        assert_eq!(headers["x-ratelimit-reset"], "10");
        assert!(!headers.contains_key("retry-after"));
    }
}
