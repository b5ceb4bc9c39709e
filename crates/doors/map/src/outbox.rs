//! Outgoing frames of one peer: a queue that one task writes, and direct writes while the queue is empty.
//!
//! Answers and messages come in bursts and are best written together, by the task that owns the queue. An event goes to many
//! peers at once, mostly one frame for each; there a second task would only be woken to write what the first could have
//! written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::ws::{Message, WebSocket};
use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use tokio::sync::{Mutex, mpsc};

use super::OUTGOING_FRAMES;

/// The peer is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer is gone")]
pub(super) struct Gone;

/// The sending end. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Outbox {
    /// Bounded, so that senders wait for a peer that does not read.
    queue: mpsc::Sender<String>,
    wire: Option<Arc<Wire>>,
}

/// A WebSocket's sink, and the number of frames queued for it. No frame overtakes queued ones.
#[derive(Debug)]
struct Wire {
    queued: AtomicUsize,
    sink: Mutex<SplitSink<WebSocket, Message>>,
}

impl Outbox {
    /// For a transport that writes what it takes from the queue.
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

    /// Queues a frame; waits while the queue is full.
    pub(super) async fn send(&self, frame: String) -> Result<(), Gone> {
        let permit = self.queue.reserve().await.map_err(|_| Gone)?;
        if let Some(wire) = &self.wire {
            wire.queued.fetch_add(1, Ordering::AcqRel);
        }
        permit.send(frame);
        Ok(())
    }

    /// Queues a frame if there is room.
    pub(super) fn try_send(&self, frame: String) -> Result<(), Gone> {
        let permit = self.queue.try_reserve().map_err(|_| Gone)?;
        if let Some(wire) = &self.wire {
            wire.queued.fetch_add(1, Ordering::AcqRel);
        }
        permit.send(frame);
        Ok(())
    }

    /// Sends frames together: directly if nothing is queued, else through the queue.
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

/// The receiving end of a WebSocket's queue, for the task that writes it.
#[derive(Debug)]
pub(super) struct Frames {
    frames: mpsc::Receiver<String>,
    wire: Arc<Wire>,
}

impl Frames {
    /// The next frame; `None` when all senders are gone. Safe to cancel.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.frames.recv().await
    }

    /// Writes a frame and all that are queued after it.
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

    /// Flushes what the socket itself has ready: the answer to a peer's close frame.
    pub(super) async fn flush(&mut self) -> Result<(), axum::Error> {
        self.wire.sink.lock().await.flush().await
    }

    /// Writes a control frame after all queued frames: a ping or a close.
    pub(super) async fn write_control(&mut self, control: Message) -> Result<(), axum::Error> {
        let mut sink = self.wire.sink.lock().await;
        while let Ok(frame) = self.frames.try_recv() {
            sink.feed(Message::Text(frame.into())).await?;
            self.wire.queued.fetch_sub(1, Ordering::AcqRel);
        }
        sink.send(control).await
    }
}
