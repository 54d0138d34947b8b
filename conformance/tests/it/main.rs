//! All tests of the crate that go through its public face, in one binary.

#[cfg(test)]
mod cli;
#[cfg(test)]
mod common;
#[cfg(test)]
mod draw;
#[cfg(test)]
mod dump;
#[cfg(test)]
mod read_write;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod witness;
#[cfg(test)]
mod witness_replicas;
