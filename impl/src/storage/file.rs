//! A storage in a directory.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::{Operation, Storage, StorageError, check_name};

/// The end of the name of a file that is going to replace another one.
pub(super) const TMP_SUFFIX: &str = ".tmp";

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
        Ok(Self { dir, open: BTreeMap::new() })
    }

    /// The files of a directory as they are, for readers only: nothing is created, and nothing that a crash left is removed. A
    /// directory that is not there has no files.
    #[must_use]
    pub fn existing(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), open: BTreeMap::new() }
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
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

    fn write_replacement(&self, name: &str, bytes: &Bytes) -> io::Result<()> {
        let tmp = self.path(&format!("{name}{TMP_SUFFIX}"));
        let mut file = File::create(&tmp)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&tmp, self.path(name))?;
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
            Ok(metadata) => Ok(metadata.is_file().then_some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StorageError::io(Operation::Read, name, &error)),
        }
    }

    fn read(&self, name: &str, at: u64, max: usize) -> Result<Bytes, StorageError> {
        check_name(name)?;
        let read = || -> io::Result<Bytes> {
            let mut file = File::open(self.path(name))?;
            let len = file.metadata()?.len();
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
        self.handle(name, true).and_then(|file| file.write_all(bytes)).map_err(|error| refused(Operation::Append, name, &error))
    }

    fn truncate(&mut self, name: &str, len: u64) -> Result<(), StorageError> {
        let found =
            self.len(name)?.ok_or_else(|| StorageError::NotFound { operation: Operation::Truncate, name: name.to_owned() })?;
        if len > found {
            return Err(StorageError::TruncateBeyondEnd { name: name.to_owned(), requested: len, len: found });
        }
        self.handle(name, false).and_then(|file| file.set_len(len)).map_err(|error| refused(Operation::Truncate, name, &error))
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
        match fs::remove_file(self.path(name)).and_then(|()| sync_dir(&self.dir)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StorageError::io(Operation::Remove, name, &error)),
            _ => Ok(()),
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), StorageError> {
        check_name(from)?;
        check_name(to)?;
        // Handles would write under the old name, or where nobody reads.
        self.open.remove(from);
        self.open.remove(to);
        let renamed = fs::rename(self.path(from), self.path(to)).and_then(|()| sync_dir(&self.dir));
        renamed.map_err(|error| refused(Operation::Rename, from, &error))
    }

    fn sync(&mut self, name: &str) -> Result<(), StorageError> {
        check_name(name)?;
        self.handle(name, false).and_then(|file| file.sync_all()).map_err(|error| refused(Operation::Sync, name, &error))
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
