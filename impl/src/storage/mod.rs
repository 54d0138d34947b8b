//! Where a log keeps its bytes.
//!
//! A storage is a set of named files. Log segments and the transaction index are appended to and cut; everything small
//! (snapshots, checkpoints, mirror metadata) is replaced as a whole. Nothing in the log does input or output but
//! through this trait.

mod error;
mod faulty;
mod file;
mod memory;

use std::fmt::Debug;

use bytes::Bytes;

pub use error::{Operation, StorageError};
pub use faulty::{FaultyCalls, FaultyStorage, Unsynced};
pub use file::FileStorage;
pub use memory::MemoryStorage;

/// The most bytes that a file is made long beforehand (Kafka: the size of a new file is an `int`).
pub const MAX_RESERVED_BYTES: u64 = i32::MAX as u64;

/// Longest name of a file, in bytes.
pub const MAX_NAME_BYTES: usize = 200;

/// A set of named files.
///
/// A file may be made longer than what is in it ([`Storage::reserve`]), as Kafka's `FileRecords` with `preallocate`. Only
/// the storage that did it knows: one that is opened anew takes the zeros behind the end for what is in the file.
///
/// All implementations behave alike; what is an error in one is the same error in the others. When the system refuses,
/// [`Storage::append`] may have made the file longer by a part of the bytes, and any other change may have happened or
/// not, as a whole.
pub trait Storage: Debug {
    /// The names of all files, ascending.
    ///
    /// # Errors
    /// When the storage cannot be read.
    fn names(&self) -> Result<Vec<String>, StorageError>;

    /// The length of a file in bytes; `None` when there is no such file.
    ///
    /// # Errors
    /// When the name is not allowed or the storage cannot be read.
    fn len(&self, name: &str) -> Result<Option<u64>, StorageError>;

    /// Up to `max` bytes of a file from byte `at`; fewer only at the file's end.
    ///
    /// # Errors
    /// [`StorageError::NotFound`]; or when the name is not allowed or the storage cannot be read.
    fn read(&self, name: &str, at: u64, max: usize) -> Result<Bytes, StorageError>;

    /// Adds bytes at the end of a file, which is created if it is not there.
    ///
    /// # Errors
    /// When the name is not allowed or the storage cannot be written.
    fn append(&mut self, name: &str, bytes: &Bytes) -> Result<(), StorageError>;

    /// Makes a file `len` bytes long, durably: what is in it stays, zeros follow, and appends overwrite them. Length and content
    /// do not tell. The file is created if it is not there, and stays as it is if it is that long. More than
    /// [`MAX_RESERVED_BYTES`] counts as that. The rest is given back with [`Storage::trim`], or when the file is cut or replaced.
    ///
    /// # Errors
    /// When the name is not allowed or the storage cannot be written.
    fn reserve(&mut self, name: &str, len: u64) -> Result<(), StorageError>;

    /// Gives back what was reserved behind the end of a file, and makes that durable with what was appended (Kafka:
    /// `FileRecords.trim`). Of other files, and of one that is not there, nothing changes.
    ///
    /// # Errors
    /// When the name is not allowed or the storage cannot be written.
    fn trim(&mut self, name: &str) -> Result<(), StorageError>;

    /// Cuts a file to a length, in bytes.
    ///
    /// # Errors
    /// [`StorageError::NotFound`]; [`StorageError::TruncateBeyondEnd`] when the file is shorter; or when the name is not
    /// allowed or the storage cannot be written.
    fn truncate(&mut self, name: &str, len: u64) -> Result<(), StorageError>;

    /// Gives a file these bytes and no others, durably and all at once: a crash leaves the old file or the new one.
    ///
    /// # Errors
    /// When the name is not allowed or the storage cannot be written.
    fn replace(&mut self, name: &str, bytes: &Bytes) -> Result<(), StorageError>;

    /// Removes a file; it does not have to exist.
    ///
    /// # Errors
    /// When the name is not allowed or the storage cannot be written.
    fn remove(&mut self, name: &str) -> Result<(), StorageError>;

    /// Gives a file another name, durably and all at once; a file that has the name already is replaced.
    ///
    /// # Errors
    /// [`StorageError::NotFound`]; or when a name is not allowed or the storage cannot be written.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), StorageError>;

    /// Makes what was appended to a file, and its having been cut, durable.
    ///
    /// # Errors
    /// [`StorageError::NotFound`]; or when the name is not allowed or the storage cannot be written.
    fn sync(&mut self, name: &str) -> Result<(), StorageError>;

    /// All bytes of a file; `None` when there is no such file.
    ///
    /// # Errors
    /// As [`Storage::read`].
    fn read_all(&self, name: &str) -> Result<Option<Bytes>, StorageError> {
        match self.len(name)? {
            None => Ok(None),
            Some(len) => {
                let max = usize::try_from(len).unwrap_or(usize::MAX);
                self.read(name, 0, max).map(Some)
            }
        }
    }
}

/// Letters, digits, `.`, `-` and `_`; a dot at the beginning only in front of a letter; not ending in the suffix of an
/// unfinished replacement, and not too long: the same names for all storages.
fn check_name(name: &str) -> Result<(), StorageError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let ok = !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name.strip_prefix('.').is_none_or(|rest| rest.starts_with(|char: char| char.is_ascii_alphabetic()))
        && !name.ends_with(file::TMP_SUFFIX)
        && name.bytes().all(allowed);
    if ok { Ok(()) } else { Err(StorageError::InvalidName { name: name.chars().take(MAX_NAME_BYTES).collect() }) }
}
