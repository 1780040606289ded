//! Several stores as one, for one driver: each has its own users and keys, and its own connections.
//!
//! User `number` is one of store `number` modulo their count, as is connection `number`.

use super::speaking::Speaking;
use crate::load::workload::{Check, Whose, Workload};

/// See the module. Only for dialects whose replies come in order: a tag does not say which store's.
pub struct Several<'a> {
    stores: Vec<Speaking<'a>>,
}

impl<'a> Several<'a> {
    /// Of at least one store.
    #[must_use]
    pub const fn new(stores: Vec<Speaking<'a>>) -> Self {
        Self { stores }
    }
}

impl Workload for Several<'_> {
    fn batch(&mut self, user: usize, keys: &mut Vec<u32>) -> &[u8] {
        let count = self.stores.len();
        self.stores[user % count].batch(user / count, keys)
    }

    fn whose(&self, _: &[u8]) -> Whose {
        Whose::Next
    }

    fn check(&mut self, user: usize, key: u32, bytes: &[u8]) -> Check {
        let count = self.stores.len();
        self.stores[user % count].check(user / count, key, bytes)
    }

    fn right_answer(&self, user: usize, key: u32) -> Vec<u8> {
        let count = self.stores.len();
        self.stores[user % count].right_answer(user / count, key)
    }

    fn about(&self, user: usize, key: u32) -> String {
        let count = self.stores.len();
        self.stores[user % count].about(user / count, key)
    }

    fn lane(&self, _: usize) -> usize {
        0
    }

    fn reply_bytes_max(&self) -> usize {
        self.stores.iter().map(Workload::reply_bytes_max).max().unwrap_or(0)
    }
}
