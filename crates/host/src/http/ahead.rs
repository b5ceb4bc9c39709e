//! Reading ahead for a busy peer. Readers ask for little at a time, because most peers are idle and there may be many;
//! one that sends more than was asked for is read in larger pieces for as long as it does.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// What is read at once from a busy peer.
const PIECE: usize = 16 << 10;

/// What was read and not yet asked for.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Empty, without memory of its own, unless the peer is busy.
    piece: Vec<u8>,
    /// How much of it has been handed on, and how much of it there is.
    taken: usize,
    filled: usize,
    /// Whether the last reading brought all that was asked for, so that there may be more.
    busy: bool,
}

impl Ahead {
    /// Reads as from the stream itself.
    pub(crate) fn poll_read(
        &mut self,
        io: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
        asked: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.taken < self.filled {
            self.hand_on(asked);
            return Poll::Ready(Ok(()));
        }
        // Whoever asks for much itself gets it without a detour.
        if !self.busy || asked.remaining() >= PIECE / 2 {
            let (room, before) = (asked.remaining(), asked.filled().len());
            ready!(io.poll_read(cx, asked))?;
            let read = asked.filled().len() - before;
            self.busy = read > 0 && read == room;
            return Poll::Ready(Ok(()));
        }
        self.piece.resize(PIECE, 0);
        let mut piece = ReadBuf::new(&mut self.piece);
        let read = match io.poll_read(cx, &mut piece) {
            Poll::Ready(Ok(())) => piece.filled().len(),
            nothing => {
                self.rest();
                return nothing;
            }
        };
        (self.taken, self.filled) = (0, read);
        self.busy = read > asked.remaining();
        self.hand_on(asked);
        Poll::Ready(Ok(()))
    }

    fn hand_on(&mut self, asked: &mut ReadBuf<'_>) {
        let waiting = &self.piece[self.taken..self.filled];
        let given = waiting.len().min(asked.remaining());
        asked.put_slice(&waiting[..given]);
        self.taken += given;
        if self.taken == self.filled && !self.busy {
            self.rest();
        }
    }

    /// The peer is not busy any more.
    fn rest(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// A stream that comes in pieces, with a pause before each.
    struct Pieces {
        pieces: Vec<Vec<u8>>,
        pause: bool,
        readings: usize,
    }

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            asked: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if std::mem::take(&mut self.pause) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.readings += 1;
            let Some(piece) = self.pieces.last_mut() else { return Poll::Ready(Ok(())) };
            let given = piece.len().min(asked.remaining());
            asked.put_slice(&piece[..given]);
            piece.drain(..given);
            if piece.is_empty() {
                self.pieces.pop();
                self.pause = true;
            }
            Poll::Ready(Ok(()))
        }
    }

    struct Reader(Pieces, Ahead);

    impl AsyncRead for Reader {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            asked: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let Self(io, ahead) = &mut *self;
            ahead.poll_read(Pin::new(io), cx, asked)
        }
    }

    fn reader(mut pieces: Vec<Vec<u8>>) -> Reader {
        pieces.retain(|piece| !piece.is_empty());
        pieces.reverse();
        Reader(Pieces { pieces, pause: true, readings: 0 }, Ahead::default())
    }

    /// All that comes, asked for so much at a time, and how often the stream was read.
    async fn all(pieces: Vec<Vec<u8>>, at_a_time: usize) -> (Vec<u8>, usize, usize) {
        let mut reader = reader(pieces);
        let (mut all, mut some) = (Vec::new(), vec![0; at_a_time]);
        loop {
            let read = reader.read(&mut some).await.unwrap();
            if read == 0 {
                return (all, reader.0.readings, reader.1.piece.capacity());
            }
            all.extend_from_slice(&some[..read]);
        }
    }

    #[tokio::test]
    async fn a_busy_peer_is_read_in_larger_pieces() {
        let (all, readings, kept) = all(vec![vec![7; 64 << 10]], 2 << 10).await;
        assert_eq!((all.len(), kept), (64 << 10, 0));
        assert!(readings <= 8, "{readings} readings instead of 33");
    }

    #[tokio::test]
    async fn an_idle_peer_costs_nothing() {
        let mut reader = reader(vec![vec![1; 100], vec![2; 3_000], vec![3; 100]]);
        let mut some = vec![0; 2 << 10];
        for expected in [100, 2_048, 952, 100] {
            assert_eq!(reader.read(&mut some).await.unwrap(), expected);
        }
        assert_eq!(reader.1.piece.capacity(), 0);
    }

    #[tokio::test]
    async fn what_comes_is_what_was_sent() {
        let sizes = [1, 2_047, 2_048, 2_049, 16_383, 16_384, 16_385, 18_432, 40_000];
        for (first, second) in sizes.iter().flat_map(|first| sizes.map(|second| (*first, second))) {
            for at_a_time in [1, 700, 2_048, 8_191, 8_192, 30_000] {
                let pieces: Vec<Vec<u8>> = [first, second, 5]
                    .iter()
                    .enumerate()
                    .map(|(nth, size)| (0..*size).map(|byte| (byte % 251 + nth) as u8).collect())
                    .collect();
                let sent = pieces.concat();
                let (heard, ..) = all(pieces, at_a_time).await;
                assert!(heard == sent, "{first} and {second} bytes, {at_a_time} at a time");
            }
        }
    }
}
