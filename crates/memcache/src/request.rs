//! What a piece of text asks for.
//!
//! Source: memcached's `doc/protocol.txt`; errors are those of memcached 1.6.18.

use crate::KEY_BYTES_MAX;
use crate::meta::{self, Meta};
use crate::words::{number, signed, without_end, words};

/// The words of an error of the client's; see the protocol's "Error strings".
pub mod error {
    /// No such command, or too few words.
    pub const UNKNOWN: &str = "ERROR";
    /// A word is not what it should be.
    pub const FORMAT: &str = "CLIENT_ERROR bad command line format";
    /// A value does not end where it should.
    pub const CHUNK: &str = "CLIENT_ERROR bad data chunk";
    /// An expiry is no number.
    pub const EXPTIME: &str = "CLIENT_ERROR invalid exptime argument";
    /// What to count by is no number.
    pub const DELTA: &str = "CLIENT_ERROR invalid numeric delta argument";
    /// `delete` takes a key alone.
    pub const DELETE: &str = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]";
    /// A value is longer than allowed.
    pub const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";
}

/// A `get` or one of its relatives, without its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyList {
    /// The reply shows the items' versions.
    pub shows_cas: bool,
    /// The keys expire then; the word in front of them said so.
    pub exptime: Option<i64>,
    /// A word for the expiry precedes the keys.
    touches: bool,
    /// Its first words have been read.
    is_begun: bool,
    /// Bytes of the line that are left then, its end included.
    left: usize,
}

impl KeyList {
    /// That of the line's beginning.
    pub(crate) fn first(self) -> KeyList {
        KeyList { is_begun: false, ..self }
    }

    /// The words in front of the first key.
    pub(crate) fn words_before_keys(self) -> usize {
        match (self.is_begun, self.touches) {
            (true, _) => 0,
            (false, touches) => 1 + usize::from(touches),
        }
    }

    /// How many bytes of its line are left, if its first words have been read.
    pub(crate) fn rest(self) -> Option<usize> {
        self.is_begun.then_some(self.left)
    }

    /// That of the keys behind the first pieces of `line`, of which so many bytes are left.
    pub(crate) fn of_line(self, line: &[u8], left: usize) -> KeyList {
        match self.is_begun {
            true => KeyList { left, ..self },
            false => {
                let exptime = self.exptime_of(line);
                KeyList { is_begun: true, exptime, left, ..self }
            }
        }
    }

    fn exptime_of(self, line: &[u8]) -> Option<i64> {
        if self.touches { words(line).nth(1).and_then(signed) } else { None }
    }
}

/// The list of keys that a line begins, if it does.
pub(crate) fn key_list(line: &[u8]) -> Option<KeyList> {
    let (shows_cas, touches) = match words(line).next()? {
        b"get" => (false, false),
        b"gets" => (true, false),
        b"gat" => (false, true),
        b"gats" => (true, true),
        _ => return None,
    };
    Some(KeyList { shows_cas, exptime: None, touches, is_begun: false, left: 0 })
}

/// Whether the words behind a list's first ones are keys, and there are any.
pub(crate) fn are_keys(line: &[u8], list: KeyList) -> bool {
    let before = list.first().words_before_keys();
    let mut keys = words(line).skip(before).peekable();
    keys.peek().is_some()
        && keys.all(|key| key.len() <= KEY_BYTES_MAX)
        && (!list.touches || list.exptime_of(line).is_some())
}

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Whatever was there.
    Set,
    /// Only if nothing was there.
    Add,
    /// Only if something was there.
    Replace,
    /// Behind what is there.
    Append,
    /// In front of what is there.
    Prepend,
}

/// A value to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store<'a> {
    /// How.
    pub mode: Mode,
    /// Where.
    pub key: &'a [u8],
    /// The client's flags.
    pub flags: u32,
    /// When it expires, as the protocol has it: see [`Request`].
    pub exptime: i64,
    /// Only if the item has this version.
    pub cas: Option<u64>,
    /// Its bytes.
    pub value: &'a [u8],
    /// No reply is wanted.
    pub noreply: bool,
}

/// What a list of all items shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpForm {
    /// Keys with what is known of the items.
    Facts,
    /// The requests that read the items.
    Requests,
    /// `stats cachedump`: so many keys with lengths and times; 0 for all.
    Class(u64),
}

/// What `watch` asks for.
pub mod watched {
    /// Requests that read items.
    pub const FETCHERS: u8 = 1;
    /// Requests that store values.
    pub const MUTATIONS: u8 = 1 << 1;
    /// Items that are removed for want of memory.
    pub const EVICTIONS: u8 = 1 << 2;
    /// Connections that begin and end.
    pub const CONNECTIONS: u8 = 1 << 3;
}

/// A request. Times are seconds: from now on up to 30 days, since 1970 beyond, at once if negative,
/// and never if 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// `get`, `gets`, `gat`, `gats`: some of the keys.
    Get {
        /// What all keys have in common.
        list: KeyList,
        /// The keys, between spaces.
        keys: &'a [u8],
        /// These are the last.
        is_last: bool,
    },
    /// `set` and its relatives.
    Store(Store<'a>),
    /// `delete`.
    Delete {
        /// Which.
        key: &'a [u8],
        /// No reply is wanted.
        noreply: bool,
    },
    /// `incr`, `decr`.
    Count {
        /// Which.
        key: &'a [u8],
        /// By how much.
        delta: u64,
        /// Downwards.
        down: bool,
        /// No reply is wanted.
        noreply: bool,
    },
    /// `touch`.
    Touch {
        /// Which.
        key: &'a [u8],
        /// When it expires.
        exptime: i64,
        /// No reply is wanted.
        noreply: bool,
    },
    /// `flush_all`.
    FlushAll {
        /// When.
        exptime: i64,
        /// No reply is wanted.
        noreply: bool,
    },
    /// `version`.
    Version,
    /// `verbosity`.
    Verbosity {
        /// No reply is wanted.
        noreply: bool,
    },
    /// `quit`.
    Quit,
    /// A request of HTTP, by a browser that is made to speak to this port.
    Http,
    /// `stats`, and what of.
    Stats(&'a [u8]),
    /// `lru_crawler metadump` and `mgdump`, `stats cachedump`: all keys.
    Dump {
        /// What it shows.
        form: DumpForm,
        /// Nothing, because no class with items is named.
        is_empty: bool,
    },
    /// `watch`: bits of [`watched`].
    Watch(u8),
    /// What is asked for is so anyway.
    Granted,
    /// A command that has no meaning here.
    Refused(&'static str),
    /// A meta command.
    Meta(Meta<'a>),
    /// A value that is longer than allowed, and is skipped.
    TooLarge {
        /// Where a `set` wanted to put it.
        set: Option<&'a [u8]>,
        /// No reply is wanted.
        noreply: bool,
    },
    /// A part of a value that nobody wants.
    Skipped,
    /// A line that asks for nothing.
    Bad {
        /// What to say.
        error: &'static str,
        /// Nobody listens.
        noreply: bool,
    },
}

/// The length of the value behind a line, if there is one.
pub(crate) fn value_bytes(line: &[u8]) -> Option<u64> {
    let mut rest = words(line);
    match rest.next()? {
        b"ms" => meta::value_bytes(line),
        name => {
            let is_store =
                matches!(name, b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas");
            if !is_store {
                return None;
            }
            head(line).ok().map(|(_, bytes)| bytes)
        }
    }
}

const fn bad<'a>(error: &'static str) -> Request<'a> {
    Request::Bad { error, noreply: false }
}

/// The largest length that memcached takes for one.
const VALUE_BYTES_MAX: u64 = i32::MAX as u64 - 2;

/// Why a line asks for nothing, and whether nobody listens.
type Bad = (&'static str, bool);

/// A storage command's line, and the length of its value.
fn head(line: &[u8]) -> Result<(Store<'_>, u64), Bad> {
    let mut rest = words(line);
    let (name, key, flags, exptime, bytes) =
        match (rest.next(), rest.next(), rest.next(), rest.next(), rest.next()) {
            (Some(a), Some(b), Some(c), Some(d), Some(e)) => (a, b, c, d, e),
            _ => return Err((error::UNKNOWN, false)),
        };
    let mode = match name {
        b"add" => Mode::Add,
        b"replace" => Mode::Replace,
        b"append" => Mode::Append,
        b"prepend" => Mode::Prepend,
        _ => Mode::Set,
    };
    let cas = match name {
        b"cas" => Some(rest.next().ok_or((error::UNKNOWN, false))?),
        _ => None,
    };
    let noreply = match rest.next() {
        None => false,
        Some(b"noreply") => true,
        Some(_) => return Err((error::UNKNOWN, false)),
    };
    if rest.next().is_some() {
        return Err((error::UNKNOWN, false));
    }
    let format = || (error::FORMAT, noreply);
    let flags = number(flags).and_then(|flags| u32::try_from(flags).ok()).ok_or_else(format)?;
    let exptime = signed(exptime).ok_or_else(format)?;
    let bytes = number(bytes).filter(|&it| it <= VALUE_BYTES_MAX).ok_or_else(format)?;
    let cas = cas.map(|word| number(word).ok_or_else(format)).transpose()?;
    if key.len() > KEY_BYTES_MAX {
        return Err(format());
    }
    Ok((Store { mode, key, flags, exptime, cas, value: &[], noreply }, bytes))
}

impl<'a> Request<'a> {
    /// What a whole piece asks for that began a line.
    pub fn of_line(piece: &'a [u8]) -> Request<'a> {
        let end = memchr::memchr(b'\n', piece).map_or(piece.len(), |at| at + 1);
        let (line, value) = (without_end(&piece[..end]), &piece[end..]);
        let mut rest = words(line);
        let Some(name) = rest.next() else { return bad(error::UNKNOWN) };
        if let Some(list) = key_list(line) {
            return Request::of_keys(list, piece, end);
        }
        match name {
            b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => store(line, value),
            b"mg" | b"ms" | b"md" | b"ma" | b"me" => match Meta::of_line(line, value) {
                Ok(meta) => Request::Meta(meta),
                Err(error) => bad(error),
            },
            b"mn" => Request::Meta(Meta::Noop),
            _ => Request::of_words(name, line),
        }
    }

    /// A list of keys: its first piece.
    fn of_keys(list: KeyList, piece: &'a [u8], end: usize) -> Request<'a> {
        let line = without_end(&piece[..end]);
        // Cut pieces have no line's end, and were looked at before.
        let is_whole = piece.ends_with(b"\n");
        if is_whole && !are_keys(line, list) {
            return match words(line).count() {
                0 | 1 => bad(error::UNKNOWN),
                2 if list.touches => bad(error::UNKNOWN),
                _ if list.touches && list.exptime_of(line).is_none() => bad(error::EXPTIME),
                _ => bad(error::FORMAT),
            };
        }
        let first = words(line).nth(list.words_before_keys()).map(|key| key.as_ptr() as usize);
        let at = first.map_or(line.len(), |first| first - line.as_ptr() as usize);
        Request::Get { list: list.of_line(line, 0), keys: &line[at..], is_last: is_whole }
    }

    /// More keys of a list.
    pub fn of_more_keys(list: KeyList, piece: &'a [u8]) -> Request<'a> {
        Request::Get { list, keys: without_end(piece), is_last: piece.ends_with(b"\n") }
    }

    fn of_words(name: &[u8], line: &'a [u8]) -> Request<'a> {
        let mut rest = words(line).skip(1);
        let count = rest.clone().count();
        let noreply = rest.clone().last() == Some(b"noreply");
        let bad = |error| Request::Bad { error, noreply };
        let unknown = Request::Bad { error: error::UNKNOWN, noreply: false };
        match (name, count) {
            (b"delete", 1..=3) => {
                let key = rest.next().unwrap_or_default();
                let is_plain = match rest.next() {
                    None => true,
                    Some(b"0") => count == 2 || noreply,
                    Some(_) => count == 2 && noreply,
                };
                match (is_plain, key.len() <= KEY_BYTES_MAX) {
                    (true, true) => Request::Delete { key, noreply: noreply && count > 1 },
                    (true, false) => bad(error::FORMAT),
                    (false, _) => bad(error::DELETE),
                }
            }
            (b"incr" | b"decr", 2 | 3) => {
                let (key, delta) = (rest.next().unwrap_or_default(), rest.next());
                match delta.and_then(number) {
                    _ if key.len() > KEY_BYTES_MAX => bad(error::FORMAT),
                    None => bad(error::DELTA),
                    Some(delta) => Request::Count { key, delta, down: name == b"decr", noreply },
                }
            }
            (b"touch", 2 | 3) => {
                let (key, exptime) = (rest.next().unwrap_or_default(), rest.next());
                match exptime.and_then(signed) {
                    _ if key.len() > KEY_BYTES_MAX => bad(error::FORMAT),
                    None => bad(error::EXPTIME),
                    Some(exptime) => Request::Touch { key, exptime, noreply },
                }
            }
            (b"flush_all", 0..=2) => match rest.next() {
                None => Request::FlushAll { exptime: 0, noreply },
                Some(b"noreply") => Request::FlushAll { exptime: 0, noreply },
                Some(word) => match signed(word) {
                    None => bad(error::EXPTIME),
                    Some(exptime) => Request::FlushAll { exptime, noreply },
                },
            },
            (b"version", _) => Request::Version,
            (b"verbosity", 1 | 2) => match rest.next().and_then(number) {
                None => bad(error::FORMAT),
                Some(_) => Request::Verbosity { noreply },
            },
            (b"quit", _) => Request::Quit,
            (b"stats", _) if rest.clone().next() == Some(b"cachedump") => of_cachedump(rest),
            (b"stats", _) => {
                let of = rest
                    .next()
                    .map_or(line.len(), |word| word.as_ptr() as usize - line.as_ptr() as usize);
                Request::Stats(&line[of..])
            }
            (b"shutdown", _) => Request::Refused("ERROR: shutdown not enabled"),
            (b"lru_crawler", _) => of_crawler(rest.next(), rest.next(), count),
            (b"watch", _) => watch(rest),
            _ if rest.clone().last().is_some_and(|word| word.starts_with(b"HTTP/")) => {
                Request::Http
            }
            _ => match refused(name) {
                Some(why) => Request::Refused(why),
                None => unknown,
            },
        }
    }
}

/// `watch`, and what is to be watched.
fn watch<'a>(words: impl Iterator<Item = &'a [u8]>) -> Request<'a> {
    let mut all = 0;
    for word in words {
        all |= match word {
            b"fetchers" => watched::FETCHERS,
            b"mutations" => watched::MUTATIONS,
            b"evictions" => watched::EVICTIONS,
            b"connevents" => watched::CONNECTIONS,
            b"deletions" | b"rawcmds" | b"sysevents" | b"proxyreqs" | b"proxyevents"
            | b"proxyuser" => {
                let why = "SERVER_ERROR watch: only fetchers, mutations, evictions and connevents";
                return Request::Refused(why);
            }
            _ => return bad(error::UNKNOWN),
        };
    }
    // As memcached, if nothing is named.
    Request::Watch(if all == 0 { watched::FETCHERS } else { all })
}

/// `lru_crawler`, of which what has no meaning here is refused by name.
fn of_crawler<'a>(order: Option<&[u8]>, word: Option<&[u8]>, count: usize) -> Request<'a> {
    let form = match order {
        Some(b"mgdump") => DumpForm::Requests,
        _ => DumpForm::Facts,
    };
    let number = word.and_then(number);
    match (order, word, count) {
        (Some(b"enable"), None, _) => Request::Granted,
        (Some(b"disable"), None, _) => {
            Request::Refused("SERVER_ERROR lru_crawler disable: what has expired is always removed")
        }
        (Some(b"sleep" | b"tocrawl"), Some(_), 2) => match number {
            None => bad(error::FORMAT),
            Some(_) => Request::Refused(
                "SERVER_ERROR lru_crawler: the pace is that of active-expire-effort",
            ),
        },
        (Some(b"crawl" | b"metadump" | b"mgdump"), Some(classes), 2) => {
            match (names_items(classes), order) {
                (None, _) => bad("BADCLASS invalid class id"),
                // What has expired is removed all the time.
                (Some(_), Some(b"crawl")) => Request::Granted,
                (Some(names), _) => Request::Dump { form, is_empty: !names },
            }
        }
        _ => bad(error::UNKNOWN),
    }
}

/// `stats cachedump CLASS LIMIT`, behind `stats`.
fn of_cachedump<'a>(words: impl Iterator<Item = &'a [u8]>) -> Request<'a> {
    let mut words = words.skip(1);
    let (Some(class), Some(limit)) = (words.next(), words.next()) else {
        return bad("CLIENT_ERROR bad command line");
    };
    match (number(class), number(limit)) {
        (Some(CLASSES..), Some(_)) => bad("CLIENT_ERROR Illegal slab id"),
        (Some(class), Some(limit)) => {
            Request::Dump { form: DumpForm::Class(limit), is_empty: class != 1 }
        }
        _ => bad(error::FORMAT),
    }
}

/// `MAX_NUMBER_OF_SLAB_CLASSES` of memcached.
const CLASSES: u64 = 64;

/// Whether a list of classes of slabs has that of the items, which are all of the first here. `None`
/// if it is no such list.
fn names_items(word: &[u8]) -> Option<bool> {
    if matches!(word, b"all" | b"hash") {
        return Some(true);
    }
    word.split(|&byte| byte == b',').try_fold(false, |has, id| {
        let id = number(id).filter(|id| (1..CLASSES).contains(id))?;
        Some(has || id == 1)
    })
}

/// Why a command of memcached's is not one here.
fn refused(name: &[u8]) -> Option<&'static str> {
    Some(match name {
        b"slabs" => "SERVER_ERROR slabs: memory is not kept in classes of slabs",
        b"lru" => "SERVER_ERROR lru: what is evicted is said by maxmemory-policy",
        b"cache_memlimit" => "SERVER_ERROR cache_memlimit: set maxmemory instead",
        b"extstore" => "SERVER_ERROR extstore: there is none",
        b"refresh_certs" => "SERVER_ERROR refresh_certs: send SIGHUP instead",
        _ => return None,
    })
}

fn store<'a>(line: &'a [u8], value: &'a [u8]) -> Request<'a> {
    let (store, bytes) = match head(line) {
        Ok(head) => head,
        Err((error, noreply)) => return Request::Bad { error, noreply },
    };
    let noreply = store.noreply;
    // A value that is too long is skipped behind its line.
    if value.is_empty() {
        let is_set = store.mode == Mode::Set && store.cas.is_none();
        return Request::TooLarge { set: is_set.then_some(store.key), noreply };
    }
    match value.strip_suffix(b"\r\n") {
        Some(value) if value.len() as u64 == bytes => Request::Store(Store { value, ..store }),
        _ => Request::Bad { error: error::CHUNK, noreply },
    }
}

/// The keys of [`Request::Get`].
pub fn keys(keys: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    words(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(line: &str) -> &'static str {
        match Request::of_line(line.as_bytes()) {
            Request::Bad { error, .. } => error,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_wrong_line_is_answered_as_by_memcached() {
        let long = "k".repeat(251);
        for (line, error) in [
            ("\r\n", error::UNKNOWN),
            ("GET a\r\n", error::UNKNOWN),
            ("get\r\n", error::UNKNOWN),
            ("gat\r\n", error::UNKNOWN),
            ("gat x a\r\n", error::EXPTIME),
            (&format!("get a {long}\r\n"), error::FORMAT),
            ("set a 0 0\r\n", error::UNKNOWN),
            ("set a x 0 2\r\n", error::FORMAT),
            ("set a 0 x 2\r\n", error::FORMAT),
            ("set a 0 0 -1\r\n", error::FORMAT),
            ("set a 4294967296 0 2\r\n", error::FORMAT),
            ("cas a 0 0 2\r\n", error::UNKNOWN),
            ("cas a 0 0 2 x\r\n", error::FORMAT),
            (&format!("set {long} 0 0 2\r\n"), error::FORMAT),
            ("set a 0 0 4\r\nbarbar", error::CHUNK),
            ("incr a\r\n", error::UNKNOWN),
            ("incr a -1\r\n", error::DELTA),
            ("delete\r\n", error::UNKNOWN),
            ("delete a 5\r\n", error::DELETE),
            ("touch a\r\n", error::UNKNOWN),
            ("touch a x\r\n", error::EXPTIME),
            ("flush_all x\r\n", error::EXPTIME),
            ("verbosity\r\n", error::UNKNOWN),
            ("verbosity x\r\n", error::FORMAT),
        ] {
            assert_eq!(error_of(line), error, "{line:?}");
        }
    }

    #[test]
    fn requests_are_read() {
        let set = Request::of_line(b"cas k 7 -1 2 9 noreply\r\nhi\r\n");
        let store = Store {
            mode: Mode::Set,
            key: b"k",
            flags: 7,
            exptime: -1,
            cas: Some(9),
            value: b"hi",
            noreply: true,
        };
        assert_eq!(set, Request::Store(store));
        let Request::Get { list, keys: of, is_last } = Request::of_line(b"gats 5 a  b\r\n") else {
            panic!()
        };
        assert_eq!((list.exptime, list.shows_cas, is_last), (Some(5), true, true));
        assert_eq!(keys(of).collect::<Vec<_>>(), [b"a", b"b"]);
        let delete = Request::Delete { key: b"a", noreply: true };
        assert_eq!(Request::of_line(b"delete a 0 noreply\r\n"), delete);
        assert_eq!(Request::of_line(b"GET / HTTP/1.1\r\n"), Request::Http);
        let too_large = Request::TooLarge { set: Some(b"a"), noreply: false };
        assert_eq!(Request::of_line(b"set a 0 0 99\r\n"), too_large);
        assert_eq!(Request::of_line(b"stats items\r\n"), Request::Stats(b"items"));
        assert_eq!(Request::of_line(b"stats\r\n"), Request::Stats(b""));
        assert!(matches!(Request::of_line(b"slabs automove 1\r\n"), Request::Refused(_)));
        let watches = watched::FETCHERS | watched::EVICTIONS;
        assert_eq!(Request::of_line(b"watch evictions fetchers\r\n"), Request::Watch(watches));
        assert_eq!(error_of("watch all\r\n"), error::UNKNOWN);
    }

    #[test]
    fn the_crawler_lists_what_there_is() {
        let dump = |line: &str| match Request::of_line(format!("lru_crawler {line}\r\n").as_bytes())
        {
            Request::Dump { form, is_empty } => Ok((form, is_empty)),
            Request::Bad { error, .. } => Err(error),
            Request::Granted => Err("granted"),
            Request::Refused(why) => Err(why),
            other => panic!("{other:?}"),
        };
        assert_eq!(dump("metadump all"), Ok((DumpForm::Facts, false)));
        assert_eq!(dump("metadump 63,1"), Ok((DumpForm::Facts, false)));
        assert_eq!(dump("mgdump 2"), Ok((DumpForm::Requests, true)));
        let class = |line: &'static [u8]| Request::of_line(line);
        let dumps = Request::Dump { form: DumpForm::Class(100), is_empty: false };
        assert_eq!(class(b"stats cachedump 1 100\r\n"), dumps);
        assert_eq!(class(b"stats cachedump 64 0\r\n"), bad("CLIENT_ERROR Illegal slab id"));
        assert_eq!(class(b"stats cachedump 1 x\r\n"), bad(error::FORMAT));
        assert_eq!(class(b"stats cachedump 1\r\n"), bad("CLIENT_ERROR bad command line"));
        for wrong in ["metadump x", "mgdump 64", "metadump 1,", "crawl 0"] {
            assert_eq!(dump(wrong), Err("BADCLASS invalid class id"), "{wrong}");
        }
        for unknown in ["", "metadump", "metadump all x", "enable now", "sleep", "gallop all"] {
            assert_eq!(dump(unknown), Err(error::UNKNOWN), "{unknown}");
        }
        assert_eq!((dump("enable"), dump("crawl all")), (Err("granted"), Err("granted")));
        assert!(dump("disable").unwrap_err().starts_with("SERVER_ERROR lru_crawler disable"));
        assert!(dump("tocrawl 5").unwrap_err().contains("active-expire-effort"));
    }
}
