//! Values for another server (`MIGRATE`), and what became of them there.
//!
//! ```text
//! MIGRATE h 1 k 0 9   freezes k, watches it, releases the locks; the connection waits
//!                     -> an errand, on a thread of its own, sends the value and reads the answer
//!                     -> the request runs again: k is as it was sent? it is deleted
//! ```
//!
//! **Invariant:** an errand holds no lock, and nothing that others wait for.

use crate::ctx::Ctx;
use crate::long::aside_job::{Aside, Product};
use crate::long::parcel::{Delivery, Errand, Watched};
use crate::request::outcome::{Flow, JobKind};
use ladon_engine::WatchFlag;
use std::sync::Arc;

impl Ctx<'_> {
    /// Whether the handler may wait for another server.
    pub fn may_wait_for_peers(&self) -> bool {
        self.local.replies_later && !self.must_answer()
    }

    /// Runs an errand, whose result another run of the handler gets ([`Ctx::take_delivery`]); the
    /// handler ends with this. The `watched` keys are locked.
    pub fn run_errand(&mut self, errand: Errand, watched: Vec<Vec<u8>>) {
        let db = self.db();
        let watch = |name: Vec<u8>| {
            let (key, flag) = (self.key(&name), Arc::<WatchFlag>::default());
            self.tx().watch(db, key, &flag);
            (name, flag)
        };
        let watchers = watched.into_iter().map(watch).collect();
        let job = self.job(move |_, _| (Product::Delivery(errand()), None));
        let deferred = self.deferred();
        (deferred.job, deferred.kind) = (Some(job), JobKind::Errand);
        let db = self.session.db;
        let aside = self.session.aside.get_or_insert_with(|| Box::new(Aside::new(db)));
        aside.watched = watchers;
        self.flow = Flow::Compute;
    }

    /// In a request's second run: what became of its errand, and of the watched keys.
    pub fn take_delivery(&mut self) -> Option<(Delivery, Vec<Watched>)> {
        let aside = self.session.aside.as_mut()?;
        let delivery = aside.delivery.take()?;
        let (watched, depends) = (std::mem::take(&mut aside.watched), aside.depends);
        let db = self.node.keyspace.select(aside.db);
        self.depends = self.depends.max(depends);
        let unwatch = |(name, flag): (Vec<u8>, Arc<WatchFlag>)| {
            let key = self.key(&name);
            // Removes the key if it has expired, which touches it.
            self.tx().exists(db, key);
            self.tx().unwatch(db, key, &flag);
            Watched { is_unchanged: !flag.is_touched(), key: name }
        };
        Some((delivery, watched.into_iter().map(unwatch).collect()))
    }
}
