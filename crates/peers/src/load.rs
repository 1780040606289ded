//! How many errands are under way.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Each has a thread. Beyond this, `MIGRATE` is refused.
const ERRANDS_MAX: usize = 256;

/// A target that does not answer leaves room for the others.
const ERRANDS_OF_TARGET_MAX: usize = 64;

/// A host and a port.
type Target = (String, u16);

/// The errands under way, by target.
#[derive(Default)]
pub(crate) struct Load(Mutex<HashMap<Target, usize>>);

impl Load {
    /// Counts an errand until the place is dropped; `None` if there are too many.
    pub(crate) fn enter(load: &Arc<Load>, (host, port): (&str, u16)) -> Option<Place> {
        let target = (host.to_owned(), port);
        let mut counts = load.0.lock();
        if counts.values().sum::<usize>() >= ERRANDS_MAX {
            return None;
        }
        let count = counts.entry(target.clone()).or_default();
        if *count >= ERRANDS_OF_TARGET_MAX {
            return None;
        }
        *count += 1;
        Some(Place { load: Arc::clone(load), target })
    }
}

/// An errand's share of the [`Load`].
pub(crate) struct Place {
    load: Arc<Load>,
    target: Target,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.load.0.lock();
        if let Some(count) = counts.get_mut(&self.target) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.target);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_its_share_and_all_have_theirs() {
        let load = Arc::<Load>::default();
        let enter = |host, count| -> Vec<_> {
            (0..count).map_while(|_| Load::enter(&load, (host, 1))).collect()
        };
        let first = enter("a", 1000);
        assert_eq!(first.len(), ERRANDS_OF_TARGET_MAX);
        assert!(Load::enter(&load, ("a", 2)).is_some(), "another port");
        let others = ["b", "c", "d", "e"].map(|host| enter(host, 1000).len());
        assert_eq!(others, [ERRANDS_OF_TARGET_MAX; 4]);
        let kept: Vec<_> = ["b", "c", "d"].into_iter().map(|host| enter(host, 1000)).collect();
        assert!(Load::enter(&load, ("e", 1)).is_none(), "there are too many in total");
        drop((first, kept));
        assert!(load.0.lock().is_empty());
        assert!(Load::enter(&load, ("a", 1)).is_some());
    }
}
