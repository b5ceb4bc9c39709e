//! The container of a backup: a tar archive (ustar), written and read as a stream. Only regular files.

use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};
use tar::{Archive, Header};

const BLOCK: usize = 512;
/// Bytes copied at a time.
const PIECE: usize = 64 << 10;

/// The SHA-256 of an entry's bytes, in hex.
pub type Hash = String;

/// Writes entries one after the other.
#[derive(Debug)]
pub(super) struct TarWriter<W> {
    out: W,
    /// Modification time of every entry, in seconds.
    time: u64,
}

impl<W: Write> TarWriter<W> {
    pub(crate) fn new(out: W, time: u64) -> Self {
        Self { out, time }
    }

    /// Copies exactly `size` bytes into an entry. `each` is told of every piece and may stop the copy by an error.
    pub(crate) fn entry(
        &mut self,
        name: &str,
        size: u64,
        content: &mut dyn Read,
        each: &mut dyn FnMut(u64) -> io::Result<()>,
    ) -> io::Result<Hash> {
        let mut header = Header::new_ustar();
        header.set_path(name)?;
        header.set_size(size);
        header.set_mode(0o600);
        header.set_mtime(self.time);
        header.set_cksum();
        self.out.write_all(header.as_bytes())?;
        let copied = copy(&mut content.take(size), &mut |piece| {
            self.out.write_all(piece)?;
            each(piece.len() as u64)
        });
        let (hash, count) = copied?;
        if count < size {
            return Err(io::Error::other(format!("{name} became shorter while it was read")));
        }
        self.out.write_all(&[0; BLOCK][..padding(size)])?;
        Ok(hash)
    }

    /// Ends the archive.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&[0; BLOCK * 2])?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// An entry of an archive. Its bytes must be taken before the next entry.
pub(super) struct Entry<'a, R: Read> {
    pub(super) name: String,
    pub(super) size: u64,
    content: tar::Entry<'a, R>,
}

/// The entries of an archive, one after the other.
pub(super) fn entries<R: Read>(
    archive: &mut Archive<R>,
) -> io::Result<impl Iterator<Item = io::Result<Entry<'_, R>>>> {
    Ok(archive.entries()?.map(|entry| Entry::of(entry?)))
}

impl<'a, R: Read> Entry<'a, R> {
    fn of(content: tar::Entry<'a, R>) -> io::Result<Self> {
        if !content.header().entry_type().is_file() {
            return Err(bad("an entry is not a regular file"));
        }
        let name = str::from_utf8(&content.path_bytes()).map_err(|_| bad("a name is not UTF-8"))?.to_owned();
        Ok(Self { name, size: content.size(), content })
    }

    /// Hands its bytes to `take`, piece by piece, and gives their hash.
    pub(crate) fn copy(&mut self, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<Hash> {
        let (hash, count) = copy(&mut self.content, take)?;
        match count == self.size {
            true => Ok(hash),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Hands what can be read to `take`: its hash and its length.
fn copy(content: &mut dyn Read, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<(Hash, u64)> {
    let (mut hash, mut done) = (Sha256::new(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        match content.read(&mut piece)? {
            0 => return Ok((hex(&hash.finalize()), done)),
            count => {
                hash.update(&piece[..count]);
                take(&piece[..count])?;
                done += count as u64;
            }
        }
    }
}

fn padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or(0);
    if over == 0 { 0 } else { BLOCK - over }
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
        let mut archive = Archive::new(bytes);
        let mut found = Vec::new();
        for entry in entries(&mut archive)? {
            let (mut entry, mut taken) = (entry?, Vec::new());
            entry.copy(&mut |piece| {
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
    fn a_name_that_does_not_fit_is_refused() {
        let mut tar = TarWriter::new(Vec::new(), 0);
        assert!(tar.entry(&"n".repeat(101), 0, &mut io::empty(), &mut |_| Ok(())).is_err());
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
