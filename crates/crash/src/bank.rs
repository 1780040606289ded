//! A bank in two spaces: transactions over streams move money between accounts, and write each
//! transfer down.
//!
//! ```text
//! teller --BEGIN, SELECT, UPDATE -a, UPDATE +a, INSERT transfer, COMMIT--> accounts  [id, balance]
//!          two streams at once, of several tellers                         transfers [id, from, to, a]
//! ```
//!
//! After a crash, the accounts hold what the transfers that are there say, so the sum is what it was.
//! Every transfer whose COMMIT was acknowledged is there, and none that was refused or rolled back.
//! The indexes of the transfers agree with each other.

use crate::iproto::{Answer, IprotoClient};
use ladon_iproto::Request;
use ladon_iproto::request::{Begin, Call, IndexRef, Put, Select, SpaceRef, Update};
use ladon_msgpack::{Value, read, read_array, read_uint, write};
use ladon_system_spaces as system;
use ladon_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Mutex, MutexGuard};

const ACCOUNTS: u64 = 16;
const BALANCE: i64 = 1_000;
const ACCOUNTS_SPACE: u32 = 512;
const TRANSFERS_SPACE: u32 = 513;
/// Transactions of a teller at once, one a stream.
const STREAMS: u64 = 2;
/// Transfers that are read at once.
const PAGE: u32 = 1_000;
/// Tarantool's number of the error of a transaction that met another.
const CONFLICT: u32 = 97;
/// Iterators' numbers in the protocol.
const ALL: u32 = 2;
const GT: u32 = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transfer {
    from: u64,
    to: u64,
    amount: i64,
}

/// What is known of the accounts and the transfers.
#[derive(Default)]
pub struct Bank(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The last transfer's number.
    last: u64,
    /// Sent since the last check.
    sent: BTreeMap<u64, Transfer>,
    acknowledged: BTreeSet<u64>,
    /// Refused, or rolled back.
    refused: BTreeSet<u64>,
    conflicts: u64,
    /// At the last check: the balances, how many transfers there were, and the last one sent.
    balances: BTreeMap<u64, i64>,
    checked: u64,
    checked_last: u64,
    committed: u64,
}

impl Bank {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Transfers that were acknowledged, and found again.
    pub fn committed(&self) -> u64 {
        self.known().committed
    }

    /// Transactions that met another and were refused.
    pub fn conflicts(&self) -> u64 {
        self.known().conflicts
    }

    /// Makes the spaces and the accounts.
    ///
    /// # Errors
    /// A server that refuses.
    pub fn open(&self, client: &mut IprotoClient) -> Result<(), String> {
        let mut put = |space: u32, tuple: &[u8]| {
            let request = Request::Insert(Put { space: SpaceRef::Id(space), tuple });
            tuples(client.call(&request)).map(|_| ())
        };
        for (space, name) in [(ACCOUNTS_SPACE, "accounts"), (TRANSFERS_SPACE, "transfers")] {
            put(system::SPACE, &space_tuple(space, name))?;
            put(system::INDEX, &index_tuple(space, 0, true))?;
        }
        put(system::INDEX, &index_tuple(TRANSFERS_SPACE, 1, false))?;
        let mut known = self.known();
        for id in 0..ACCOUNTS {
            put(ACCOUNTS_SPACE, &numbers(&[id as i64, BALANCE]))?;
            known.balances.insert(id, BALANCE);
        }
        Ok(())
    }

    fn next(&self, random: &mut Random) -> (u64, Transfer) {
        let mut known = self.known();
        known.last += 1;
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let transfer = Transfer { from, to, amount: 1 + random.below(9) as i64 };
        let id = known.last;
        known.sent.insert(id, transfer);
        (id, transfer)
    }

    /// Moves money until the connection breaks.
    ///
    /// # Errors
    /// A reply that should have been another. A broken connection is none.
    pub fn work(&self, client: &mut IprotoClient, seed: u64) -> Result<(), String> {
        let mut random = Random::new(seed);
        loop {
            let mut ends = BTreeMap::new();
            let mut asked = 0;
            let mut steps: Vec<_> = (1..=STREAMS)
                .map(|stream| (stream, self.next(&mut random), random.chance(1, 10)))
                .map(|(stream, (id, transfer), gives_up)| (stream, id, transfer, gives_up, 0))
                .collect();
            // The streams' requests in any order among each other.
            while let Some(at) = (!steps.is_empty()).then(|| random.below(steps.len() as u64)) {
                let (stream, id, transfer, gives_up, step) = &mut steps[at as usize];
                let sync = add_step(client, *stream, (*id, *transfer), *step, *gives_up);
                asked += 1;
                *step += 1;
                if *step == STEPS {
                    ends.insert(sync, (*id, *gives_up));
                    steps.swap_remove(at as usize);
                }
            }
            if client.send().is_err() {
                return Ok(());
            }
            for _ in 0..asked {
                let (sync, answer) = match client.reply() {
                    Ok(reply) => reply,
                    Err(error) => return crate::lane::broken(error),
                };
                match ends.get(&sync) {
                    Some(&(id, gives_up)) => self.note_end(id, gives_up, &answer)?,
                    None if answer.is_ok() => {}
                    None => return Err(format!("a request of a transaction: {answer:?}")),
                }
            }
        }
    }

    fn note_end(&self, id: u64, gives_up: bool, answer: &Answer) -> Result<(), String> {
        let mut known = self.known();
        match answer {
            Ok(_) if gives_up => drop(known.refused.insert(id)),
            Ok(_) => drop(known.acknowledged.insert(id)),
            Err(CONFLICT) if !gives_up => {
                known.conflicts += 1;
                known.refused.insert(id);
            }
            Err(code) => return Err(format!("transfer {id} ends with error {code}")),
        }
        Ok(())
    }

    /// Compares with the spaces of the restarted server. `lossy`: acknowledged transfers may be gone.
    ///
    /// # Errors
    /// What differs.
    pub fn check(&self, client: &mut IprotoClient, lossy: bool) -> Result<(), String> {
        let mut known = self.known();
        let found = transfers_after(client, known.checked_last)?;
        for (id, transfer) in &found {
            if known.sent.get(id) != Some(transfer) {
                return Err(format!("transfer {id}, {transfer:?}, was never sent"));
            }
            if known.refused.contains(id) {
                return Err(format!("transfer {id} is there, and was refused"));
            }
        }
        let is_lost = |id: &&u64| !found.contains_key(id);
        if let Some(id) = known.acknowledged.iter().find(is_lost).filter(|_| !lossy) {
            return Err(format!("transfer {id} was acknowledged, and is gone"));
        }
        for Transfer { from, to, amount } in found.values() {
            *known.balances.entry(*from).or_default() -= amount;
            *known.balances.entry(*to).or_default() += amount;
        }
        let accounts = select(client, ACCOUNTS_SPACE, ALL, &[])?;
        let accounts: Option<BTreeMap<u64, i64>> = accounts
            .iter()
            .map(|tuple| match numbers_of(tuple)?[..] {
                [id, balance] => Some((id as u64, balance)),
                _ => None,
            })
            .collect();
        if accounts.as_ref() != Some(&known.balances) {
            return Err(format!(
                "the accounts hold {accounts:?}, and the transfers say {:?}",
                known.balances
            ));
        }
        let sum: i64 = known.balances.values().sum();
        if sum != ACCOUNTS as i64 * BALANCE {
            return Err(format!("all accounts together hold {sum}"));
        }
        let count = known.checked + found.len() as u64;
        check_counts(client, count)?;
        known.committed +=
            known.acknowledged.iter().filter(|id| found.contains_key(id)).count() as u64;
        (known.checked, known.checked_last) = (count, known.last);
        known.sent.clear();
        known.acknowledged.clear();
        known.refused.clear();
        Ok(())
    }
}

/// Requests of a transaction.
const STEPS: u64 = 6;

/// Adds one request of a transfer's transaction.
fn add_step(
    client: &mut IprotoClient,
    stream: u64,
    (id, transfer): (u64, Transfer),
    step: u64,
    gives_up: bool,
) -> u64 {
    let Transfer { from, to, amount } = transfer;
    let mut update = |account: u64, sign: &str| {
        let mut operations = Vec::new();
        write::array(&mut operations, 1);
        write::array(&mut operations, 3);
        write::str(&mut operations, sign.as_bytes());
        write::uint(&mut operations, 1);
        write::int(&mut operations, amount);
        let key = numbers(&[account as i64]);
        let (space, index) = (SpaceRef::Id(ACCOUNTS_SPACE), IndexRef::Id(0));
        let (key, operations) = (&key[..], &operations[..]);
        let update = Update { space, index, index_base: 0, key, operations };
        client.add(stream, &Request::Update(update))
    };
    match step {
        0 => client.add(stream, &Request::Begin(Begin::default())),
        1 => client.add(stream, &of_key(ACCOUNTS_SPACE, 0, &numbers(&[from as i64]))),
        2 => update(from, "-"),
        3 => update(to, "+"),
        4 => {
            let tuple = numbers(&[id as i64, from as i64, to as i64, amount]);
            let space = SpaceRef::Id(TRANSFERS_SPACE);
            client.add(stream, &Request::Insert(Put { space, tuple: &tuple }))
        }
        _ if gives_up => client.add(stream, &Request::Rollback),
        _ => client.add(stream, &Request::Commit(None)),
    }
}

/// The transfers with higher numbers.
fn transfers_after(
    client: &mut IprotoClient,
    mut last: u64,
) -> Result<BTreeMap<u64, Transfer>, String> {
    let mut found = BTreeMap::new();
    loop {
        let page = select(client, TRANSFERS_SPACE, GT, &[last as i64])?;
        for tuple in &page {
            let numbers = numbers_of(tuple);
            let Some(&[id, from, to, amount]) = numbers.as_deref() else {
                return Err(format!("a transfer that is none: {}", tuple.escape_ascii()));
            };
            last = id as u64;
            let transfer = Transfer { from: from as u64, to: to as u64, amount };
            found.insert(last, transfer);
        }
        if page.len() < PAGE as usize {
            return Ok(found);
        }
    }
}

/// Both indexes of the transfers have all of them.
fn check_counts(client: &mut IprotoClient, count: u64) -> Result<(), String> {
    let mut counted = |name: &str, arguments: &[u8]| {
        let call = Request::Call(Call { name: name.as_bytes(), arguments });
        let answer = tuples(client.call(&call))?;
        let number = answer.first().and_then(|bytes| read_uint(&mut bytes.as_slice()).ok());
        number.ok_or_else(|| format!("{name} answers {answer:?}"))
    };
    let all = counted("box.space.transfers:len", &[0x90])?;
    let mut by_account = 0;
    for account in 0..ACCOUNTS {
        let key = numbers(&[account as i64]);
        by_account += counted("box.space.transfers.index.i1:count", &key)?;
    }
    if (all, by_account) == (count, count) {
        return Ok(());
    }
    Err(format!("{count} transfers are expected, {all} are there, {by_account} by their accounts"))
}

fn tuples(answer: io::Result<Answer>) -> Result<Vec<Vec<u8>>, String> {
    let answer = answer.map_err(|error| error.to_string())?;
    answer.map_err(|code| format!("refused with error {code}"))
}

fn of_key(space: u32, iterator: u32, key: &[u8]) -> Request<'_> {
    Request::Select(Select {
        space: SpaceRef::Id(space),
        index: IndexRef::Id(0),
        iterator,
        offset: 0,
        limit: PAGE,
        key,
        fetch_position: false,
        after_position: None,
        after_tuple: None,
    })
}

fn select(
    client: &mut IprotoClient,
    space: u32,
    iterator: u32,
    key: &[i64],
) -> Result<Vec<Vec<u8>>, String> {
    tuples(client.call(&of_key(space, iterator, &numbers(key))))
}

/// A MessagePack array of numbers.
fn numbers(numbers: &[i64]) -> Vec<u8> {
    let mut out = Vec::new();
    write::array(&mut out, numbers.len() as u32);
    numbers.iter().for_each(|number| write::int(&mut out, *number));
    out
}

fn numbers_of(mut tuple: &[u8]) -> Option<Vec<i64>> {
    let count = read_array(&mut tuple).ok()?;
    (0..count)
        .map(|_| match read(&mut tuple).ok()? {
            Value::Uint(number) => i64::try_from(number).ok(),
            Value::Int(number) => Some(number),
            _ => None,
        })
        .collect()
}

fn space_tuple(id: u32, name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write::array(&mut out, 7);
    write::uint(&mut out, id.into());
    write::uint(&mut out, 1);
    write::str(&mut out, name.as_bytes());
    write::str(&mut out, b"memtx");
    write::uint(&mut out, 0);
    write::map(&mut out, 0);
    write::array(&mut out, 0);
    out
}

/// The index of the field with the same number.
fn index_tuple(space: u32, id: u64, is_unique: bool) -> Vec<u8> {
    let mut out = Vec::new();
    write::array(&mut out, 6);
    write::uint(&mut out, space.into());
    write::uint(&mut out, id);
    write::str(&mut out, format!("i{id}").as_bytes());
    write::str(&mut out, b"tree");
    write::map(&mut out, 1);
    write::str(&mut out, b"unique");
    write::bool(&mut out, is_unique);
    write::array(&mut out, 1);
    write::array(&mut out, 2);
    write::uint(&mut out, id);
    write::str(&mut out, b"unsigned");
    out
}
