//! Parsed events do not depend on how the network splits the stream into chunks.

use posthaste_wire::sse::{Event, Parser, TooLarge, write_event};
use proptest::prelude::*;

/// A stream of random pieces: fields, line breaks of all kinds, and incomplete characters.
fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just(b"data: ".to_vec()),
        Just(b"data".to_vec()),
        Just(b"event:".to_vec()),
        Just(b"id: ".to_vec()),
        Just(b"retry: 12".to_vec()),
        Just(b": ".to_vec()),
        Just(b"\0".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        any::<char>().prop_map(|c| c.to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

type ParseOutcome = (Vec<Event>, Result<(), TooLarge>, String, Option<u64>);

fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> ParseOutcome {
    let mut parser = Parser::new(limit);
    let mut events = Vec::new();
    let end = chunks.into_iter().try_for_each(|chunk| parser.feed(chunk, &mut events));
    (events, end, parser.last_event_id().to_owned(), parser.retry())
}

proptest! {
    #[test]
    fn chunk_sizes_do_not_change_the_events(
        stream in any_stream(),
        sizes in prop::collection::vec(0..7usize, 1..20),
        limit in prop_oneof![Just(usize::MAX), 0..40usize],
    ) {
        let whole = read([&stream[..]], limit);
        prop_assert_eq!(&read(stream.chunks(1), limit), &whole);

        let mut rest = &stream[..];
        let mut chunks: Vec<&[u8]> = Vec::new();
        for size in sizes {
            let (chunk, next) = rest.split_at(size.min(rest.len()));
            chunks.push(chunk);
            rest = next;
        }
        chunks.push(rest);
        prop_assert_eq!(&read(chunks, limit), &whole);
    }

    #[test]
    fn written_events_parse_back(
        events in prop::collection::vec((any::<String>(), "[^\r\n\0]{1,8}", any::<String>()), 0..6)
    ) {
        let mut stream = String::new();
        let mut expect = Vec::new();
        for (id, event, data) in &events {
            write_event(&mut stream, Some(id), Some(event), data);
            expect.push(Event {
                id: id.replace(['\r', '\n', '\0'], ""),
                event: event.clone(),
                data: data.replace("\r\n", "\n").replace('\r', "\n"),
            });
        }
        prop_assert_eq!(read([stream.as_bytes()], usize::MAX).0, expect);
    }
}

/// Splits a stream at every pair of byte offsets.
#[test]
fn every_split_into_three_gives_the_same_events() {
    let stream = "\u{feff}id: 1\r\nevent: é\r\ndata: 😀\rdata\n\n: hm\r\r\ndata:x\r\n\r\n".as_bytes();
    let whole = read([stream], usize::MAX);
    assert_eq!(whole.0.len(), 2);
    for first in 0..=stream.len() {
        for second in first..=stream.len() {
            let chunks = [&stream[..first], &stream[first..second], &stream[second..]];
            assert_eq!(read(chunks, usize::MAX), whole, "{first} {second}");
        }
    }
}
