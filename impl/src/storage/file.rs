//! A storage in a directory.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

use super::{MAX_RESERVED_BYTES, Operation, Storage, StorageError, check_name};

/// The end of the name of a file that is going to replace another one.
pub(super) const TMP_SUFFIX: &str = ".tmp";

/// Longest name of a directory, in bytes.
const MAX_DIR_NAME_BYTES: usize = 255;

/// The files of one directory. Directories in it, and files whose name is not allowed, are left alone.
///
/// A replacement is written beside the old file, made durable, and renamed over it, as Kafka's checkpoints are. What a
/// crash leaves of an unfinished one is removed when the directory is opened.
///
/// The directory is not locked: that nothing else writes into it, in this process or another, is the caller's business. (Kafka's
/// `LogManager` locks the file `.lock` of the directory above.)
#[derive(Debug)]
pub struct FileStorage {
    dir: PathBuf,
    /// Open files that were appended to or cut.
    open: BTreeMap<String, File>,
    /// Files that were made longer than what is in them.
    reserved: BTreeMap<String, Reserved>,
}

/// A file with reserved bytes.
#[derive(Debug)]
struct Reserved {
    file: File,
    /// How much is in it, in bytes.
    end: u64,
}

impl Reserved {
    /// Writes over the reserved bytes. When the system refuses, a part may be written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        let written = self.file.write_all(bytes);
        self.end = self.file.stream_position()?;
        written
    }
}

impl FileStorage {
    /// Opens a directory, which is created if it is not there.
    ///
    /// # Errors
    /// When the directory cannot be created or read.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, StorageError> {
        let dir = dir.into();
        let failed = |error: &io::Error| StorageError::io(Operation::Open, &dir.display().to_string(), error);
        fs::create_dir_all(&dir).map_err(|error| failed(&error))?;
        for item in fs::read_dir(&dir).map_err(|error| failed(&error))? {
            let item = item.map_err(|error| failed(&error))?;
            let name = item.file_name();
            let unfinished =
                name.to_str().and_then(|name| name.strip_suffix(TMP_SUFFIX)).is_some_and(|replaced| check_name(replaced).is_ok());
            if unfinished {
                fs::remove_file(item.path()).map_err(|error| failed(&error))?;
            }
        }
        Ok(Self::existing(dir))
    }

    /// The files of a directory as they are, for readers only: nothing is created, and nothing that a crash left is removed. A
    /// directory that is not there has no files.
    #[must_use]
    pub fn existing(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), open: BTreeMap::new(), reserved: BTreeMap::new() }
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Gives the directory another name in the directory that holds it, durably; tells whether it had not that name before
    /// (Kafka: `LocalLog.renameDir`).
    ///
    /// # Errors
    /// [`StorageError::InvalidName`] when the name is not that of a directory, or this directory has no name; or when the
    /// system refuses, as when something other than an empty directory has the name already.
    pub fn rename_dir(&mut self, name: &str) -> Result<bool, StorageError> {
        let mut parts = Path::new(name).components();
        let is_name = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
            && name.len() <= MAX_DIR_NAME_BYTES
            && !name.contains(['\\', '\0']);
        let (Some(parent), Some(current), true) = (self.dir.parent(), self.dir.file_name(), is_name) else {
            return Err(StorageError::InvalidName { name: name.chars().take(super::MAX_NAME_BYTES).collect() });
        };
        if current == name {
            return Ok(false);
        }
        let (parent, renamed) = (parent.to_owned(), self.dir.with_file_name(name));
        // Not every system renames a directory in which files are open.
        self.open.clear();
        let failed = |error: &io::Error| StorageError::io(Operation::Rename, &self.dir.display().to_string(), error);
        fs::rename(&self.dir, &renamed).map_err(|error| failed(&error))?;
        self.dir = renamed;
        // A relative name without a parent lies in the working directory.
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { &parent };
        sync_dir(parent).map_err(|error| StorageError::io(Operation::Sync, &parent.display().to_string(), &error))?;
        Ok(true)
    }

    /// Removes the directory, in which there must be nothing any more (Kafka: `LocalLog.deleteEmptyDir`).
    ///
    /// # Errors
    /// When there is something in it, or the system refuses.
    pub fn remove_dir(self) -> Result<(), StorageError> {
        let failed = |error: &io::Error| StorageError::io(Operation::Remove, &self.dir.display().to_string(), error);
        fs::remove_dir(&self.dir).map_err(|error| failed(&error))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The file for writing at its end; kept open.
    fn handle(&mut self, name: &str, create: bool) -> io::Result<&mut File> {
        match self.open.entry(name.to_owned()) {
            std::collections::btree_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let path = self.dir.join(name);
                let is_new = create && !path.exists();
                let mut options = OpenOptions::new();
                let file = options.append(true).create(create).open(&path)?;
                if is_new {
                    sync_dir(&self.dir)?;
                }
                Ok(entry.insert(file))
            }
        }
    }

    /// How much is in a file that is this long.
    fn content_len(&self, name: &str, len: u64) -> u64 {
        self.reserved.get(name).map_or(len, |reserved| reserved.end.min(len))
    }

    fn make_longer(&mut self, name: &str, end: u64, len: u64) -> io::Result<()> {
        let path = self.path(name);
        let is_new = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        if is_new {
            sync_dir(&self.dir)?;
        }
        if len > end {
            file.set_len(len.max(file.metadata()?.len()))?;
            file.sync_all()?;
            self.open.remove(name);
            self.reserved.insert(name.to_owned(), Reserved { file, end });
        }
        Ok(())
    }

    fn write_replacement(&mut self, name: &str, bytes: &Bytes) -> io::Result<()> {
        let tmp = self.path(&format!("{name}{TMP_SUFFIX}"));
        let mut file = File::create(&tmp)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&tmp, self.path(name))?;
        self.reserved.remove(name);
        sync_dir(&self.dir)
    }

    fn give_name(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))?;
        if from != to {
            self.reserved.remove(to);
            let reserved = self.reserved.remove(from);
            self.reserved.extend(reserved.map(|reserved| (to.to_owned(), reserved)));
        }
        sync_dir(&self.dir)
    }
}

impl Storage for FileStorage {
    fn names(&self) -> Result<Vec<String>, StorageError> {
        let dir = self.dir.display().to_string();
        let failed = |error: &io::Error| StorageError::io(Operation::Read, &dir, error);
        let mut names = Vec::new();
        for item in fs::read_dir(&self.dir).map_err(|error| failed(&error))? {
            let item = item.map_err(|error| failed(&error))?;
            let is_file = item.file_type().map_err(|error| failed(&error))?.is_file();
            match item.file_name().into_string() {
                Ok(name) if is_file && check_name(&name).is_ok() => names.push(name),
                _ => {}
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn len(&self, name: &str) -> Result<Option<u64>, StorageError> {
        check_name(name)?;
        match fs::metadata(self.path(name)) {
            Ok(metadata) => Ok(metadata.is_file().then(|| self.content_len(name, metadata.len()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StorageError::io(Operation::Read, name, &error)),
        }
    }

    fn read(&self, name: &str, at: u64, max: usize) -> Result<Bytes, StorageError> {
        check_name(name)?;
        let read = || -> io::Result<Bytes> {
            let mut file = File::open(self.path(name))?;
            let len = self.content_len(name, file.metadata()?.len());
            let wanted = len.saturating_sub(at).min(max as u64);
            if wanted == 0 {
                return Ok(Bytes::new()); // a position behind the end may be none that can be sought
            }
            file.seek(SeekFrom::Start(at))?;
            // A file may be larger than the memory: that is an error, not the end of the process.
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(usize::try_from(wanted).unwrap_or(usize::MAX)).map_err(|_| io::ErrorKind::OutOfMemory)?;
            file.take(wanted).read_to_end(&mut bytes)?;
            Ok(Bytes::from(bytes))
        };
        read().map_err(|error| refused(Operation::Read, name, &error))
    }

    fn append(&mut self, name: &str, bytes: &Bytes) -> Result<(), StorageError> {
        check_name(name)?;
        let appended = match self.reserved.get_mut(name) {
            Some(reserved) => reserved.append(bytes),
            None => self.handle(name, true).and_then(|file| file.write_all(bytes)),
        };
        appended.map_err(|error| refused(Operation::Append, name, &error))
    }

    fn reserve(&mut self, name: &str, len: u64) -> Result<(), StorageError> {
        check_name(name)?;
        let end = self.len(name)?.unwrap_or(0);
        self.make_longer(name, end, len.min(MAX_RESERVED_BYTES)).map_err(|error| refused(Operation::Reserve, name, &error))
    }

    fn trim(&mut self, name: &str) -> Result<(), StorageError> {
        check_name(name)?;
        let Some(Reserved { file, end }) = self.reserved.get(name) else { return Ok(()) };
        let trimmed = file.set_len(*end).and_then(|()| file.sync_all());
        trimmed.map_err(|error| refused(Operation::Truncate, name, &error))?;
        self.reserved.remove(name);
        Ok(())
    }

    fn truncate(&mut self, name: &str, len: u64) -> Result<(), StorageError> {
        let found =
            self.len(name)?.ok_or_else(|| StorageError::NotFound { operation: Operation::Truncate, name: name.to_owned() })?;
        if len > found {
            return Err(StorageError::TruncateBeyondEnd { name: name.to_owned(), requested: len, len: found });
        }
        let cut = self.handle(name, false).and_then(|file| file.set_len(len));
        cut.map_err(|error| refused(Operation::Truncate, name, &error))?;
        self.reserved.remove(name);
        Ok(())
    }

    fn replace(&mut self, name: &str, bytes: &Bytes) -> Result<(), StorageError> {
        check_name(name)?;
        // A handle of the old file would write where nobody reads.
        self.open.remove(name);
        self.write_replacement(name, bytes).map_err(|error| refused(Operation::Replace, name, &error))
    }

    fn remove(&mut self, name: &str) -> Result<(), StorageError> {
        check_name(name)?;
        self.open.remove(name);
        let removed = match fs::remove_file(self.path(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Err(_) => Ok(()),
            Ok(()) => sync_dir(&self.dir),
        };
        removed.map_err(|error| StorageError::io(Operation::Remove, name, &error))?;
        self.reserved.remove(name);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), StorageError> {
        check_name(from)?;
        check_name(to)?;
        // Handles would write under the old name, or where nobody reads.
        self.open.remove(from);
        self.open.remove(to);
        self.give_name(from, to).map_err(|error| refused(Operation::Rename, from, &error))
    }

    fn sync(&mut self, name: &str) -> Result<(), StorageError> {
        check_name(name)?;
        let synced = match self.reserved.get(name) {
            Some(reserved) => reserved.file.sync_all(),
            None => self.handle(name, false).and_then(|file| file.sync_all()),
        };
        synced.map_err(|error| refused(Operation::Sync, name, &error))
    }
}

fn refused(operation: Operation, name: &str, error: &io::Error) -> StorageError {
    if error.kind() == io::ErrorKind::NotFound {
        StorageError::NotFound { operation, name: name.to_owned() }
    } else {
        StorageError::io(operation, name, error)
    }
}

/// Makes names durable. Not every system lets a directory be opened; then there is nothing to do.
fn sync_dir(dir: &Path) -> io::Result<()> {
    match File::open(dir) {
        Ok(dir) => dir.sync_all(),
        Err(_) => Ok(()),
    }
}
