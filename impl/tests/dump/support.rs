//! Dumps into memory.

use cleanslate_log::dump::{DumpError, DumpFile, DumpOptions, Dumper};
use cleanslate_log::storage::Storage;

/// What a dump printed, and the error that ended it.
pub(crate) struct Dumped {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) error: Option<DumpError>,
}

/// Dumps files of one storage, the paths of which are their names.
pub(crate) fn dump(storage: &impl Storage, names: &[&str], options: DumpOptions) -> Dumped {
    dump_in(names.iter().map(|name| (storage, "", *name)), options)
}

/// Dumps files, each of a storage and under a directory, which ends in a slash. The root is shown as `<root>`.
pub(crate) fn dump_in<'a, S: Storage + 'a>(
    files: impl IntoIterator<Item = (&'a S, &'a str, &'a str)>,
    options: DumpOptions,
) -> Dumped {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut dumper = Dumper::new(options, &mut out, &mut err);
    let mut error = None;
    for (storage, dir, name) in files {
        let path = format!("{dir}{name}");
        let absolute_path = format!("<root>/{path}");
        error = dumper.file(storage, &DumpFile { path: &path, absolute_path: &absolute_path, name }).err();
        if error.is_some() {
            break;
        }
    }
    if error.is_none() {
        dumper.finish().unwrap();
    }
    Dumped { out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap(), error }
}
