//! Results that take long, computed aside: on a thread of lower priority, from frozen values.
//!
//! ```text
//! SUNION a b         freezes a and b, releases the locks -> a job makes the set
//!                    -> it is sent in slices, as any long reply
//! SUNIONSTORE d a b  freezes a and b, watches them, releases the locks; the connection waits
//!                    -> a job makes the set and its record
//!                    -> the request runs again: a and b untouched? d gets the set, at once
//! RENAME a b         freezes a, watches it, releases the locks; the connection waits
//!                    -> a job makes the record, which contains all of a
//!                    -> the request runs again: a untouched? it moves to b, at once
//! HSET a f LONG      a job prepares memory for the copies of LONG
//!                    -> the request runs again, and copies LONG into that memory
//! SET a LONG         releases the lock; the job gets the memory in which LONG arrived
//!                    -> it becomes the value, and the job makes the record
//!                    -> the request runs again, with what is now the value as its argument
//! ```
//!
//! A reply shows the data when it was frozen. A store takes effect when it completes: if a source
//! was touched in between, the job is repeated, and after a few attempts the store runs under the
//! locks like a small one, so that it ends. Inside `EXEC` it runs under the locks at once.

use crate::client::session::{Session, WatchedKey};
use crate::command::error::CommandError;
use crate::ctx::Ctx;
use crate::long::aside_job::{Aside, Computed, Job, Lent, Product, ReadAhead, ReadFiles};
use crate::long::large::Large;
use crate::long::slices::Slices;
use crate::request::outcome::{Flow, JobKind};
use crate::thread_parts::ThreadParts;
use ladon_engine::types::long_string::LongString;
use ladon_engine::{
    EntryRef, Garbage, Key, Keyspace, Library, Locks, Object, Stored, ValueRef, WatchFlag,
};
use ladon_platform::Clock;
use ladon_platform::pages::Prepared;
use ladon_record::DbId;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// How often a store is repeated because a source was touched, before it takes the locks.
const ATTEMPTS_MAX: u32 = 3;

impl Session {
    /// Takes the result of the waiting request's job, for its next run. Returns it unchanged if no
    /// request waits for it.
    pub fn take_in(&mut self, computed: Computed) -> Result<(), Computed> {
        let Some(aside) = &mut self.aside else { return Err(computed) };
        match computed.result {
            Product::Value(value) => aside.computed = Some(value),
            Product::Libraries(libraries) => aside.libraries = Some(libraries),
            Product::Memory(memory) => aside.memory = Some(memory),
            Product::Delivery(delivery) => aside.delivery = Some(delivery),
            Product::Read(read) => aside.read = Some(read),
            Product::Reply(_) => return Err(computed),
        }
        aside.nanoseconds += computed.nanoseconds;
        Ok(())
    }
}

impl Ctx<'_> {
    /// The size from which a reply is computed aside; never if it must be made at once.
    pub fn large_aside(&self) -> Large {
        self.large_result()
    }

    /// The size from which a store is computed aside.
    pub fn large_store(&self) -> Large {
        match &self.session.aside {
            Some(aside) if aside.attempt >= ATTEMPTS_MAX => Large::NEVER,
            _ => self.large_result(),
        }
    }

    fn large_result(&self) -> Large {
        if self.local.replies_later && !self.must_answer() {
            self.node.slicing.large_aside()
        } else {
            Large::NEVER
        }
    }

    /// Freezes values that were just read, to be read without the locks.
    pub fn freeze_all(&mut self, db: DbId, keys: &[Key<'_>]) -> Vec<Option<Object>> {
        keys.iter().map(|&key| self.tx().freeze_object(db, key)).collect()
    }

    /// Replies with the job's result; only after `large_aside` has allowed it.
    pub fn reply_aside(&mut self, job: impl FnOnce(&Keyspace) -> Box<dyn Slices> + Send + 'static) {
        let job = self.job(|keyspace, _| (Product::Reply(job(keyspace)), None));
        self.deferred().job = Some(job);
    }

    /// As [`Ctx::reply_aside`], for a job that waits for something.
    pub fn reply_later(
        &mut self,
        kind: JobKind,
        job: impl FnOnce(&Keyspace) -> Box<dyn Slices> + Send + 'static,
    ) {
        self.reply_aside(job);
        self.deferred().kind = kind;
    }

    /// Stores the job's result under `to`. The sources are locked; only after `large_store` has
    /// allowed it. The handler ends with this, and runs again.
    pub fn store_aside(
        &mut self,
        sources: &[Key<'_>],
        (to_db, to, expire_at): (DbId, &[u8], u64),
        job: impl FnOnce(&Keyspace) -> Result<Object, CommandError> + Send + 'static,
    ) {
        let to = to.to_vec();
        self.put_aside(sources, move |keyspace| {
            job(keyspace).map(|object| Stored::new(to_db, &to, object, expire_at))
        });
    }

    /// Moves the value of `from` and its expiry over `to`, another key or the same in another
    /// database. Returns whether that is done; otherwise the record of a large value is being made.
    /// The caller has checked whether to move, and checks again in its next run.
    ///
    /// # Errors
    /// None: for `?`.
    pub fn relocate(&mut self, from: &[u8], to_db: DbId, to: &[u8]) -> Result<bool, CommandError> {
        if self.put_computed(to_db, to)?.is_some() {
            return Ok(true);
        }
        let (from_db, from_key, to_key) = (self.db(), self.key(from), self.key(to));
        let large = self.large_store();
        let found = self.tx().get(from_db, from_key);
        let expire_at = found.filter(|&entry| is_much(large, entry)).map(|entry| entry.expire_at());
        if let Some(expire_at) = expire_at
            && let Some(frozen) = self.tx().freeze_object(from_db, from_key)
        {
            let (from, to) = (from.to_vec(), to.to_vec());
            self.put_aside(&[from_key], move |_| {
                Ok(Stored::moved((from_db, &from), frozen, (to_db, &to), expire_at))
            });
            return Ok(false);
        }
        self.tx().rename(from_db, from_key, to_db, to_key);
        Ok(true)
    }

    /// Stores the job's result in another run of the handler, which ends with this. The sources are
    /// locked.
    fn put_aside(
        &mut self,
        sources: &[Key<'_>],
        job: impl FnOnce(&Keyspace) -> Result<Stored, CommandError> + Send + 'static,
    ) {
        let job = self.job(move |keyspace, _| (Product::Value(job(keyspace)), None));
        self.deferred().job = Some(job);
        self.rest(sources);
    }

    /// Stores the request's argument at `at` as the key's string, in another run of the handler,
    /// which ends with this; only after `large_store` has allowed it. What is `watched` is locked:
    /// the value is not stored if it was touched meanwhile.
    pub fn put_argument_aside(
        &mut self,
        to: &[u8],
        at: usize,
        expire_at: u64,
        watched: &[Key<'_>],
    ) {
        let (db, to) = (self.db(), to.to_vec());
        let job = self.job(move |_, lent| {
            let string = LongString::from(lent.map(Lent::into_vec).unwrap_or_default());
            let argument = string.freeze().into_shared();
            let stored = Stored::new(db, &to, Object::String(string), expire_at);
            (Product::Value(Ok(stored)), Some(argument))
        });
        (self.deferred().job, self.deferred().lend) = (Some(job), Some(at));
        self.rest(watched);
    }

    /// Stores what the job makes of the request's argument at `at`, in another run of the handler,
    /// which ends with this; only after `large_store` has allowed it. A request lends its argument
    /// once: in its second run it gets the value or does without.
    pub fn store_argument_aside(
        &mut self,
        (to_db, to, expire_at): (DbId, &[u8], u64),
        at: usize,
        job: impl FnOnce(&Keyspace, &[u8]) -> Result<Object, CommandError> + Send + 'static,
    ) {
        let to = to.to_vec();
        let job = self.job(move |keyspace, lent| {
            let argument = Arc::new(lent.map(Lent::into_vec).unwrap_or_default());
            let object = job(keyspace, &argument);
            let stored = object.map(|object| Stored::new(to_db, &to, object, expire_at));
            (Product::Value(stored), Some(argument))
        });
        (self.deferred().job, self.deferred().lend) = (Some(job), Some(at));
        self.rest(&[]);
    }

    /// Makes libraries of functions in a job, which gives them to another run of the handler
    /// ([`Ctx::take_libraries`]); the handler ends with this. Where nothing can be computed aside,
    /// returns them at once.
    pub fn libraries_aside(
        &mut self,
        make: impl FnOnce(&dyn Clock) -> Result<Vec<Arc<Library>>, CommandError> + Send + 'static,
    ) -> Option<Result<Vec<Arc<Library>>, CommandError>> {
        if self.large_result() == Large::NEVER {
            return Some(make(&*self.node.clock));
        }
        let clock = Arc::clone(&self.node.clock);
        self.await_product(move |_, _| (Product::Libraries(make(&*clock)), None));
        None
    }

    /// Reads files in a job, which gives what it has read to another run of the handler
    /// ([`Ctx::take_read`]); the handler ends with this. Returns the job where nothing can be run
    /// aside.
    pub fn read_aside(&mut self, job: ReadFiles) -> Option<ReadFiles> {
        if self.large_result() == Large::NEVER {
            return Some(job);
        }
        self.await_product(move |_, _| (Product::Read(job()), None));
        None
    }

    /// In a request's second run: what its job has read.
    pub fn take_read(&mut self) -> Option<ReadAhead> {
        self.session.aside.as_mut()?.read.take()
    }

    /// Prepares memory of these sizes in a job, for another run of the handler, which ends with this.
    pub(crate) fn await_memory(&mut self, sizes: Vec<usize>) {
        self.await_product(move |_, _| {
            (Product::Memory(sizes.into_iter().filter_map(Prepared::new).collect()), None)
        });
    }

    /// Makes the connection wait for the job's result, which depends on no data.
    fn await_product(
        &mut self,
        job: impl FnOnce(&Keyspace, Option<Lent>) -> (Product, Option<Arc<Vec<u8>>>) + Send + 'static,
    ) {
        let job = self.job(job);
        self.deferred().job = Some(job);
        let db = self.session.db;
        self.session.aside.get_or_insert_with(|| Box::new(Aside::new(db)));
        self.flow = Flow::Compute;
    }

    /// In a request's second run: the libraries that its job has made.
    pub fn take_libraries(&mut self) -> Option<Result<Vec<Arc<Library>>, CommandError>> {
        self.session.aside.as_mut()?.libraries.take()
    }

    /// Makes the connection wait for the job, which works on these sources.
    fn rest(&mut self, sources: &[Key<'_>]) {
        let (db, flag) = (self.db(), Arc::<WatchFlag>::default());
        for &key in sources {
            self.tx().watch(db, key, &flag);
        }
        let db = self.session.db;
        let aside = self.session.aside.get_or_insert_with(|| Box::new(Aside::new(db)));
        aside.watched = sources.iter().map(|key| (key.bytes.to_vec(), Arc::clone(&flag))).collect();
        aside.flag = flag;
        self.flow = Flow::Compute;
    }

    pub(crate) fn job(
        &self,
        job: impl FnOnce(&Keyspace, Option<Lent>) -> (Product, Option<Arc<Vec<u8>>>) + Send + 'static,
    ) -> Job {
        self.node.aside.jobs.fetch_add(1, Relaxed);
        let (keyspace, clock) = (Arc::clone(&self.node.keyspace), Arc::clone(&self.node.clock));
        Box::new(move |lent| {
            let began_ns = clock.monotonic_ns();
            let (result, argument) = job(&keyspace, lent);
            let nanoseconds = clock.monotonic_ns().saturating_sub(began_ns);
            Computed { result, nanoseconds, argument }
        })
    }

    /// In a request's second run: stores the result if it is still valid, and returns its number of
    /// elements. `None`: the handler has to begin (again).
    ///
    /// # Errors
    /// The error that the job found in the sources.
    pub fn put_computed(&mut self, to_db: DbId, to: &[u8]) -> Result<Option<usize>, CommandError> {
        let Some(aside) = &mut self.session.aside else { return Ok(None) };
        let Some(computed) = aside.computed.take() else { return Ok(None) };
        aside.attempt += 1;
        let attempt = aside.attempt;
        self.depends = self.depends.max(aside.depends);
        let (flag, watched) = (Arc::clone(&aside.flag), std::mem::take(&mut aside.watched));
        let db = self.node.keyspace.select(aside.db);
        for (name, _) in &watched {
            let key = self.key(name);
            // Removes the key if it has expired, which touches it.
            self.tx().exists(db, key);
            self.tx().unwatch(db, key, &flag);
        }
        if flag.is_touched() && !self.local.stale_store_canary {
            let counts = &self.node.aside;
            counts.repeated.fetch_add(1, Relaxed);
            counts.gave_up.fetch_add(u64::from(attempt == ATTEMPTS_MAX), Relaxed);
            if let Ok(stored) = computed {
                self.tx().discard(stored);
            }
            return Ok(None);
        }
        let stored = computed?;
        let (key, count) = (self.key(to), stored.len());
        Ok(self.tx().put_stored(to_db, key, stored).is_ok().then_some(count))
    }
}

/// Whether a value takes long to encode and to copy.
pub fn is_much(large: Large, entry: EntryRef<'_>) -> bool {
    match entry.value() {
        ValueRef::Object(Object::String(string)) => large.is_total_string(string.len()),
        ValueRef::Object(object) => large.is_total(object.len(), object.bytes()),
        _ => false,
    }
}

/// Cleans up after a request that may have had two runs, or after its connection.
pub(crate) fn forget(thread: &mut ThreadParts<'_>, session: &mut Session) {
    let Some(mut aside) = session.aside.take() else { return };
    let ThreadParts { node, local, scratch, append, .. } = thread;
    let db = node.keyspace.select(aside.db);
    for (name, flag) in &aside.watched {
        let key = Key { bytes: name, hash: node.keyspace.hash(name) };
        let tx = match local.serves_busy {
            true => None,
            false => node.begin_or_busy(Locks::One(key.hash), scratch, 0),
        };
        let Some(mut tx) = tx else {
            let watched = WatchedKey { db: aside.db, key: name.clone(), space: None };
            local.unwatch_later.push((watched, Arc::clone(flag)));
            continue;
        };
        tx.unwatch(db, key, flag);
        tx.commit(&mut **append);
    }
    if let Some(unused) = aside.memory.take() {
        scratch.garbage.push(Garbage::of(unused));
    }
    if let Some(unused) = aside.computed.take() {
        scratch.garbage.push(Garbage::of(unused));
    }
}
