//! Keyspace notifications: the engine's events as messages.
//!
//! | letter | channel | message |
//! |---|---|---|
//! | `K` | `__keyspace@N__:KEY` | `EVENT` |
//! | `E` | `__keyevent@N__:EVENT` | `KEY` |
//! | `S` | `__subkeyspace@N__:KEY` | `EVENT|FIELDS` |
//! | `T` | `__subkeyevent@N__:EVENT` | `LENGTH:KEY|FIELDS` |
//! | `I` | `__subkeyspaceitem@N__:KEY\nFIELD`, of keys without `\n` | `EVENT` |
//! | `V` | `__subkeyspaceevent@N__:EVENT|KEY` | `FIELDS` |
//!
//! The last four, of Redis 8.8, are of hashes' events. FIELDS is `LENGTH:FIELD`, several with
//! commas between them.

use crate::pubsub::published::Kind;
use crate::pubsub::registry::PubSub;
use ladon_engine::{Event, EventClass, Keyspace};
use ladon_record::Lsn;
use ladon_settings::Settings;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Which channels get the events: a bit for each letter.
#[derive(Default)]
pub(crate) struct Forms(AtomicU8);

const KEYS: u8 = 1;
const EVENTS: u8 = 1 << 1;
const FIELDS_OF_KEYS: u8 = 1 << 2;
const FIELDS_OF_EVENTS: u8 = 1 << 3;
const FIELDS_EACH: u8 = 1 << 4;
const FIELDS_OF_EVENTS_OF_KEYS: u8 = 1 << 5;
/// Those with the names of fields.
const WITH_FIELDS: u8 = FIELDS_OF_KEYS | FIELDS_OF_EVENTS | FIELDS_EACH | FIELDS_OF_EVENTS_OF_KEYS;

/// Applies the setting `notify-keyspace-events`.
pub(crate) fn apply(keyspace: &Keyspace, settings: &Settings, forms: &Forms) {
    let wanted = settings.notify_keyspace_events();
    let bits = wanted.chars().map(form).fold(0, |bits, bit| bits | bit);
    forms.0.store(bits, Relaxed);
    let mut classes = wanted.chars().map(class).fold(0, |classes, class| classes | class.0);
    if bits & WITH_FIELDS != 0 {
        classes |= EventClass::SUBKEYS.0;
    }
    keyspace.collect_events(EventClass(if bits != 0 { classes } else { 0 }));
}

/// The channels that a letter of the setting means.
fn form(letter: char) -> u8 {
    match letter {
        'K' => KEYS,
        'E' => EVENTS,
        'S' => FIELDS_OF_KEYS,
        'T' => FIELDS_OF_EVENTS,
        'I' => FIELDS_EACH,
        'V' => FIELDS_OF_EVENTS_OF_KEYS,
        _ => 0,
    }
}

/// The classes that a letter of the setting means.
fn class(letter: char) -> EventClass {
    match letter {
        'g' => EventClass::GENERIC,
        '$' => EventClass::STRING,
        'l' => EventClass::LIST,
        's' => EventClass::SET,
        'h' => EventClass::HASH,
        'z' => EventClass::SORTED_SET,
        'x' => EventClass::EXPIRED,
        'e' => EventClass::EVICTED,
        't' => EventClass::STREAM,
        'd' => EventClass::MODULE,
        'm' => EventClass::KEY_MISS,
        'n' => EventClass::NEW,
        'o' => EventClass::OVERWRITTEN,
        'c' => EventClass::TYPE_CHANGED,
        'A' => EventClass("g$lshzxetd".chars().map(class).fold(0, |all, class| all | class.0)),
        _ => EventClass::NONE,
    }
}

/// Publishes the events of every transaction.
pub(crate) fn follow(keyspace: &Keyspace, pubsub: &Arc<PubSub>, forms: &Arc<Forms>) {
    let (pubsub, forms) = (Arc::clone(pubsub), Arc::clone(forms));
    keyspace.deliver_events(Box::new(move |event, depends| {
        if pubsub.has_subscribers() {
            publish(&pubsub, &forms, event, depends);
        }
    }));
}

fn publish(pubsub: &PubSub, forms: &Forms, event: &Event<'_>, depends: Lsn) {
    let Event { database, name, key, subkeys } = *event;
    let forms = forms.0.load(Relaxed);
    let publish = |form: &str, channel: &[&[u8]], message: &[u8]| {
        let mut all = format!("__{form}@{database}__:").into_bytes();
        channel.iter().for_each(|part| all.extend_from_slice(part));
        pubsub.publish(Kind::Channel, &all, message, depends);
    };
    let event = name.as_bytes();
    if forms & KEYS != 0 {
        publish("keyspace", &[key], event);
    }
    if forms & EVENTS != 0 {
        publish("keyevent", &[event], key);
    }
    if subkeys.is_empty() || forms & WITH_FIELDS == 0 {
        return;
    }
    let mut fields = Vec::new();
    for field in subkeys.iter() {
        if !fields.is_empty() {
            fields.push(b',');
        }
        put_counted(&mut fields, field);
    }
    if forms & FIELDS_OF_KEYS != 0 {
        publish("subkeyspace", &[key], &[event, b"|", &fields].concat());
    }
    if forms & FIELDS_OF_EVENTS != 0 {
        let mut message = Vec::new();
        put_counted(&mut message, key);
        message.push(b'|');
        message.extend_from_slice(&fields);
        publish("subkeyevent", &[event], &message);
    }
    // Where a key ends could not be told otherwise.
    if forms & FIELDS_EACH != 0 && !key.contains(&b'\n') {
        subkeys.iter().for_each(|field| publish("subkeyspaceitem", &[key, b"\n", field], event));
    }
    if forms & FIELDS_OF_EVENTS_OF_KEYS != 0 {
        publish("subkeyspaceevent", &[event, b"|", key], &fields);
    }
}

/// Appends `LENGTH:TEXT`.
fn put_counted(out: &mut Vec<u8>, text: &[u8]) {
    write!(out, "{}:", text.len()).expect("memory takes it");
    out.extend_from_slice(text);
}
