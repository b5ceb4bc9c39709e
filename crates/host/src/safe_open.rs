//! Opening files that other users or callers can influence. Every component is opened without following links, nothing
//! blocks on a FIFO or device, only regular files are read, and at most a given number of bytes. Calls block on the file
//! system: async code runs them in `spawn_blocking`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{self as sys, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Why a file was not opened or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("there is no such file")]
    Missing,
    #[error("a symbolic link, which is not followed")]
    Link,
    #[error("not a regular file")]
    NotAFile,
    #[error("not a directory, or a symbolic link, which is not followed")]
    NotADirectory,
    #[error("it lies on another file system")]
    OtherDevice,
    #[error("{0} bytes, which is too large")]
    TooLarge(u64),
    #[error("not a plain name or path")]
    BadName,
    #[error("{0}")]
    Io(String),
}

impl From<Errno> for OpenError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Missing,
            Errno::LOOP => Self::Link,
            Errno::NXIO | Errno::ISDIR => Self::NotAFile,
            Errno::NOTDIR => Self::NotADirectory,
            other => Self::Io(io::Error::from(other).to_string()),
        }
    }
}

/// The bytes of a file, and what the system says of it.
#[derive(Debug)]
pub struct Content {
    pub bytes: Vec<u8>,
    pub about: sys::Stat,
}

/// Reads a regular file of an open directory, up to `most` bytes.
pub fn read_at(directory: impl AsFd, name: &OsStr, most: u64) -> Result<Content, OpenError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let handle = sys::openat(directory, check_name(name)?, flags, Mode::empty())?;
    let about = sys::fstat(&handle)?;
    if !FileType::from_raw_mode(about.st_mode).is_file() {
        return Err(OpenError::NotAFile);
    }
    let size = u64::try_from(about.st_size).unwrap_or(0);
    if size > most {
        return Err(OpenError::TooLarge(size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    // One byte more than allowed, because a file may grow while it is read.
    let read = File::from(handle).take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| OpenError::Io(error.to_string()))?;
    if bytes.len() as u64 > most {
        return Err(OpenError::TooLarge(bytes.len() as u64));
    }
    Ok(Content { bytes, about })
}

/// Reads a file by its path: links in its directory's path are followed, the file itself is opened as above. For paths
/// that the user running the program chose.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, OpenError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(OpenError::BadName);
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let directory = sys::openat(sys::CWD, parent, directory_flags(), Mode::empty())?;
    Ok(read_at(directory, name, most)?.bytes)
}

/// The same as text.
pub fn read_text(path: &Path, most: u64) -> Result<String, OpenError> {
    String::from_utf8(read(path, most)?).map_err(|_| OpenError::Io("it is not UTF-8".to_owned()))
}

/// A directory that was opened without following links.
#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
    about: sys::Stat,
}

impl Folder {
    /// Opens an absolute path; no component of it may be a link.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let mut parts = path.components();
        if parts.next() != Some(Component::RootDir) {
            return Err(OpenError::BadName);
        }
        let root = sys::openat(sys::CWD, "/", directory_flags(), Mode::empty())?;
        let mut folder = Self::of(root)?;
        for part in parts {
            let Component::Normal(name) = part else { return Err(OpenError::BadName) };
            folder = folder.enter(name)?;
        }
        Ok(folder)
    }

    /// Opens a path that the user running the program chose, or that lies in the server's own directory; links in it are
    /// followed.
    pub fn at(path: &Path) -> Result<Self, OpenError> {
        Self::of(sys::openat(sys::CWD, path, directory_flags(), Mode::empty())?)
    }

    /// Opens a directory of this one.
    pub fn enter(&self, name: &OsStr) -> Result<Self, OpenError> {
        let flags = directory_flags() | OFlags::NOFOLLOW;
        Self::of(sys::openat(&self.handle, check_name(name)?, flags, Mode::empty())?)
    }

    fn of(handle: OwnedFd) -> Result<Self, OpenError> {
        let about = sys::fstat(&handle)?;
        Ok(Self { handle, about })
    }

    /// The account that owns the directory.
    pub fn owner(&self) -> u32 {
        self.about.st_uid
    }

    /// Reads a file of this directory.
    pub fn read(&self, name: &OsStr, most: u64) -> Result<Vec<u8>, OpenError> {
        Ok(read_at(&self.handle, name, most)?.bytes)
    }

    /// Reads a file below this directory, on the same file system.
    pub fn read_below(&self, path: &Path, most: u64) -> Result<Vec<u8>, OpenError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(OpenError::BadName);
        };
        let mut inner: Option<Self> = None;
        for part in parent.components() {
            let Component::Normal(part) = part else { return Err(OpenError::BadName) };
            let next = inner.as_ref().unwrap_or(self).enter(part)?;
            if next.about.st_dev != self.about.st_dev {
                return Err(OpenError::OtherDevice);
            }
            inner = Some(next);
        }
        let content = read_at(&inner.as_ref().unwrap_or(self).handle, name, most)?;
        if content.about.st_dev != self.about.st_dev {
            return Err(OpenError::OtherDevice);
        }
        Ok(content.bytes)
    }

    /// The names in this directory, `most` of them at most.
    pub fn names(&self, most: usize) -> Result<Vec<OsString>, OpenError> {
        use std::os::unix::ffi::OsStrExt as _;
        let readable = sys::openat(&self.handle, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::read_from(readable)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
            if names.len() >= most {
                break;
            }
        }
        Ok(names)
    }

    /// What the files of this directory take on the disk, in blocks of 4 KiB.
    pub fn disk_bytes(&self) -> u64 {
        const BLOCK: u64 = 4 << 10;
        let sizes = self.names(usize::MAX).unwrap_or_default().into_iter().filter_map(|name| {
            let about = sys::statat(&self.handle, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let is_file = FileType::from_raw_mode(about.st_mode).is_file();
            is_file.then(|| u64::try_from(about.st_size).unwrap_or(0).next_multiple_of(BLOCK).max(BLOCK))
        });
        sizes.sum()
    }

    /// Whether anything has that name, links included.
    pub fn has(&self, name: &OsStr) -> bool {
        sys::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Writes a file and puts it in place of what had the name. The new file is made under a name that did not exist, so
    /// that no link is followed.
    pub fn replace(&self, name: &OsStr, bytes: &[u8], mode: u32) -> Result<(), OpenError> {
        let name = check_name(name)?;
        let fresh = OsString::from(format!(".{}.new", posthaste_engine::stamp::secret()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = sys::openat(&self.handle, &fresh, flags, Mode::RUSR | Mode::WUSR)?;
        let mut file = File::from(handle);
        let done = file
            .write_all(bytes)
            .and_then(|()| Ok(sys::fchmod(&file, Mode::from_raw_mode(mode as _))?))
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(sys::renameat(&self.handle, &fresh, &self.handle, name)?));
        let done = done.and_then(|()| {
            let readable = sys::openat(&self.handle, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
            Ok(sys::fsync(readable)?)
        });
        if let Err(error) = done {
            // Best effort: the error below is what the caller has to know.
            let _ = sys::unlinkat(&self.handle, &fresh, AtFlags::empty());
            return Err(OpenError::Io(error.to_string()));
        }
        Ok(())
    }

    /// Renames within this directory.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> Result<(), OpenError> {
        Ok(sys::renameat(&self.handle, check_name(from)?, &self.handle, check_name(to)?)?)
    }

    /// Removes a file or link of this directory.
    pub fn remove(&self, name: &OsStr) -> Result<(), OpenError> {
        Ok(sys::unlinkat(&self.handle, check_name(name)?, AtFlags::empty())?)
    }
}

/// Directories on the way need only be entered, not listed.
fn directory_flags() -> OFlags {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    return flags | OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    return flags | OFlags::RDONLY;
}

/// A name of one component.
fn check_name(name: &OsStr) -> Result<&OsStr, OpenError> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name => Ok(name),
        _ => Err(OpenError::BadName),
    }
}

/// Makes a directory that only its owner can enter. One that exists is left as it is.
pub fn make_private_directory(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_below_the_folder_are_read() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let tree = root.join("tree");
        std::fs::create_dir_all(tree.join("sub")).unwrap();
        std::fs::write(tree.join("sub/a.txt"), "hello").unwrap();
        std::fs::write(root.join("secret"), "hush").unwrap();
        symlink(root.join("secret"), tree.join("link")).unwrap();
        symlink(&root, tree.join("up")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(tree.join("pipe")).status().unwrap();
        assert!(made.success());
        let folder = Folder::open(&tree).unwrap();
        let read = |path: &str| folder.read_below(Path::new(path), 100);
        assert_eq!(read("sub/a.txt").unwrap(), b"hello");
        assert_eq!(read("link").unwrap_err(), OpenError::Link);
        assert_eq!(read("up/secret").unwrap_err(), OpenError::NotADirectory);
        assert_eq!(read("pipe").unwrap_err(), OpenError::NotAFile);
        assert_eq!(read("sub").unwrap_err(), OpenError::NotAFile);
        assert_eq!(read("none").unwrap_err(), OpenError::Missing);
        for bad in ["../secret", "sub/../../secret", "/etc/passwd", "", ".."] {
            assert_eq!(read(bad).unwrap_err(), OpenError::BadName, "{bad}");
        }
        assert_eq!(folder.read_below(Path::new("sub/a.txt"), 4).unwrap_err(), OpenError::TooLarge(5));
        assert_eq!(Folder::open(&tree.join("up")).unwrap_err(), OpenError::NotADirectory);
        assert!(matches!(
            Folder::open(Path::new("/dev")).unwrap().read(OsStr::new("zero"), 9),
            Err(OpenError::NotAFile)
        ));
    }

    #[test]
    fn a_file_that_is_replaced_is_not_written_through() {
        use std::os::unix::fs::PermissionsExt as _;
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        std::fs::write(root.join("victim"), "mine").unwrap();
        symlink(root.join("victim"), root.join("hook")).unwrap();
        let folder = Folder::open(&root).unwrap();
        folder.replace(OsStr::new("hook"), b"script", 0o755).unwrap();
        assert_eq!(std::fs::read_to_string(root.join("victim")).unwrap(), "mine");
        let about = std::fs::symlink_metadata(root.join("hook")).unwrap();
        assert!(about.is_file());
        assert_eq!(about.permissions().mode() & 0o777, 0o755);
        assert_eq!(folder.names(10).unwrap().len(), 2);
    }
}
