//! What the requests of a batch share.

use ladon_engine::{Catalog, Spaces};
use std::sync::Arc;

/// What the requests of a batch share: the catalog, as long as it does not change. Kept for longer,
/// it would keep spaces that were dropped.
#[derive(Default)]
pub struct Batch {
    catalog: Option<Arc<Catalog>>,
}

impl Batch {
    /// The catalog of this moment.
    #[inline]
    pub(crate) fn catalog(&mut self, spaces: &Spaces) -> &Arc<Catalog> {
        let version = spaces.version();
        if self.catalog.as_ref().is_none_or(|kept| kept.version != version) {
            self.catalog = None;
        }
        self.catalog.get_or_insert_with(|| Arc::clone(&spaces.catalog()))
    }

    /// The batch has run.
    #[inline]
    pub fn end(&mut self) {
        self.catalog = None;
    }
}
