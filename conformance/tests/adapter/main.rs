//! The runner's side of the adapter protocol: what it sends, what it understands, and what it does about an adapter that misbehaves.

#[cfg(test)]
mod conversation;
#[cfg(test)]
mod kafka;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod process;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod toy;
#[cfg(test)]
mod troubles;
