//! MAP over standard input and output: one JSON value per line, both ways.

use futures_util::{StreamExt, stream};
use posthaste_engine::Engine;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use super::MAX_MESSAGE;
use super::connection::{Connection, Line};
use super::outbox::Outbox;
use crate::caller::Identity;
use crate::shared::Shared;

/// Serves one peer until its input ends. Whoever started the program is who it says.
pub(crate) async fn serve(
    shared: Shared,
    engine: Engine,
    identity: Identity,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
) {
    let (out, frames) = Outbox::queue();
    let line = Line::new(out, shared.stop().child_token());
    let writing = tokio::spawn(write(output, frames, line.clone()));
    Connection::new(shared, engine, Some((identity, None)), None, line).run(Box::pin(lines(input))).await;
    drop(writing.await);
}

/// The lines of an input; blank ones are skipped, and one that is too long comes as what it is worth: nothing that can
/// be read.
pub(crate) fn lines(input: impl AsyncRead + Unpin + Send) -> impl futures_util::Stream<Item = String> + Send {
    let lines = FramedRead::new(input, LinesCodec::new_with_max_length(MAX_MESSAGE));
    lines.flat_map(|line| {
        stream::iter(match line {
            Ok(line) if line.trim().is_empty() => None,
            Ok(line) => Some(line),
            Err(LinesCodecError::MaxLineLengthExceeded) => Some("too long".to_owned()),
            Err(LinesCodecError::Io(_)) => None,
        })
    })
}

/// Writes a line for each frame, flushed when there is nothing more to write.
async fn write(mut output: impl AsyncWrite + Unpin, mut frames: mpsc::Receiver<String>, line: Line) {
    loop {
        let frame = tokio::select! {
            biased;
            frame = frames.recv() => frame,
            () = line.stop.cancelled() => None,
        };
        let Some(frame) = frame else { break };
        if put(&mut output, frame, &mut frames).await.is_err() {
            line.stop.cancel();
            return;
        }
    }
    while let Ok(frame) = frames.try_recv() {
        if put(&mut output, frame, &mut frames).await.is_err() {
            return;
        }
    }
}

async fn put(
    output: &mut (impl AsyncWrite + Unpin),
    mut frame: String,
    frames: &mut mpsc::Receiver<String>,
) -> std::io::Result<()> {
    loop {
        frame.push('\n');
        output.write_all(frame.as_bytes()).await?;
        match frames.try_recv() {
            Ok(next) => frame = next,
            Err(_) => return output.flush().await,
        }
    }
}
