//! Checks SQLite's write-ahead log for damage. SQLite stops at the first frame whose checksum is wrong and ignores the
//! rest; after a power cut that is right for the last transaction, and for no other.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// What is wrong with a WAL, if it lost more than a transaction that was being written. The WAL is synced at every
/// commit before the next transaction begins: frames after the end of an unreadable transaction were acknowledged.
pub(super) fn lost_frames(log: &Path) -> Option<String> {
    let scan = Scan::read(log)?;
    (scan.behind > 0).then(|| {
        let Scan { good, behind, .. } = scan;
        format!("frame {} of the log is damaged, and {behind} frames behind it are cut off by that", good + 1)
    })
}

/// Truncates a damaged WAL after its last readable frame, so that it is valid again.
pub(super) fn cut(log: &Path) -> std::io::Result<()> {
    match Scan::read(log) {
        Some(Scan { good, behind, page }) if behind > 0 => {
            let file = File::options().write(true).open(log)?;
            file.set_len((HEADER + good * (FRAME_HEADER + page)) as u64)?;
            file.sync_all()
        }
        _ => Ok(()),
    }
}

struct Scan {
    /// Frames from the beginning with correct checksums.
    good: usize,
    /// Frames after the end of the first transaction that cannot be read.
    behind: usize,
    /// Bytes per page.
    page: usize,
}

impl Scan {
    fn read(log: &Path) -> Option<Self> {
        let mut log = BufReader::with_capacity(1 << 20, File::open(log).ok()?);
        let mut header = [0; HEADER];
        log.read_exact(&mut header).ok()?;
        let big_endian = match word(&header, 0) {
            0x377f_0682 => false,
            0x377f_0683 => true,
            // Not a WAL that SQLite would read.
            _ => return None,
        };
        let page = usize::try_from(word(&header, 8)).ok().filter(|page| (512..=65_536).contains(page))?;
        let mut sum = checksum(big_endian, (0, 0), &header[..24]);
        if sum != (word(&header, 24), word(&header, 28)) {
            return None;
        }
        let mut frame = vec![0; FRAME_HEADER + page];
        let mut scan = Self { good: 0, behind: 0, page };
        let (mut broken, mut ended) = (false, false);
        while log.read_exact(&mut frame).is_ok() {
            if !broken {
                let next = checksum(big_endian, sum, &frame[..8]);
                let next = checksum(big_endian, next, &frame[FRAME_HEADER..]);
                let sums = next == (word(&frame, 16), word(&frame, 20));
                if sums && frame[8..16] == header[16..24] {
                    sum = next;
                    scan.good += 1;
                    continue;
                }
                broken = true;
            }
            // Frames of an earlier round of the WAL have other salts; they were checkpointed long ago.
            if frame[8..16] != header[16..24] {
                // Unless it is the damaged frame itself, no frame of this round follows.
                if ended || scan.behind > 0 {
                    break;
                }
                continue;
            }
            if ended {
                scan.behind += 1;
            }
            // The last frame of a transaction contains the size of the database.
            ended |= word(&frame, 4) != 0;
        }
        Some(scan)
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// SQLite's WAL checksum: two sums over pairs of words.
fn checksum(big_endian: bool, (mut a, mut b): (u32, u32), bytes: &[u8]) -> (u32, u32) {
    let read = |word: &[u8]| {
        let word = word.try_into().unwrap_or_default();
        if big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    };
    for pair in bytes.chunks_exact(8) {
        a = a.wrapping_add(read(&pair[..4])).wrapping_add(b);
        b = b.wrapping_add(read(&pair[4..])).wrapping_add(a);
    }
    (a, b)
}
