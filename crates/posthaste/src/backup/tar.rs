//! The container of a backup: a POSIX tar archive (ustar), written and read as a stream. Only regular files.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

const BLOCK: usize = 512;
/// Bytes copied at a time.
const PIECE: usize = 64 << 10;
/// Larger sizes do not fit the octal field and are written in base 256, as GNU tar does.
const MOST_OCTAL: u64 = 0o77_777_777_777;

/// The SHA-256 of an entry's bytes, in hex.
pub(crate) type Hash = String;

/// Writes entries one after the other.
#[derive(Debug)]
pub(super) struct TarWriter<W> {
    out: W,
    /// Modification time of every entry, in seconds.
    time: u64,
}

impl<W: Write> TarWriter<W> {
    pub(super) fn new(out: W, time: u64) -> Self {
        Self { out, time }
    }

    /// Copies exactly `size` bytes into an entry. `each` is told of every piece and may stop the copy by an error.
    pub(super) fn entry(
        &mut self,
        name: &str,
        size: u64,
        content: &mut dyn Read,
        each: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> io::Result<Hash> {
        self.out.write_all(&header(name, size, self.time)?)?;
        let (mut hash, mut left) = (Sha256::new(), size);
        let mut piece = vec![0; PIECE];
        while left > 0 {
            let room = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let count = content.read(&mut piece[..room])?;
            if count == 0 {
                return Err(io::Error::other(format!("{name} became shorter while it was read")));
            }
            hash.update(&piece[..count]);
            self.out.write_all(&piece[..count])?;
            left -= count as u64;
            each(count as u64)?;
        }
        self.out.write_all(&[0; BLOCK][..padding(size)])?;
        Ok(hex(&hash.finalize()))
    }

    /// Ends the archive.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&[0; BLOCK * 2])?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// What an entry is called, and how large it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) size: u64,
}

/// Reads entries one after the other. The bytes of each must be taken before the next.
#[derive(Debug)]
pub(super) struct TarReader<R> {
    input: R,
}

impl<R: Read> TarReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input }
    }

    /// The next entry; nothing at the end of the archive.
    pub(super) fn next(&mut self) -> io::Result<Option<Entry>> {
        let mut block = [0; BLOCK];
        match self.input.read_exact(&mut block) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let told = octal(&block[148..156])?;
        if told != checksum(&block) {
            return Err(bad("a header has a wrong checksum"));
        }
        if !matches!(block[156], b'0' | 0) {
            return Err(bad("an entry is not a regular file"));
        }
        let (name, prefix) = (text(&block[..100])?, text(&block[345..500])?);
        let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        Ok(Some(Entry { name, size: size_of(&block[124..136])? }))
    }

    /// Hands the bytes of an entry to `take`, piece by piece, and gives their hash.
    pub(super) fn copy(
        &mut self,
        entry: &Entry,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<Hash> {
        let (mut hash, mut left) = (Sha256::new(), entry.size);
        let mut piece = vec![0; PIECE];
        while left > 0 {
            let room = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            self.input.read_exact(&mut piece[..room])?;
            hash.update(&piece[..room]);
            take(&piece[..room])?;
            left -= room as u64;
        }
        let mut rest = [0; BLOCK];
        self.input.read_exact(&mut rest[..padding(entry.size)])?;
        Ok(hex(&hash.finalize()))
    }
}

fn padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or(0);
    if over == 0 { 0 } else { BLOCK - over }
}

fn header(name: &str, size: u64, time: u64) -> io::Result<[u8; BLOCK]> {
    let (prefix, name) = split(name).ok_or_else(|| bad("a name is too long for the archive"))?;
    let mut block = [0; BLOCK];
    put(&mut block, 0, name.as_bytes());
    put(&mut block, 100, b"0000600\0");
    put(&mut block, 108, b"0000000\0");
    put(&mut block, 116, b"0000000\0");
    if size <= MOST_OCTAL {
        put(&mut block, 124, format!("{size:011o}\0").as_bytes());
    } else {
        block[124] = 0x80;
        put(&mut block, 128, &size.to_be_bytes());
    }
    put(&mut block, 136, format!("{:011o}\0", time.min(MOST_OCTAL)).as_bytes());
    block[156] = b'0';
    put(&mut block, 257, b"ustar\x0000");
    put(&mut block, 345, prefix.as_bytes());
    let sum = checksum(&block);
    put(&mut block, 148, format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

fn put(block: &mut [u8; BLOCK], at: usize, bytes: &[u8]) {
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

/// A name as the two fields that a header has for it.
fn split(name: &str) -> Option<(&str, &str)> {
    if name.len() <= 100 {
        return Some(("", name));
    }
    let fits = |at: &usize| *at <= 155 && name.len() - at - 1 <= 100;
    let at = name.match_indices('/').map(|(at, _)| at).find(fits)?;
    Some((&name[..at], &name[at + 1..]))
}

/// The sum of a header's bytes, its own field counted as spaces.
fn checksum(block: &[u8; BLOCK]) -> u64 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    sum(&block[..148]) + 8 * u64::from(b' ') + sum(&block[156..])
}

fn size_of(field: &[u8]) -> io::Result<u64> {
    if field.first() == Some(&0x80) {
        return field
            .get(4..12)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u64::from_be_bytes)
            .ok_or_else(|| bad("a size cannot be read"));
    }
    octal(field)
}

fn octal(field: &[u8]) -> io::Result<u64> {
    let text = text(field)?;
    u64::from_str_radix(text.trim(), 8).map_err(|_| bad("a number cannot be read"))
}

fn text(field: &[u8]) -> io::Result<String> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8(field[..end].to_vec()).map_err(|_| bad("a name is not UTF-8"))
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn hex(bytes: &[u8]) -> Hash {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = TarWriter::new(Vec::new(), 1_700_000_000);
        for (name, bytes) in entries {
            tar.entry(name, bytes.len() as u64, &mut &bytes[..], &mut |_| Ok(())).unwrap();
        }
        tar.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut tar = TarReader::new(bytes);
        let mut found = Vec::new();
        while let Some(entry) = tar.next()? {
            let mut taken = Vec::new();
            tar.copy(&entry, &mut |piece| {
                taken.extend_from_slice(piece);
                Ok(())
            })?;
            found.push((entry.name, taken));
        }
        Ok(found)
    }

    #[test]
    fn entries_come_back_as_they_were_written() {
        let long = format!("attachments/{}/ab/{}", "r".repeat(64), "ab".repeat(32));
        let (large, block) = (vec![7; 200_000], vec![1; BLOCK]);
        let entries: [(&str, &[u8]); 4] = [("a", b""), ("b/c", &block), (&long, b"x"), ("d", &large)];
        let bytes = write(&entries);
        assert_eq!(bytes.len() % BLOCK, 0);
        let found = read(&bytes).unwrap();
        let expected: Vec<_> =
            entries.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_archive_that_is_cut_or_changed_is_noticed() {
        let bytes = write(&[("a", b"hello")]);
        assert!(read(&bytes[..BLOCK + 3]).is_err());
        let mut changed = bytes;
        changed[0] = b'z';
        assert!(read(&changed).is_err());
    }

    #[test]
    fn sizes_beyond_eight_gigabytes_have_room() {
        let size = 9 << 30;
        let block = header("large", size, 0).unwrap();
        assert_eq!(size_of(&block[124..136]).unwrap(), size);
        let most = header("large", MOST_OCTAL, 0).unwrap();
        assert_eq!(size_of(&most[124..136]).unwrap(), MOST_OCTAL);
        assert!(header(&"n".repeat(101), 0, 0).is_err());
    }

    #[test]
    fn the_system_tar_reads_it() {
        let bytes = write(&[("posthaste-backup.json", b"{}"), ("realms/main.db", b"data")]);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.tar");
        std::fs::write(&file, bytes).unwrap();
        let listed = std::process::Command::new("tar").arg("tf").arg(&file).output().unwrap();
        assert_eq!(String::from_utf8(listed.stdout).unwrap(), "posthaste-backup.json\nrealms/main.db\n");
    }
}
