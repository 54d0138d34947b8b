//! Independent jobs on all cores, with results in the order of the jobs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many threads the machine runs at once.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Runs `work` on every item, on as many threads as there are cores. `finished` is told of each that ends, with the number so far.
/// The results come in the order of the items, whatever order they end in.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync, finished: impl Fn(usize, &T) + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let workers = cores().min(items.len().max(1));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    let result = work(item);
                    let Ok(mut done) = done.lock() else { return };
                    done.push((index, result));
                    finished(done.len(), item);
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        let count = std::sync::atomic::AtomicUsize::new(0);
        let results = super::map(&items, |n| n * 2, |_, _| _ = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        assert_eq!(results, items.iter().map(|n| n * 2).collect::<Vec<_>>());
        assert_eq!(count.into_inner(), 100);
        assert!(super::map(&[] as &[u64], |n| *n, |_, _| ()).is_empty());
    }
}
