//! What goes out to one peer: a queue that one task writes, and a short way past it while nothing is queued.
//!
//! Answers and letters come in bursts and are best written together, by the task that owns the queue. An event goes to
//! many peers at once, mostly one for each: there the second task would only be woken to do what the first could have
//! done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::ws::{Message, WebSocket};
use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use tokio::sync::{Mutex, mpsc};

use super::OUTGOING_FRAMES;

/// Nobody is left to send anything to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer is gone")]
pub(super) struct Gone;

/// The near end. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    /// Bounded, so that whoever has more for a peer that does not read waits.
    queue: mpsc::Sender<String>,
    wire: Option<Arc<Wire>>,
}

/// A WebSocket's way out, and how much is queued for it. Nothing overtakes what is queued.
#[derive(Debug)]
struct Wire {
    queued: AtomicUsize,
    sink: Mutex<SplitSink<WebSocket, Message>>,
}

impl Outbox {
    /// For a carrier that writes what it takes from the queue.
    pub(super) fn queue() -> (Self, mpsc::Receiver<String>) {
        let (queue, frames) = mpsc::channel(OUTGOING_FRAMES);
        (Self { queue, wire: None }, frames)
    }

    /// For a WebSocket.
    pub(super) fn socket(sink: SplitSink<WebSocket, Message>) -> (Self, Frames) {
        let (queue, frames) = mpsc::channel(OUTGOING_FRAMES);
        let wire = Arc::new(Wire { queued: AtomicUsize::new(0), sink: Mutex::new(sink) });
        (Self { queue, wire: Some(wire.clone()) }, Frames { frames, wire })
    }

    /// Queues a frame; waits while too many are.
    pub(super) async fn send(&self, frame: String) -> Result<(), Gone> {
        let place = self.queue.reserve().await.map_err(|_| Gone)?;
        if let Some(wire) = &self.wire {
            wire.queued.fetch_add(1, Ordering::AcqRel);
        }
        place.send(frame);
        Ok(())
    }

    /// Queues a frame if there is room.
    pub(super) fn try_send(&self, frame: String) -> Result<(), Gone> {
        let place = self.queue.try_reserve().map_err(|_| Gone)?;
        if let Some(wire) = &self.wire {
            wire.queued.fetch_add(1, Ordering::AcqRel);
        }
        place.send(frame);
        Ok(())
    }

    /// Sends frames together: at once where nothing is queued, else behind that.
    pub(super) async fn send_together(&self, frames: Vec<String>) -> Result<(), Gone> {
        if let Some(wire) = &self.wire
            && let Ok(mut sink) = wire.sink.try_lock()
            && wire.queued.load(Ordering::Acquire) == 0
        {
            for frame in frames {
                sink.feed(Message::Text(frame.into())).await.map_err(|_| Gone)?;
            }
            return sink.flush().await.map_err(|_| Gone);
        }
        for frame in frames {
            self.send(frame).await?;
        }
        Ok(())
    }
}

/// The far end of a WebSocket's queue, for the task that writes it.
#[derive(Debug)]
pub(super) struct Frames {
    frames: mpsc::Receiver<String>,
    wire: Arc<Wire>,
}

impl Frames {
    /// The next frame; none when nobody is left who could send one. Safe to cancel.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.frames.recv().await
    }

    /// Writes a frame and all that are queued behind it.
    pub(super) async fn write(&mut self, frame: String) -> Result<(), axum::Error> {
        let mut sink = self.wire.sink.lock().await;
        sink.feed(Message::Text(frame.into())).await?;
        let mut written = 1;
        while let Ok(frame) = self.frames.try_recv() {
            sink.feed(Message::Text(frame.into())).await?;
            written += 1;
        }
        let flushed = sink.flush().await;
        self.wire.queued.fetch_sub(written, Ordering::AcqRel);
        flushed
    }

    /// Writes what the socket itself has ready: the answer to a peer's goodbye.
    pub(super) async fn flush(&mut self) -> Result<(), axum::Error> {
        self.wire.sink.lock().await.flush().await
    }

    /// Writes a frame that is no text: a ping, or a goodbye after all that is queued.
    pub(super) async fn write_control(&mut self, control: Message) -> Result<(), axum::Error> {
        let mut sink = self.wire.sink.lock().await;
        while let Ok(frame) = self.frames.try_recv() {
            sink.feed(Message::Text(frame.into())).await?;
            self.wire.queued.fetch_sub(1, Ordering::AcqRel);
        }
        sink.send(control).await
    }
}
