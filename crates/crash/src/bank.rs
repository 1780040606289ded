//! A bank in two spaces: transactions over streams move money between accounts, and write each
//! transfer down.
//!
//! ```text
//! teller --BEGIN, SELECT, SELECT--> accounts  [id, balance]
//!        <--both balances---------
//!        --REPLACE balance - a, REPLACE balance + a,       or UPDATE - a, UPDATE + a
//!          INSERT transfer, COMMIT--> transfers [id, from, to, a]
//! ```
//! Several tellers do so, each on two streams at once. So a commit that overlooks what its
//! transaction has read loses money, or makes some.
//!
//! Beside them, the definitions of the transfers change.
//!
//! After a crash, the accounts hold what the transfers that are there say, so the sum is what it
//! was. Every transfer whose COMMIT was acknowledged is there, and none that was refused or rolled
//! back. The indexes of the transfers agree with each other.

use crate::definitions::{Definitions, PASSING_INDEX, index_tuple, space_tuple};
use crate::iproto::{Answer, IprotoClient};
use ladon_iproto::Request;
use ladon_iproto::request::{Begin, Call, IndexRef, Put, Select, SpaceRef, Update};
use ladon_msgpack::{Value, read, read_array, read_uint, write};
use ladon_system_spaces as system;
use ladon_testkit::Random;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

const ACCOUNTS: u64 = 16;
const BALANCE: i64 = 1_000;
const ACCOUNTS_SPACE: u32 = 512;
const TRANSFERS_SPACE: u32 = 513;
/// Orders transfers by their numbers, whatever the primary key is.
const BY_NUMBER: u32 = 2;
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
pub struct Bank {
    known: Mutex<Known>,
    pub(crate) definitions: Definitions,
}

impl Default for Bank {
    fn default() -> Bank {
        let definitions = Definitions::new(TRANSFERS_SPACE, "transfers");
        Bank { known: Mutex::default(), definitions }
    }
}

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
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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
            put(system::SPACE, &space_tuple(space, name, &[]))?;
            put(system::INDEX, &index_tuple(space, 0, true, &[0]))?;
        }
        put(system::INDEX, &index_tuple(TRANSFERS_SPACE, 1, false, &[1]))?;
        put(system::INDEX, &index_tuple(TRANSFERS_SPACE, BY_NUMBER.into(), true, &[0]))?;
        let mut known = self.known();
        for id in 0..ACCOUNTS {
            put(ACCOUNTS_SPACE, &numbers(&[id as i64, BALANCE]))?;
            known.balances.insert(id, BALANCE);
        }
        Ok(())
    }

    fn next(&self, stream: u64, random: &mut Random) -> Job {
        let mut known = self.known();
        known.last += 1;
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let transfer = Transfer { from, to, amount: 1 + random.below(9) as i64 };
        let id = known.last;
        known.sent.insert(id, transfer);
        let (computes, gives_up) = (random.chance(1, 2), random.chance(1, 10));
        let is_refused = Cell::new(false);
        Job { stream, id, transfer, computes, gives_up, balances: [0; 2], is_refused }
    }

    /// Moves money until the connection breaks.
    ///
    /// # Errors
    /// A reply that should have been another. A broken connection is none.
    pub fn work(&self, client: &mut IprotoClient, seed: u64) -> Result<(), String> {
        let mut random = Random::new(seed);
        loop {
            let mut jobs: Vec<Job> =
                (1..=STREAMS).map(|stream| self.next(stream, &mut random)).collect();
            let mut read = BTreeMap::new();
            let is_connected =
                exchange(client, &mut random, &jobs, 0..WRITES, |at, step, answer| {
                    let rows = answer.map_err(|code| format!("a read ends with error {code}"))?;
                    if step > BEGIN {
                        let row = rows.first().and_then(|row| numbers_of(row));
                        let Some(&[_, balance]) = row.as_deref() else {
                            return Err(format!("no account: {rows:?}"));
                        };
                        read.insert((at, step), balance);
                    }
                    Ok(())
                })?;
            if !is_connected {
                return Ok(());
            }
            for (at, job) in jobs.iter_mut().enumerate() {
                job.balances = [FROM, TO].map(|step| read[&(at, step)]);
            }
            let note = |at: usize, step, answer: Answer| match answer {
                answer if step == END => self.note_end(&jobs[at], &answer),
                Ok(_) => Ok(()),
                Err(CONFLICT) => {
                    jobs[at].is_refused.set(true);
                    Ok(())
                }
                Err(code) => Err(format!("a write ends with error {code}")),
            };
            if !exchange(client, &mut random, &jobs, WRITES..END + 1, note)? {
                return Ok(());
            }
        }
    }

    fn note_end(&self, job: &Job, answer: &Answer) -> Result<(), String> {
        let mut known = self.known();
        let &Job { id, gives_up, .. } = job;
        match answer {
            Ok(_) if job.is_refused.get() && !gives_up => {
                return Err(format!("transfer {id} is committed without one of its writes"));
            }
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

    /// Compares with the spaces of the restarted server. `lossy`: acknowledged transfers may be
    /// gone.
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
        let accounts = select(client, (ACCOUNTS_SPACE, 0), ALL, &[])?;
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
        self.definitions.check(client, lossy)?;
        check_counts(client, count, self.definitions.has_passing_index())?;
        known.committed +=
            known.acknowledged.iter().filter(|id| found.contains_key(id)).count() as u64;
        (known.checked, known.checked_last) = (count, known.last);
        known.sent.clear();
        known.acknowledged.clear();
        known.refused.clear();
        Ok(())
    }
}

/// A transfer that is being made.
struct Job {
    stream: u64,
    id: u64,
    transfer: Transfer,
    /// It writes the balances that it computes from those it has read, which is right only if
    /// nobody changes them meanwhile. Otherwise the server adds and subtracts.
    computes: bool,
    gives_up: bool,
    /// As they were read, of both accounts.
    balances: [i64; 2],
    /// A write met a change of a definition, so the commit has to be refused.
    is_refused: Cell<bool>,
}

// A transaction's requests.
const BEGIN: u64 = 0;
const FROM: u64 = 1;
const TO: u64 = 2;
/// The first of two changes of a balance.
const WRITES: u64 = 3;
const WRITE_DOWN: u64 = 5;
const END: u64 = 6;

impl Job {
    /// Adds one request of the transaction.
    fn ask(&self, client: &mut IprotoClient, step: u64) -> u64 {
        let Transfer { from, to, amount } = self.transfer;
        let stream = self.stream;
        match step {
            BEGIN => client.add(stream, &Request::Begin(Begin::default())),
            FROM | TO => {
                let key = numbers(&[if step == FROM { from } else { to } as i64]);
                client.add(stream, &of_key((ACCOUNTS_SPACE, 0), 0, &key))
            }
            WRITES => self.change(client, from, self.balances[0], -amount),
            END if self.gives_up => client.add(stream, &Request::Rollback),
            END => client.add(stream, &Request::Commit(None)),
            WRITE_DOWN => {
                let tuple = numbers(&[self.id as i64, from as i64, to as i64, amount]);
                let space = SpaceRef::Id(TRANSFERS_SPACE);
                client.add(stream, &Request::Insert(Put { space, tuple: &tuple }))
            }
            _ => self.change(client, to, self.balances[1], amount),
        }
    }

    /// Adds the change of a balance.
    fn change(&self, client: &mut IprotoClient, account: u64, balance: i64, by: i64) -> u64 {
        let space = SpaceRef::Id(ACCOUNTS_SPACE);
        if self.computes {
            let tuple = numbers(&[account as i64, balance + by]);
            return client.add(self.stream, &Request::Replace(Put { space, tuple: &tuple }));
        }
        let mut operations = Vec::new();
        write::array(&mut operations, 1);
        write::array(&mut operations, 3);
        write::str(&mut operations, b"+");
        write::uint(&mut operations, 1);
        write::int(&mut operations, by);
        let key = numbers(&[account as i64]);
        let (index, key, operations) = (IndexRef::Id(0), &key[..], &operations[..]);
        let update = Update { space, index, index_base: 0, key, operations };
        client.add(self.stream, &Request::Update(update))
    }
}

/// Sends some requests of each job, in any order among the jobs, and takes the replies, each with
/// its job and its step. Returns whether the connection has held.
fn exchange(
    client: &mut IprotoClient,
    random: &mut Random,
    jobs: &[Job],
    steps: Range<u64>,
    mut take: impl FnMut(usize, u64, Answer) -> Result<(), String>,
) -> Result<bool, String> {
    let mut asked = BTreeMap::new();
    let mut next = vec![steps.start; jobs.len()];
    while let open @ [_, ..] =
        &(0..jobs.len()).filter(|&at| next[at] < steps.end).collect::<Vec<_>>()[..]
    {
        let at = random.pick(open);
        asked.insert(jobs[at].ask(client, next[at]), (at, next[at]));
        next[at] += 1;
    }
    if client.send().is_err() {
        return Ok(false);
    }
    while !asked.is_empty() {
        let (sync, answer) = match client.reply() {
            Ok(reply) => reply,
            Err(error) => return crate::lane::broken(error).map(|()| false),
        };
        let (at, step) = asked.remove(&sync).ok_or("a reply that nobody asked for")?;
        take(at, step, answer)?;
    }
    Ok(true)
}

/// The transfers with higher numbers.
fn transfers_after(
    client: &mut IprotoClient,
    mut last: u64,
) -> Result<BTreeMap<u64, Transfer>, String> {
    let mut found = BTreeMap::new();
    loop {
        let page = select(client, (TRANSFERS_SPACE, BY_NUMBER), GT, &[last as i64])?;
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

/// All indexes of the transfers have all of them.
fn check_counts(
    client: &mut IprotoClient,
    count: u64,
    has_passing_index: bool,
) -> Result<(), String> {
    let mut counted = |name: &str, arguments: &[u8]| {
        let call = Request::Call(Call { name: name.as_bytes(), arguments });
        let answer = tuples(client.call(&call))?;
        let number = answer.first().and_then(|bytes| read_uint(&mut bytes.as_slice()).ok());
        number.ok_or_else(|| format!("{name} answers {answer:?}"))
    };
    let all = counted("box.space.transfers:len", &[0x90])?;
    let mut others = vec![BY_NUMBER.into()];
    others.extend(has_passing_index.then_some(PASSING_INDEX));
    for index in others {
        let found = counted(&format!("box.space.transfers.index.i{index}:count"), &[0x90])?;
        if found != count {
            return Err(format!("{count} transfers are expected, {found} are in index {index}"));
        }
    }
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

fn of_key((space, index): (u32, u32), iterator: u32, key: &[u8]) -> Request<'_> {
    Request::Select(Select {
        space: SpaceRef::Id(space),
        index: IndexRef::Id(index),
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
    space_and_index: (u32, u32),
    iterator: u32,
    key: &[i64],
) -> Result<Vec<Vec<u8>>, String> {
    tuples(client.call(&of_key(space_and_index, iterator, &numbers(key))))
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
