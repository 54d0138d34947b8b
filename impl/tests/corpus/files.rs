//! Every directory is opened and closed as Kafka did it, and has the same files afterwards.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

use cleanslate_log::storage::Storage;

use super::loads::{Difference, open};
use super::manifest::{Load, Manifest};

/// All differences that there are: directory, mode, file. What does not open is left to [`super::loads`].
const KNOWN: &[Difference<'_>] = &[];

#[test]
fn every_directory_has_the_files_of_kafka_after_closing() {
    let manifest = Manifest::load();
    let mut seen = 0;
    let mut differences = Vec::new();
    for (case, directory) in manifest.directories() {
        for load in directory.loads.iter().filter(|load| load.state.is_some()) {
            let Ok(mut log) = open(case, directory, load) else { continue };
            log.close_clean().unwrap();
            let storage = log.into_storage();
            for name in names(&storage, load) {
                seen += 1;
                if !is_same(&storage, &name, load) {
                    println!("{} {}: {name}: {:?}", directory.path, load.mode, storage.len(&name));
                    differences.push((directory.path.clone(), load.mode.clone(), name));
                }
            }
        }
    }
    let differences: Vec<_> = differences.iter().map(|(path, mode, name)| (path.as_str(), mode.as_str(), name.as_str())).collect();
    assert_eq!(differences, KNOWN);
    assert_eq!(seen, 956);
}

/// The files here and those that Kafka had.
fn names(storage: &impl Storage, load: &Load) -> BTreeSet<String> {
    let here = storage.names().unwrap();
    here.into_iter().chain(load.files_after.keys().cloned()).collect()
}

fn is_same(storage: &impl Storage, name: &str, load: &Load) -> bool {
    let here = storage.read_all(name).unwrap();
    match (here, load.files_after.get(name)) {
        (Some(here), Some(expected)) => format!("{:x}", Sha256::digest(&here)) == *expected,
        (here, expected) => here.is_none() && expected.is_none(),
    }
}
