//! Definitions of a space that change while its tuples do: another primary key, another format, a
//! secondary index that comes and goes.
//!
//! ```text
//! definer --REPLACE _index, REPLACE _space, INSERT _index, DELETE _index--> transfers
//! ```
//! The space is large after some rounds, so most definitions are prepared in slices. After a crash,
//! each is as it was acknowledged last, or as it was being changed.

use crate::iproto::{Answer, IprotoClient};
use ladon_iproto::Request;
use ladon_iproto::request::{Delete, IndexRef, Put, Select, SpaceRef};
use ladon_msgpack::write;
use ladon_system_spaces as system;
use ladon_testkit::Random;
use std::sync::{Mutex, MutexGuard};
use std::thread::sleep;
use std::time::Duration;

/// The index that comes and goes.
pub(crate) const PASSING_INDEX: u64 = 3;
/// Between two definitions, in milliseconds at most.
const PAUSE_MS: u64 = 60;

/// What changes; each has two forms.
#[derive(Clone, Copy, Debug)]
enum What {
    /// A TREE of the first field; of the second one and the first.
    PrimaryKey,
    /// None; one that demands four numbers.
    Format,
    /// Not there; there.
    PassingIndex,
}

const ALL: [What; 3] = [What::PrimaryKey, What::Format, What::PassingIndex];

/// What is known of the definitions of a space.
pub(crate) struct Definitions {
    space: u32,
    name: &'static str,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    forms: [Form; ALL.len()],
    acknowledged: u64,
}

#[derive(Clone, Copy, Default)]
struct Form {
    is_second: bool,
    /// The other one was sent, and not acknowledged.
    is_changing: bool,
}

impl Definitions {
    /// Of a space without a format, whose primary key is its first field.
    pub(crate) fn new(space: u32, name: &'static str) -> Definitions {
        Definitions { space, name, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Definitions that were acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.known().acknowledged
    }

    /// Whether the index that comes and goes was there at the last check.
    pub(crate) fn has_passing_index(&self) -> bool {
        self.known().forms[What::PassingIndex as usize].is_second
    }

    /// Changes definitions until the connection breaks.
    ///
    /// # Errors
    /// A refusal. A broken connection is none.
    pub(crate) fn work(&self, client: &mut IprotoClient, seed: u64) -> Result<(), String> {
        let mut random = Random::new(seed);
        loop {
            sleep(Duration::from_millis(random.below(PAUSE_MS)));
            let what = random.pick(&ALL);
            let is_second = {
                let form = &mut self.known().forms[what as usize];
                form.is_changing = true;
                !form.is_second
            };
            match self.define(client, what, is_second) {
                Ok(Ok(_)) => {}
                Ok(Err(code)) => return Err(format!("{what:?} ends with error {code}")),
                Err(error) => return crate::lane::broken(error),
            }
            let mut known = self.known();
            known.forms[what as usize] = Form { is_second, is_changing: false };
            known.acknowledged += 1;
        }
    }

    fn define(
        &self,
        client: &mut IprotoClient,
        what: What,
        is_second: bool,
    ) -> std::io::Result<Answer> {
        let (id, tuple) = self.tuple(what, is_second);
        let space = SpaceRef::Id(id);
        match (what, is_second) {
            (What::PassingIndex, true) => {
                client.call(&Request::Insert(Put { space, tuple: &tuple }))
            }
            (What::PassingIndex, false) => {
                let (index, key) = (IndexRef::Id(0), &self.key(what)[..]);
                client.call(&Request::Delete(Delete { space, index, key }))
            }
            _ => client.call(&Request::Replace(Put { space, tuple: &tuple })),
        }
    }

    /// A tuple of a system space, with that space's number.
    fn tuple(&self, what: What, is_second: bool) -> (u32, Vec<u8>) {
        match what {
            What::PrimaryKey => {
                let fields: &[u64] = if is_second { &[1, 0] } else { &[0] };
                (system::INDEX, index_tuple(self.space, 0, true, fields))
            }
            What::Format => {
                let format: &[&str] = if is_second { &["id", "from", "to", "amount"] } else { &[] };
                (system::SPACE, space_tuple(self.space, self.name, format))
            }
            What::PassingIndex => {
                (system::INDEX, index_tuple(self.space, PASSING_INDEX, false, &[PASSING_INDEX]))
            }
        }
    }

    /// Its primary key in the system space.
    fn key(&self, what: What) -> Vec<u8> {
        let numbers: &[u64] = match what {
            What::PrimaryKey => &[self.space.into(), 0],
            What::Format => &[self.space.into()],
            What::PassingIndex => &[self.space.into(), PASSING_INDEX],
        };
        let mut key = Vec::new();
        write::array(&mut key, numbers.len() as u32);
        numbers.iter().for_each(|number| write::uint(&mut key, *number));
        key
    }

    /// Compares with the restarted server. `lossy`: acknowledged definitions may be gone.
    ///
    /// # Errors
    /// What differs.
    pub(crate) fn check(&self, client: &mut IprotoClient, lossy: bool) -> Result<(), String> {
        for what in ALL {
            let [first, second] = [false, true].map(|is_second| self.tuple(what, is_second));
            let answer = client.call(&Request::Select(Select {
                space: SpaceRef::Id(first.0),
                index: IndexRef::Id(0),
                iterator: 0,
                offset: 0,
                limit: 1,
                key: &self.key(what),
                fetch_position: false,
                after_position: None,
                after_tuple: None,
            }));
            let answer = answer.map_err(|error| error.to_string())?;
            let found = answer.map_err(|code| format!("{what:?} cannot be read: error {code}"))?;
            let found = found.into_iter().next();
            let is_first = match what {
                What::PassingIndex => found.is_none(),
                _ => found.as_ref() == Some(&first.1),
            };
            if !is_first && found.as_ref() != Some(&second.1) {
                return Err(format!("{what:?} is neither form: {found:?}"));
            }
            let form = &mut self.known().forms[what as usize];
            if form.is_second == is_first && !form.is_changing && !lossy {
                return Err(format!("{what:?} was acknowledged, and is gone: {found:?}"));
            }
            *form = Form { is_second: !is_first, is_changing: false };
        }
        Ok(())
    }
}

/// A tuple of `_space`, with the names of fields that are integers.
pub(crate) fn space_tuple(id: u32, name: &str, format: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    write::array(&mut out, 7);
    write::uint(&mut out, id.into());
    write::uint(&mut out, 1);
    write::str(&mut out, name.as_bytes());
    write::str(&mut out, b"memtx");
    write::uint(&mut out, 0);
    write::map(&mut out, 0);
    write::array(&mut out, format.len() as u32);
    for name in format {
        write::map(&mut out, 2);
        write::str(&mut out, b"name");
        write::str(&mut out, name.as_bytes());
        write::str(&mut out, b"type");
        write::str(&mut out, b"integer");
    }
    out
}

/// A tuple of `_index`: a TREE of these fields.
pub(crate) fn index_tuple(space: u32, id: u64, is_unique: bool, fields: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    write::array(&mut out, 6);
    write::uint(&mut out, space.into());
    write::uint(&mut out, id);
    write::str(&mut out, format!("i{id}").as_bytes());
    write::str(&mut out, b"tree");
    write::map(&mut out, 1);
    write::str(&mut out, b"unique");
    write::bool(&mut out, is_unique);
    write::array(&mut out, fields.len() as u32);
    for field in fields {
        write::array(&mut out, 2);
        write::uint(&mut out, *field);
        write::str(&mut out, b"integer");
    }
    out
}
