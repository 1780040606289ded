//! What a command is, as data: the facts (`ladon-command-docs`) and its code together.

use crate::command::accessed::{Accessed, Channels, Databases, KeyFlags};
use crate::command::error::CommandResult;
use crate::command::flags::Flags;
use crate::ctx::Ctx;
use crate::node::Node;
use crate::scripts::shebang::ScriptFlags;
use ladon_command_docs::{BeginSearch, CommandDoc, FindKeys};

/// A command's code: writes the reply, or returns the error that is the reply.
pub type HandlerFn = fn(&mut Ctx<'_>, &[&[u8]]) -> CommandResult;

/// How a command runs.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Ordinary code.
    Run(HandlerFn),
    /// A container: the second argument names one of its `subcommands`.
    Container,
    /// A container that is also a command by itself (`COMMAND`).
    RunOrContainer(HandlerFn),
}

/// The positions of a command's keys among its arguments.
#[derive(Clone, Copy)]
pub enum KeyPositions {
    /// It has none.
    None,
    /// At `first`, `first + step`, ... up to `last` (negative: counted from the end).
    Range {
        /// Position of the first key; the command's name is 0.
        first: u8,
        /// Position of the last key; -1 is the last argument.
        last: i8,
        /// Distance between keys.
        step: u8,
    },
    /// At position 1, and where the function finds another among these arguments, which follows an
    /// option: not before position 3.
    FirstAndOption(fn(&[&[u8]]) -> Option<usize>),
    /// In the range that the function finds in these arguments: not before position 2.
    Found(fn(&[&[u8]]) -> std::ops::Range<usize>),
    /// `numkeys` is at this position and the keys follow it.
    Counted {
        /// Position of the count.
        count_at: u8,
        /// Distance between keys.
        step: u8,
    },
    /// As `Counted`, and one more at position 1.
    FirstAndCounted {
        /// Position of the count.
        count_at: u8,
    },
}

impl KeyPositions {
    /// The positions according to the facts, without keys that only options or data determine.
    ///
    /// # Panics
    /// If no variant can express them.
    fn of(doc: &CommandDoc) -> KeyPositions {
        let narrow = |number: i32| u8::try_from(number).expect("a position");
        let counted =
            doc.key_specs.iter().find_map(|spec| match (spec.begin_search, spec.find_keys) {
                (BeginSearch::Index(at), FindKeys::KeyNumber { key_step, .. }) => {
                    Some((narrow(at), narrow(key_step)))
                }
                _ => None,
            });
        match (doc.key_range(), counted) {
            ((0, ..), None) => KeyPositions::None,
            ((0, ..), Some((count_at, step))) => KeyPositions::Counted { count_at, step },
            ((1, 1, _), Some((count_at, 1))) => KeyPositions::FirstAndCounted { count_at },
            ((first, last, step), None) => KeyPositions::Range {
                first: narrow(first),
                last: i8::try_from(last).expect("a position"),
                step: narrow(step),
            },
            _ => panic!("{}: keys in a range and behind a number", doc.name),
        }
    }

    /// Whether the only key among `count` arguments (the name included) is the one at position 1.
    #[inline]
    pub fn is_one(self, count: usize) -> bool {
        match self {
            KeyPositions::Range { first: 1, last: 1, .. } => true,
            KeyPositions::Range { first: 1, last, step } if last < 0 => {
                count <= usize::from(step) + usize::from(last.unsigned_abs())
            }
            // The option and its key take two more.
            KeyPositions::FirstAndOption(_) => count <= 3,
            _ => false,
        }
    }

    /// The positions of the keys in these arguments. If some are missing or the count is malformed,
    /// those that are there.
    pub fn positions(self, args: &[&[u8]]) -> impl Iterator<Item = usize> + use<> {
        let leading = match self {
            KeyPositions::FirstAndCounted { .. } if args.len() > 1 => 1..2,
            _ => 0..0,
        };
        let mut other = None;
        let (first, end, step) = match self {
            KeyPositions::None => (0, 0, 1),
            KeyPositions::Found(find) => {
                let found = find(args);
                (found.start, found.end, 1)
            }
            KeyPositions::FirstAndOption(find) => {
                other = find(args);
                (1, args.len().min(2), 1)
            }
            KeyPositions::Range { first, last, step } => {
                let last = if last < 0 {
                    (args.len() as isize + isize::from(last)).max(0) as usize
                } else {
                    last as usize
                };
                (usize::from(first), (last + 1).min(args.len()), usize::from(step))
            }
            KeyPositions::Counted { .. } | KeyPositions::FirstAndCounted { .. } => {
                let (at, step) = match self {
                    KeyPositions::Counted { count_at, step } => (count_at, usize::from(step)),
                    KeyPositions::FirstAndCounted { count_at } => (count_at, 1),
                    _ => unreachable!("matched above"),
                };
                let at = usize::from(at);
                let count = args.get(at).and_then(|text| ladon_resp::parse_i64(text)).unwrap_or(0);
                let first = at + 1;
                let count = usize::try_from(count).unwrap_or(0).min(args.len());
                (first, (first + count * step).min(args.len()), step)
            }
        };
        leading.chain((first..end.max(first)).step_by(step)).chain(other)
    }
}

impl KeyPositions {
    /// Whether the arguments announce more keys than there are: a request that every command
    /// refuses before it looks at a key.
    pub(crate) fn lack_announced(self, args: &[&[u8]]) -> bool {
        let (at, step) = match self {
            KeyPositions::Counted { count_at, step } => (usize::from(count_at), usize::from(step)),
            KeyPositions::FirstAndCounted { count_at } => (usize::from(count_at), 1),
            _ => return false,
        };
        let count = args.get(at).and_then(|text| ladon_resp::parse_i64(text));
        let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        let last = at.saturating_add(count.saturating_sub(1).saturating_mul(step)) + 1;
        count > 0 && last >= args.len()
    }
}

/// The part of its first key's value that a command accesses, for prefetching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Nothing beyond the entry, or unknown.
    None,
    /// The beginning or the end of it.
    Whole,
    /// The member or field that this argument names.
    Element(u8),
    /// The bit whose offset this argument is.
    Bit(u8),
}

/// Which locks a command needs before it runs.
#[derive(Clone, Copy, Debug)]
pub enum LockNeed {
    /// None: it does not touch data.
    None,
    /// Those of its keys.
    Keys,
    /// Those of its keys, or all if the function returns true for its arguments: it then reads keys
    /// that they do not name.
    KeysUnless(fn(&[&[u8]]) -> bool),
    /// All: it is atomic over the whole keyspace.
    All,
    /// The command takes locks step by step (`Ctx::on_partition`); inside `EXEC` it has all.
    Own,
}

/// What a command does with keys that are tuples of mounted spaces.
#[derive(Clone, Copy)]
pub enum OnTuples {
    /// It is refused.
    Refused,
    /// This runs in its place if one of its keys is a tuple's.
    Keys(HandlerFn),
    /// This runs in its place whenever a space is mounted.
    Always(HandlerFn),
}

/// What the script or function that these arguments name declares, if it is known; without locks, so a
/// function of a transaction that is running may be found.
pub type DeclaredFn = fn(&Node, &[&[u8]]) -> Option<ScriptFlags>;

/// A command's code, as its family lists it.
pub struct Code {
    /// Lower case.
    pub(crate) name: &'static str,
    handler: Handler,
    locks: LockNeed,
    part: Part,
    /// In addition to those of the facts.
    flags: Flags,
    /// Overrides the facts.
    keys: Option<KeyPositions>,
    on_tuples: OnTuples,
    /// Overrides the facts.
    key_flags: Option<KeyFlags>,
    channels: Channels,
    databases: Databases,
    declared: Option<DeclaredFn>,
    /// A container's subcommands.
    pub(crate) subcommands: &'static [Code],
}

impl Code {
    /// A command that locks its keys.
    pub const fn on_keys(name: &'static str, handler: HandlerFn) -> Code {
        Code::with_locks(name, LockNeed::Keys, handler)
    }

    /// A command that needs these locks.
    pub const fn with_locks(name: &'static str, locks: LockNeed, handler: HandlerFn) -> Code {
        Code {
            name,
            handler: Handler::Run(handler),
            locks,
            part: Part::None,
            flags: Flags::NONE,
            keys: None,
            on_tuples: OnTuples::Refused,
            key_flags: None,
            channels: Channels::None,
            databases: Databases::Selected,
            declared: None,
            subcommands: &[],
        }
    }

    /// A container of subcommands.
    pub const fn container(name: &'static str, subcommands: &'static [Code]) -> Code {
        let no_code: HandlerFn = |_, _| unreachable!("a container has no code of its own");
        let code = Code::with_locks(name, LockNeed::None, no_code);
        Code { handler: Handler::Container, subcommands, ..code }
    }

    /// The same container, which is also a command by itself.
    pub const fn alone(self, handler: HandlerFn) -> Code {
        Code { handler: Handler::RunOrContainer(handler), ..self }
    }

    /// The same command, which looks at this part of its first key's value.
    pub const fn at(self, part: Part) -> Code {
        Code { part, ..self }
    }

    /// The same command, with these flags beside those that clients see.
    pub const fn with(self, flags: Flags) -> Code {
        Code { flags, ..self }
    }

    /// The same command, which this answers for keys that are tuples.
    pub const fn on_tuples(self, handler: HandlerFn) -> Code {
        Code { on_tuples: OnTuples::Keys(handler), ..self }
    }

    /// The same command, which this answers whenever a space is mounted.
    pub const fn beside_mounts(self, handler: HandlerFn) -> Code {
        Code { on_tuples: OnTuples::Always(handler), ..self }
    }

    /// The same command, with keys that the facts cannot express.
    pub const fn with_keys(self, keys: KeyPositions) -> Code {
        Code { keys: Some(keys), ..self }
    }

    /// The same command, whose arguments decide what it does with its keys.
    pub const fn with_key_flags(self, key_flags: KeyFlags) -> Code {
        Code { key_flags: Some(key_flags), ..self }
    }

    /// The same command, which publishes or subscribes to these.
    pub const fn on_channels(self, channels: Channels) -> Code {
        Code { channels, ..self }
    }

    /// The same command, which runs what says itself whether it may write.
    pub const fn declared_by(self, declared: DeclaredFn) -> Code {
        Code { declared: Some(declared), ..self }
    }

    /// The same command, which uses these databases.
    pub const fn on_databases(self, databases: Databases) -> Code {
        Code { databases, ..self }
    }
}

/// One command, or one subcommand of a container.
pub struct CommandSpec {
    /// Lower case.
    pub name: &'static str,
    /// Exact number of arguments, the name included; negative: at least that many.
    pub arity: i16,
    /// Properties.
    pub flags: Flags,
    /// Where the keys are.
    pub keys: KeyPositions,
    /// What it looks at inside the first key's value.
    pub part: Part,
    /// Which locks it needs.
    pub locks: LockNeed,
    /// Its code.
    pub handler: Handler,
    /// What it does with keys that are tuples of mounted spaces.
    pub on_tuples: OnTuples,
    /// What rights are asked for.
    pub accessed: Accessed,
    /// What that which it runs declares.
    pub declared: Option<DeclaredFn>,
}

impl CommandSpec {
    /// Joins the facts and the code.
    ///
    /// # Panics
    /// If a fact cannot be represented; a test joins all of them.
    pub(crate) fn new(doc: &'static CommandDoc, code: &Code) -> CommandSpec {
        CommandSpec {
            name: code.name,
            arity: doc.arity,
            flags: Flags::of(&doc.flags).or(code.flags),
            keys: code.keys.unwrap_or_else(|| KeyPositions::of(doc)),
            part: code.part,
            locks: code.locks,
            handler: code.handler,
            on_tuples: code.on_tuples,
            declared: code.declared,
            accessed: Accessed {
                key_specs: &doc.key_specs,
                key_flags: code.key_flags,
                channels: code.channels,
                databases: code.databases,
            },
        }
    }

    /// Whether this number of arguments (the name included) is allowed.
    #[inline]
    pub fn accepts(&self, count: usize) -> bool {
        if self.arity >= 0 { count == self.arity as usize } else { count >= -self.arity as usize }
    }
}
