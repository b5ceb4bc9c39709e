//! Activity of one connection, so that idle connections can be closed.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use tokio::time::Instant;

/// Requests in progress on one connection, and when the last one ended.
#[derive(Debug)]
pub(super) struct Activity {
    opened: Instant,
    busy: AtomicUsize,
    /// Milliseconds after `opened`, plus one; 0 until the first request.
    last: AtomicU64,
}

/// Held by a request until the last byte of its response is sent.
#[derive(Debug)]
pub(super) struct Busy(Arc<Activity>);

/// The body of a response, which keeps its connection busy.
#[derive(Debug)]
pub(super) struct BusyBody {
    body: Body,
    _busy: Busy,
}

impl Activity {
    pub(crate) fn begin() -> Arc<Self> {
        Arc::new(Self { opened: Instant::now(), busy: AtomicUsize::new(0), last: AtomicU64::new(0) })
    }

    pub(crate) fn request(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::AcqRel);
        self.touch();
        Busy(self.clone())
    }

    /// When the idle timeout ends, as far as is known now: `first` before the first request, `later` after it.
    pub(crate) fn quiet_at(&self, first: Duration, later: Duration) -> Instant {
        match self.last.load(Ordering::Acquire) {
            _ if self.is_busy() => Instant::now() + later,
            0 => self.opened + first,
            last => self.opened + Duration::from_millis(last) + later,
        }
    }

    /// Whether there was no request yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.last.load(Ordering::Acquire) == 0
    }

    fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire) > 0
    }

    fn touch(&self) {
        let since = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.last.store(since + 1, Ordering::Release);
    }
}

impl Busy {
    pub(crate) fn until_sent(self, body: Body) -> BusyBody {
        BusyBody { body, _busy: self }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.touch();
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

impl hyper::body::Body for BusyBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
