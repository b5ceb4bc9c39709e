//! One accepted connection: it counts against the limit until it is dropped, it can be ended from outside, and writes to a
//! peer that stopped reading time out.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::task_tracker::TaskTrackerToken;

/// A slot of the connection limit. It belongs to the stream and not to the task that serves it,
/// because a WebSocket outlives the HTTP connection that it was upgraded from.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) _permit: OwnedSemaphorePermit,
    pub(super) _open: TaskTrackerToken,
}

/// A stream with a slot, a kill switch and a limit on stalled writes.
pub(super) struct Socket<S> {
    io: S,
    _slot: Slot,
    kill: CancellationToken,
    killed: Pin<Box<WaitForCancellationFutureOwned>>,
    patience: Duration,
    /// Runs only while `stalled`; kept between stalls to save the allocation.
    alarm: Option<Pin<Box<Sleep>>>,
    stalled: bool,
}

impl<S> Socket<S> {
    /// `patience` is how long a write may make no progress at all.
    pub(crate) fn new(io: S, slot: Slot, kill: CancellationToken, patience: Duration) -> Self {
        // A token of its own per connection, or else every read would contend for one lock.
        let kill = kill.child_token();
        let killed = Box::pin(kill.clone().cancelled_owned());
        Self { io, _slot: slot, kill, killed, patience, alarm: None, stalled: false }
    }

    fn write<T>(
        &mut self,
        cx: &mut Context<'_>,
        attempt: impl FnOnce(&mut S, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if self.kill.is_cancelled() {
            return Poll::Ready(Err(ended()));
        }
        if let Poll::Ready(done) = attempt(&mut self.io, cx) {
            self.stalled = false;
            return Poll::Ready(done);
        }
        let patience = self.patience;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(patience)));
        if !self.stalled {
            self.stalled = true;
            alarm.as_mut().reset(Instant::now() + patience);
        }
        ready!(alarm.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer stopped reading")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.killed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(ended()));
        }
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.write(cx, |io, cx| Pin::new(io).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |io, cx| Pin::new(io).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write(cx, |io, cx| Pin::new(io).poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write(cx, |io, cx| Pin::new(io).poll_shutdown(cx))
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the server is closing")
}
