//! MAP over standard input and output: one JSON value per line, both ways.

use futures_util::stream;
use posthaste_engine::Engine;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use super::MAX_MESSAGE;
use super::connection::{Connection, Line};
use super::outbox::Outbox;
use crate::Door;
use posthaste_host::caller::Identity;

/// Serves one peer until its input ends, under the identity with which the program was started.
pub async fn serve(
    door: Door,
    engine: Engine,
    identity: Identity,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
) {
    let (out, frames) = Outbox::queue();
    let line = Line::new(out, door.stop().child_token());
    let writing = tokio::spawn(write(output, frames, line.clone()));
    let mut connection = Connection::new(door, engine, Some((identity, None)), None, line);
    connection.run(&mut Box::pin(lines(input))).await;
    drop(connection);
    drop(writing.await);
}

/// The lines of an input, without blank ones. A line that is too long or not UTF-8 is replaced by one that is not JSON; later
/// lines are still read.
pub fn lines(input: impl AsyncRead + Unpin + Send) -> impl futures_util::Stream<Item = String> + Send {
    stream::unfold(BufReader::new(input), async |mut input| {
        loop {
            let line = line(&mut input).await?;
            if !line.trim().is_empty() {
                return Some((line, input));
            }
        }
    })
}

/// The next line, without its line break; `None` at the end of the input.
async fn line(input: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let (mut line, mut fits, mut begun) = (Vec::new(), true, false);
    loop {
        let ready = input.fill_buf().await.ok()?;
        let end = ready.iter().position(|byte| *byte == b'\n');
        let part = &ready[..end.unwrap_or(ready.len())];
        fits &= line.len() + part.len() <= MAX_MESSAGE;
        if fits {
            line.extend_from_slice(part);
        }
        let is_over = ready.is_empty();
        let taken = part.len() + usize::from(end.is_some());
        input.consume(taken);
        begun |= taken > 0;
        if end.is_some() || (is_over && begun) {
            let text = if fits { String::from_utf8(line).ok() } else { None };
            return Some(text.unwrap_or_else(|| "not a line of text, or too long".to_owned()));
        }
        if is_over {
            return None;
        }
    }
}

/// Writes a line per frame, and flushes when no more are queued.
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

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    #[tokio::test]
    async fn bad_lines_do_not_end_the_input() {
        let long = "x".repeat(MAX_MESSAGE + 1);
        let mut input = format!("one\n\n{long}\ntwo\n").into_bytes();
        input.extend(b"\xff\xfe\nthree\r\nlast");
        let lines: Vec<String> = lines(&input[..]).collect().await;
        let shown: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        let bad = "not a line of text, or too long";
        assert_eq!(shown, ["one", bad, "two", bad, "three", "last"]);
    }
}
